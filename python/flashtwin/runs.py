"""`run` and `compare`: from what a user asks for to results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from . import _core, tables
from .comparison import Comparison
from .devices import Overrides, Spec
from .devices import device as read_device
from .errors import FlashtwinError, Interrupted, OutputError
from .faults import Fault, as_given
from .leftovers import remove_dead_partials
from .memory import need
from .pacing import ClosedLoop, OpenLoop, Pacing, default_for
from .policies import Choice, PolicyLike, overrides_for, read_choices
from .result import Result
from .timeline import Timeline, Window
from .traces import TraceOptions
from .watch import OnProgress, Task, run_all
from .workloads import Source, source


def run(
    workload: str | os.PathLike[str],
    device: str | Path = "ecr",
    *,
    policy: PolicyLike | None = None,
    precondition: str = "steady",
    set: Overrides | None = None,
    pacing: Pacing | None = None,
    seed: int = 1,
    requests_max: int | None = None,
    warmup_requests: int = 0,
    beyond: str = "error",
    snapshot: str | os.PathLike[str] | None = None,
    series_s: float | None = None,
    faults: Sequence[Fault] = (),
    history: bool = False,
    threads: int = 1,
    trace_options: TraceOptions | None = None,
    log: bool | str | os.PathLike[str] = False,
    gc_timeline: bool = False,
    timeline: Window | None = None,
    progress: OnProgress | None = None,
) -> Result:
    """Run a workload on a device, in virtual time.

    The GIL is released while the device runs. The same arguments give the same result, byte for
    byte, on every machine.

    Args:
        workload: path of a trace (format and compression are found by content), or a generated
            load such as "zipf:theta=0.9,write=0.8,requests=1e6" (docs/traces.md).
        device: one of `flashtwin.devices()`, or the path of a TOML file (docs/devices.md).
        policy: the buffer's policy: one of `flashtwin.policies()`, perhaps with parameters as in
            "cflru:window=0.5", or your subclass of `flashtwin.Policy` (docs/policies.md); the
            device's own if None.
        precondition: state of the flash before the first request: "none" (never written),
            "sequential", "random", "random:TIMES" (so many times the capacity), or "steady" (the
            state that random writing converges to). With "random" and "steady" the buffer starts full of
            dirty random pages; ":empty-buffer" behind them, as in "steady:empty-buffer", leaves it empty.
        set: keys of the device to change, as in {"buffer.capacity": "8 MiB"}.
        pacing: `OpenLoop(speed)`, `ClosedLoop(queue_depth)` or `AS_FAST_AS_POSSIBLE`. If None:
            the workload's own times, or a closed loop at queue depth 32 if it has none.
        seed: of preconditioning and of a generated load.
        requests_max: requests to run at most, warm-up included.
        warmup_requests: requests run before the measurement begins; fewer than the run has.
        beyond: what a request beyond the device's end does: "error", "wrap" or "drop".
        snapshot: file of `save_snapshot` to start from instead of preconditioning; `precondition` then
            only decides whether the buffer starts full.
        series_s: length of an interval of the time series, in seconds of virtual time.
        faults: members of an array that fail and are replaced, as in [Fail(3, at_s=10), Replace(3, at_s=20)]
            (docs/arrays.md).
        history: keep what happened when, in at most 256 windows, for reports: `Result.history`.
        threads: threads on which members of an array are simulated, where nothing that one does decides
            what another is asked (docs/arrays.md); results are the same.
        trace_options: how to read the trace, where it is not to be guessed.
        log: True keeps every request in `Result.requests`; a path writes them there as Parquet
            instead, in bounded memory.
        gc_timeline: keep in `Result.gc_intervals` which member of an array collects when.
        timeline: the window in which to record what every part of the device does, for Perfetto:
            `Result.timeline` (docs/timeline.md).
        progress: called about ten times a second with a `Progress`.

    Raises:
        FlashtwinError: with what was wrong, where, and what would be right.
        OutputError: the log could not be written; its `result` holds the result of the run.
        Interrupted: on Ctrl-C; its `partial` holds the result so far.
    """
    _check_threads(threads)
    job = Job.prepare(
        workload,
        device,
        [Choice.read(policy)],
        set,
        pacing=pacing,
        precondition=precondition,
        seed=seed,
        snapshot=snapshot,
        requests_max=requests_max,
        warmup_requests=warmup_requests,
        beyond=beyond,
        series_s=series_s,
        faults=faults,
        trace_options=trace_options,
    )
    candidate = job.candidates[0]
    # A policy of the user's is put in by a fork; else the device runs as it is.
    job.need(devices=2 if candidate.user or snapshot else 1)
    base = job.base_device(progress)
    make = partial(base.fork, candidate.spec, candidate.user) if candidate.user else lambda: base
    task = job.task(
        candidate, make, log, gc_timeline=gc_timeline, history=history, timeline=timeline, threads=threads
    )
    results, interrupted = run_all([task], 1, progress)
    if interrupted:
        raise Interrupted(cast(Result, results[0]) if results else None)
    return cast(Result, results[0])


def compare(
    workload: str | os.PathLike[str],
    policies: Sequence[PolicyLike],
    device: str | Path = "ecr",
    *,
    threads: int = 1,
    precondition: str = "steady",
    set: Overrides | None = None,
    pacing: Pacing | None = None,
    seed: int = 1,
    requests_max: int | None = None,
    warmup_requests: int = 0,
    beyond: str = "error",
    snapshot: str | os.PathLike[str] | None = None,
    series_s: float | None = None,
    faults: Sequence[Fault] = (),
    trace_options: TraceOptions | None = None,
    progress: OnProgress | None = None,
) -> Comparison:
    """Run a workload on the same device under several policies.

    The device is preconditioned once; every policy starts from a copy of that state. Results do not
    depend on `threads`. A parameter in `set` applies to the policies that have it.

    Args:
        workload: as for `run`.
        policies: two or more, each as for `run`; ratios are to the first.
        device: as for `run`.
        threads: policies run at a time; each takes the memory of a device.
        precondition: as for `run`, and so on for the others.

    Raises:
        FlashtwinError: with what was wrong, where, and what would be right.
        Interrupted: on Ctrl-C; its `partial` holds the results so far.
    """
    choices = read_choices(policies)
    _check_threads(threads)
    job = Job.prepare(
        workload,
        device,
        choices,
        set,
        pacing=pacing,
        precondition=precondition,
        seed=seed,
        snapshot=snapshot,
        requests_max=requests_max,
        warmup_requests=warmup_requests,
        beyond=beyond,
        series_s=series_s,
        faults=faults,
        trace_options=trace_options,
    )
    job.need(devices=1 + min(threads, len(choices)), less="fewer threads take less")
    base = job.base_device(progress)
    # The noise of each run is estimated from the windows of its history.
    tasks = [
        job.task(each, partial(base.fork, each.spec, each.user), history=True) for each in job.candidates
    ]
    results, interrupted = run_all(tasks, threads, progress)
    comparison = Comparison([cast(Result, result) for result in results])
    if interrupted:
        raise Interrupted(comparison if results else None)
    return comparison


def save_snapshot(
    path: str | os.PathLike[str],
    device: str | Path = "ecr",
    *,
    precondition: str = "steady",
    set: Overrides | None = None,
    seed: int = 1,
    progress: OnProgress | None = None,
) -> None:
    """Precondition a device and save its state, to start runs from without waiting.

    The state is that of the flash: it fits every device with the same flash, whatever its buffer.
    """
    spec = read_device(device, set)
    need(spec.tables_bytes, devices=2)
    base = precondition_spec(spec, precondition, seed, progress)
    remove_dead_partials(Path(path).parent.absolute())
    base.save_snapshot(path, f"{precondition}, seed {seed}")


def _check_threads(threads: int) -> None:
    if not 1 <= threads <= 1024:
        raise FlashtwinError(f"threads: {threads}: give 1 to 1024")


@dataclass(frozen=True)
class Candidate:
    """A policy of a job: what results call it, the device with it, and the user's object if any."""

    label: str | None
    spec: Spec
    user: _core.UserPolicy | None


@dataclass
class Job:
    """A checked request for runs: everything but the policy is shared by all of them."""

    source: Source
    candidates: list[Candidate]
    pacing: Pacing
    precondition: str
    #: What results say of it.
    prepared: str
    seed: int
    snapshot: str | os.PathLike[str] | None
    requests_max: int | None
    warmup_requests: int
    beyond: str
    series_s: float | None
    faults: list[tuple[float, bool, int]]
    requests_total: int | None
    #: Seconds of real time that preconditioning took.
    precondition_wall_s: float = 0.0

    @staticmethod
    def prepare(
        workload: str | os.PathLike[str],
        device: str | Path,
        choices: Sequence[Choice],
        overrides: Overrides | None,
        *,
        pacing: Pacing | None,
        precondition: str,
        seed: int,
        snapshot: str | os.PathLike[str] | None,
        requests_max: int | None,
        warmup_requests: int,
        beyond: str,
        series_s: float | None,
        faults: Sequence[Fault],
        trace_options: TraceOptions | None,
    ) -> Job:
        """Check everything that can be checked before the first long computation."""
        for name, number, least in (
            ("seed", seed, 0),
            ("requests_max", requests_max, 1),
            ("warmup_requests", warmup_requests, 0),
        ):
            if number is not None and not isinstance(number, int):
                raise FlashtwinError(f"{name}: {number!r}: give a whole number from {least}")
            if number is not None and not least <= number < 1 << 64:
                raise FlashtwinError(f"{name}: {number}: give a whole number from {least}")
        if not isinstance(pacing, OpenLoop | ClosedLoop | None):
            raise FlashtwinError(
                f"pacing: {pacing!r}: give flashtwin.OpenLoop(speed), ClosedLoop(queue_depth) "
                "or AS_FAST_AS_POSSIBLE"
            )
        given_faults = as_given(faults)
        candidates = [_candidate(choice, choices, device, overrides or {}) for choice in choices]
        opened = source(workload, trace_options)
        first = opened.open(candidates[0].spec.exported_bytes, seed)
        total = first.requests_total
        if opened.path is None and total is None and requests_max is None:
            raise FlashtwinError(
                f"{workload}: this load has no end; add requests=N to it, or give requests_max "
                "(--requests-max N)"
            )
        if isinstance(pacing, OpenLoop) and pacing.speed > 0 and not first.timed:
            raise FlashtwinError(
                f"{workload}: OpenLoop(speed={pacing.speed:g}) (--speed): this load has no arrival times; "
                "add rate=N to it, or give ClosedLoop (--queue-depth N)"
            )
        total = total or opened.estimate_requests()
        return Job(
            opened,
            candidates,
            pacing or default_for(first.timed),
            precondition,
            precondition,
            seed,
            snapshot,
            requests_max,
            warmup_requests,
            beyond,
            series_s,
            given_faults,
            min(filter(None, (total, requests_max)), default=None),
        )

    def need(self, *, devices: int, less: str = "") -> None:
        """Refuse what does not fit into memory, before anything is made."""
        need(self.candidates[0].spec.tables_bytes, devices=devices, less=less)

    def base_device(self, on_progress: OnProgress | None) -> _core.Device:
        """Make the device in the state that all runs start from."""
        began = time.monotonic()
        if self.snapshot is None:
            base = precondition_spec(self.candidates[0].spec, self.precondition, self.seed, on_progress)
        else:
            base = _core.Device(self.candidates[0].spec)
            made_by = base.load_snapshot(self.snapshot)
            self.prepared = f"snapshot ({made_by})"
        self.precondition_wall_s = time.monotonic() - began
        return base

    def task(
        self,
        each: Candidate,
        make: Callable[[], _core.Device],
        log: bool | str | os.PathLike[str] = False,
        *,
        gc_timeline: bool = False,
        history: bool = False,
        timeline: Window | None = None,
        threads: int = 1,
    ) -> Task:
        """Make the run of one policy; `make` gives it its device when its turn has come."""
        spec = each.spec

        def work(control: _core.Control) -> Result:
            began = time.monotonic()
            ready = make()
            ready.fill_buffer(self.precondition, self.seed, control)
            filling_s = time.monotonic() - began
            table = tables.RequestTable() if log is True else None
            in_memory = nullcontext(table.add if table else None)
            raw = lost = None
            try:
                with in_memory if isinstance(log, bool) else tables.request_file(Path(log)) as sink:
                    raw = ready.run(
                        self.source.open(spec.exported_bytes, self.seed),
                        control,
                        speed=self.pacing.speed if isinstance(self.pacing, OpenLoop) else None,
                        queue_depth=None if isinstance(self.pacing, OpenLoop) else self.pacing.queue_depth,
                        beyond=self.beyond,
                        warmup_requests=self.warmup_requests,
                        requests_max=self.requests_max,
                        span_max_s=None,
                        series_interval_s=self.series_s,
                        faults=self.faults,
                        gc_timeline=gc_timeline,
                        history=history,
                        timeline=(timeline.from_s, timeline.length_s) if timeline else None,
                        threads=threads,
                        precondition=self.prepared,
                        seed=self.seed,
                        label=each.label,
                        sink=sink,
                    )
            except FlashtwinError as e:
                if raw is None:
                    too_large = self.source.beyond(spec.exported_bytes) if self.beyond == "error" else None
                    if too_large is None:
                        raise
                    raise FlashtwinError(f"{e}; {too_large}") from None
                # Of a run that has ended only its log is lost.
                lost = e
            as_json, text, histograms, gc_columns, windows, recorded, took_s = raw
            requests = table.table() if table else None
            result = Result(
                as_json,
                text,
                histograms,
                requests,
                gc_columns=gc_columns,
                history=windows,
                timeline=Timeline(*recorded) if recorded else None,
                wall_s={
                    "precondition": self.precondition_wall_s + filling_s,
                    "warmup": took_s[0],
                    "measured": took_s[1],
                },
            )
            if lost is not None:
                raise OutputError(str(lost), result) from lost
            return result

        return Task(each.label or spec.policy or "no buffer", work, self.requests_total)


def _candidate(choice: Choice, among: Sequence[Choice], name: str | Path, overrides: Overrides) -> Candidate:
    spec = choice.spec(name, overrides_for(choice, among, overrides))
    # Made before any long work: what it raises is seen at once.
    return Candidate(choice.label, spec, choice.instance(spec.buffer_pages))


def precondition_spec(spec: Spec, kind: str, seed: int, on_progress: OnProgress | None) -> _core.Device:
    """Make a device in the state `kind`."""

    def work(control: _core.Control) -> _core.Device:
        made = _core.Device(spec)
        made.precondition(kind, seed, control)
        return made

    results, interrupted = run_all([Task("preconditioning", work)], 1, on_progress)
    if interrupted:
        raise Interrupted(None)
    return cast(_core.Device, results[0])
