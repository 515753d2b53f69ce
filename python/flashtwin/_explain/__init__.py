"""Explanations: what a request waited for, and what limits a device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from .._devices import Overrides
from .._policies import Choice
from .._support import words
from .._support.inputs import parse_toml
from .._support.watch import run_all
from ..errors import DeviceError, FlashtwinError, Interrupted
from ..options import RunOptions, takes
from ..result import Result
from ..runs import Job, run
from ..timeline import Timeline, Window
from .events import Events
from .limits import RunExplanation, Variant, summarised, variants
from .request import RequestExplanation, explain

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

__all__ = ["RequestExplanation", "RunExplanation", "explain_request", "explain_run"]

#: A time, as in 12.5s.
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s|ms|us)")
_PS = {"s": 10**12, "ms": 10**9, "us": 10**6}
_SLOWEST = re.compile(r"slowest(?::([1-9]\d*))?")
#: Number of times that a shorter timeline window is tried for a request.
_RETRIES = 3
#: If a timeline becomes full before the request completes, a shorter window is tried. Its length is chosen so
#: that, at the previous window's rate of events, this fraction of a timeline's maximum size is filled.
_ROOM = 0.6


@takes(RunOptions)
def explain_request(
    workload: str | os.PathLike[str],
    device: str | Path | None = None,
    request: int | str = "slowest",
    **options: Unpack[RunOptions],
) -> list[RequestExplanation]:
    """Explain the response times of single requests: the chips, operations and causes that they waited for.

    The run is repeated once per explained request, and records a timeline around it. Recording does not
    change the results of the run.

    Args:
        workload: as for `run`.
        device: as for `run`.
        request: the requests to explain. A number is that of a request in the request log. "slowest" is the
            slowest request, "slowest:5" the five slowest ones. A time from the start of the measurement, such
            as "12.5s", is the slowest request in flight at that time.
        {options}

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place and the remedy.
        Interrupted: on Ctrl-C.
    """
    selector = _selector(request)
    job = Job.prepare(workload, device, [Choice.read(options["policy"])], options)
    job.need(devices=2)
    runs = _Runs(job)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        start_ps = runs.run(Window(0.0, 1e-12), log).timeline_start_ps
        rows = _select(log, selector, start_ps)
    depth = _depth(job)
    explanations = []
    for row in rows:
        events, recorded_ps = runs.around(row, start_ps)
        explanations.append(explain(row, events, start_ps, recorded_ps, depth))
    return explanations


@takes(RunOptions)
def explain_run(
    workload: str | os.PathLike[str],
    device: str | Path | None = None,
    seeds: int = 3,
    **options: Unpack[RunOptions],
) -> RunExplanation:
    """Explain what limits a device: the causes of its mean response time, and the resources that reduce it.

    The workload is run on the unchanged device, and on variants with one doubled resource each: buffer,
    reserve, dies, link rate, or the limit of write-backs in flight (those resources that the device has).

    Args:
        workload: as for `run`.
        device: as for `run`.
        seeds: number of runs of each device, with consecutive seeds from `seed` on. The
            95 % intervals of the results are computed from these runs.
        {options}

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place and the remedy.
        Interrupted: on Ctrl-C.
    """
    if seeds < 1:
        raise FlashtwinError(f"seeds: {seeds}: give a whole number from 1")
    job = Job.prepare(workload, device, [Choice.read(options["policy"])], options)
    spec = job.candidates[0].spec
    numbers = [options["seed"] + i for i in range(seeds)]

    def summary(seed: int, keys: Overrides) -> dict[str, Any]:
        given: RunOptions = {**options, "seed": seed, "set": {**(options["set"] or {}), **keys}}
        return run(workload, device, **given).summary

    def summaries(keys: Overrides) -> list[dict[str, Any]]:
        return [summary(seed, keys) for seed in numbers]

    base = summaries({})
    of_variants: list[tuple[Variant, list[dict[str, Any]], str | None]] = []
    for variant in variants(parse_toml(spec.to_toml(), Path("the device")), spec.buffer_bytes):
        try:
            of_variants.append((variant, summaries(variant.set), None))
        except DeviceError as e:
            of_variants.append((variant, [], f"not possible: {e}"))
    return summarised(base, of_variants, numbers)


@dataclass(frozen=True)
class _Selector:
    """Requests to explain: the one with a number, the N slowest ones, or the slowest one at an instant."""

    number: int | None = None
    slowest: int | None = None
    at_ps: int | None = None


def _selector(request: int | str) -> _Selector:
    text = str(request).replace(" ", "")
    if text.isascii() and text.isdigit():
        return _Selector(number=int(text))
    if slowest := _SLOWEST.fullmatch(text):
        return _Selector(slowest=int(slowest[1] or 1))
    if time := _TIME.fullmatch(text):
        return _Selector(at_ps=round(float(time[1]) * _PS[time[2]]))
    raise FlashtwinError(
        f"request {request!r}: give a number of the request log, slowest, slowest:N, or a time such as 12.5s"
    )


@dataclass
class _Run:
    result: Result
    timeline_start_ps: int


class _Runs:
    """Repeated runs of one job. All begin from one state of the device, and each records a timeline."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._base = job.base_device()

    def run(self, window: Window, log: Path | None = None) -> _Run:
        """Run the workload with a timeline window. Return the result and the timeline's start in ps.

        If `log` is a file, the whole workload is run; otherwise the run ends at the end of the window.
        """
        options: RunOptions = {**self._job.options, "timeline": window, "log": log or False}
        span_max_s = None if log else window.from_s + window.length_s
        job = replace(self._job, options=options, span_max_s=span_max_s)
        each = job.candidates[0]
        task = job.task(each, each.fork_of(self._base))
        results, interrupted = run_all([task], 1, options["progress"])
        if interrupted:
            raise Interrupted(None)
        result = cast(Result, results[0])
        assert result.timeline is not None
        return _Run(result, result.timeline.recorded.start_ps)

    def around(self, row: dict[str, Any], start_ps: int) -> tuple[Events, int]:
        """Return the events around a request, and the instant from which they are recorded.

        The window begins one response time before the request's arrival. If that timeline would be too large,
        the window begins later.
        """
        arrival = row["arrival_ps"] - start_ps
        done = arrival + row["response_ps"]
        begin = max(0, arrival - row["response_ps"] - 1)
        timeline = self._timeline(begin, done)
        for _ in range(_RETRIES):
            if timeline.cut_at_s is None or timeline.cut_at_s * 1e12 >= done:
                break
            begin = done - round(_ROOM * (timeline.cut_at_s * 1e12 - begin))
            timeline = self._timeline(begin, done)
        return Events(timeline.recorded.columns()), begin

    def _timeline(self, begin: int, done: int) -> Timeline:
        window = Window(begin * 1e-12, (done - begin) * 1e-12 + 1e-6)
        timeline = self.run(window).result.timeline
        assert timeline is not None
        return timeline


def _select(log: Path, selector: _Selector, start_ps: int) -> list[dict[str, Any]]:
    """Read the rows of the selected requests."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    times = pq.read_table(log, columns=["request", "arrival_ps", "response_ps"])
    if times.num_rows == 0:
        raise FlashtwinError("no request completed: there is nothing to explain")
    if selector.number is not None:
        chosen = times.filter(pc.equal(times["request"], selector.number))
        if chosen.num_rows == 0:
            least, most = (words.count(f(times["request"]).as_py()) for f in (pc.min, pc.max))
            raise FlashtwinError(
                f"request {selector.number}: not among the measured ones, numbered from {least} to {most}"
            )
    elif selector.at_ps is not None:
        at = selector.at_ps + start_ps
        done = pc.add(times["arrival_ps"], times["response_ps"])
        inside = pc.and_(pc.less_equal(times["arrival_ps"], at), pc.greater(done, at))
        chosen = _slowest(times.filter(inside), 1)
        if chosen.num_rows == 0:
            raise FlashtwinError(
                f"request at {words.time(selector.at_ps * 1e-6)}: no request was in the device then; "
                f"the last one completed at {words.time((pc.max(done).as_py() - start_ps) * 1e-6)}"
            )
    else:
        chosen = _slowest(times, selector.slowest or 1)
    numbers = chosen["request"].to_pylist()
    rows = pq.read_table(log, filters=[("request", "in", numbers)]).to_pylist()
    return sorted(rows, key=lambda row: numbers.index(row["request"]))


def _slowest(times: pa.Table, n: int) -> pa.Table:
    order = times.sort_by([("response_ps", "descending"), ("request", "ascending")])
    return order.slice(0, n)


def _depth(job: Job) -> int | None:
    """Return the limit of write-backs in flight if the buffer evicts in the background, otherwise None."""
    buffer = parse_toml(job.candidates[0].spec.to_toml(), Path("the device")).get("buffer", {})
    return buffer.get("background_depth") if buffer.get("evict") == "background" else None
