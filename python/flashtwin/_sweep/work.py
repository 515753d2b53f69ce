"""The two kinds of work of a sweep's worker: creating a preconditioned state, and running a cell.

Arguments are plain values, results are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from .._devices import Spec
from .._results import body
from .._support.folders import Folder, fetch
from .._support.memory import need
from .._support.tables import request_file
from ..errors import FlashtwinError
from ..options import experiment_options, run_options
from ..pacing import given_pacing

if TYPE_CHECKING:
    from .._core import Columns, Histogram


class StoppedError(Exception):
    """A piece of work was ended early and has no result."""


@dataclass(frozen=True)
class StateJob:
    """A flash that is to be preconditioned.

    Attributes:
        key: hash of everything that determines the state.
        flashtwin: version of flashtwin that the sweep requires.
        device: the device as TOML, without its buffer.
    """

    key: str
    flashtwin: str
    device: str
    precondition: str
    seed: int


@dataclass(frozen=True)
class CellJob:
    """One run. `identity` has everything that determines its result, and nothing else.

    Attributes:
        key: hash of the identity.
        identity: version, device as TOML, workload, seed, pacing and limits.
        trace: path or URL of the trace; None if the workload is a generated load.
        log: folder and name of the per-request log; None if no log is requested.
    """

    key: str
    identity: dict[str, Any]
    trace: str | None
    log: tuple[str, str] | None = None


def make_state(job: StateJob, control: _core.Control | None = None) -> bytes:
    """Precondition a device. Return the state of its flash as bytes, from which several cells start."""
    check_version(job.flashtwin)
    control = control or _core.Control()
    spec = Spec.parse(job.device, "device", [])
    need(spec.tables_bytes, devices=2)
    device = _core.Device(spec)
    if not device.precondition(job.precondition, job.seed, control):
        raise StoppedError
    return device.state()


def check_version(wanted: str) -> None:
    """Reject work for another version of flashtwin, because results may differ between versions."""
    if wanted != _core.__version__:
        raise FlashtwinError(
            f"this worker has flashtwin {_core.__version__}, the sweep {wanted}: install the same version"
        )


def run_cell(job: CellJob, state: bytes | None, control: _core.Control | None = None) -> bytes:
    """Run a cell on a device with the given state, or on a new one. The result is equal on all machines."""
    control = control or _core.Control()
    what = job.identity
    check_version(what["flashtwin"])
    spec = Spec.parse(what["device"], "device", [])
    path = None
    if job.trace is not None:
        path, _ = fetch(job.trace, what["workload"]["sha256"])
        workload = _core.Workload.trace(path, json.dumps(what["workload"]["options"]))
    else:
        workload = _core.Workload.generated(what["workload"]["text"], spec.exported_bytes, what["seed"])
    need(spec.tables_bytes)
    device = _core.Device(spec)
    if state is not None:
        device.load_state(state)
    if not device.fill_buffer(what["precondition"], what["seed"], control):
        raise StoppedError
    with _log_sink(job.log) as sink:
        summary, read, write = _run(job, device, workload, path=path, sink=sink, control=control)
        if json.loads(summary)["interrupted"]:
            raise StoppedError
    return body.encode(summary, read, write)


@contextmanager
def _log_sink(log: tuple[str, str] | None) -> Iterator[Callable[[Columns], None] | None]:
    """Yield the function that receives the per-request log.

    The log file receives its final name only at the end of the run.
    """
    if log is None:
        yield None
        return
    where, name = log
    with Folder(where).local_file(name) as path, request_file(path) as add:
        yield add


def _run(
    job: CellJob,
    device: _core.Device,
    workload: _core.Workload,
    *,
    path: str | None,
    sink: Callable[[Columns], None] | None,
    control: _core.Control,
) -> tuple[str, Histogram, Histogram]:
    what = job.identity
    given = {name: what[name] for name in experiment_options()}
    try:
        summary, _, (read, write, _), *_ = device.run(
            workload,
            control,
            {**run_options(pacing=given_pacing(what), seed=what["seed"]), **given},
            label=what["label"],
            sink=sink,
        )
    except FlashtwinError as e:
        # Messages show the name that the user gave, not the path of this machine's copy.
        if path is None or job.trace is None:
            raise
        raise type(e)(str(e).replace(path, job.trace)) from None
    if path is not None:
        # The name of the file is omitted, because it does not affect the result.
        name = json.dumps(Path(path).name, ensure_ascii=False)[1:-1]
        summary = summary.replace(f'"workload":"{name}:', '"workload":"trace:')
        summary = summary.replace(f"the first: {name},", "the first: trace,")
    return summary, read, write
