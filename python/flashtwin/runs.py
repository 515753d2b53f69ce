"""`run`, `compare` and saved states: checking of arguments, preconditioning, runs, and results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from . import _core
from ._devices import DEFAULT_DEVICE, Spec
from ._devices import device as read_device
from ._placement.rules import OF_DEVICE, Rules, SchemeLike, VictimLike
from ._policies import Choice, PolicyLike, overrides_for, read_choices
from ._support import repeating, tables
from ._support.inputs import is_file
from ._support.memory import need
from ._support.partials import remove_dead_partials
from ._support.recording import is_device_of, start_of
from ._support.scaling import Scaled, scaled
from ._support.sizing import read as read_size
from ._support.sizing import sized
from ._support.watch import OnProgress, Task, run_all
from .comparison import Comparison
from .errors import FlashtwinError, Interrupted
from .faults import check as check_faults
from .options import PreconditionOptions, RunOptions, WorkloadOptions, check, run_options, takes
from .pacing import ClosedLoop, OpenLoop, default_for
from .result import OutputError, Result
from .timeline import Timeline
from .workloads import Source, WorkloadLike, source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._theory import Beside


@takes(RunOptions)
def run(workload: WorkloadLike, device: str | Path | None = None, **options: Unpack[RunOptions]) -> Result:
    """Run a workload on a device, in virtual time.

    The GIL is released while the device runs. Equal arguments give equal results, byte for byte, on all
    machines.

    Args:
        workload: path of a trace, whose format and compression are detected from its content; or a generated
            load such as "zipf:theta=0.9,write=0.8,requests=1e6" (docs/traces.md); or a table with one row per
            request: a DataFrame of pandas or polars, an Arrow table, or any other table that has
            `__arrow_c_stream__`.
        device: one of `flashtwin.devices()`, or the path of a TOML file (docs/devices.md). By default, a
            recording runs on its own device, from its own state (docs/live.md, Recording); other workloads
            run on the default device.
        {options}

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place and the remedy.
        OutputError: the log could not be written; its `result` has the result of the run.
        Interrupted: on Ctrl-C; its `partial` has the result so far.
    """
    job = Job.prepare(workload, device, [Choice.read(options["policy"])], options)
    candidate = job.candidates[0]
    # A policy of the user runs on a copy of the preconditioned device, other policies on this device itself.
    job.need(devices=2 if candidate.user or job.options["snapshot"] else 1)
    base = job.base_device()
    make = candidate.fork_of(base) if candidate.user else lambda _: base
    results, interrupted = run_all([job.task(candidate, make)], 1, options["progress"])
    if interrupted:
        raise Interrupted(cast(Result, results[0]) if results else None)
    return cast(Result, results[0])


@takes(WorkloadOptions)
def compare(
    workload: WorkloadLike,
    policies: Sequence[PolicyLike] | None = None,
    device: str | Path | None = None,
    *,
    placements: Sequence[SchemeLike] = (),
    victims: Sequence[VictimLike] = (),
    threads: int = 1,
    **options: Unpack[WorkloadOptions],
) -> Comparison:
    """Run a workload on the same device under several policies, placement schemes or victim rules.

    The device is preconditioned once, and every policy starts from a copy of that state. With `placements` or
    `victims`, every run preconditions a device under its own rules. Results do not depend on `threads`. A
    parameter in `set` applies to those policies that have it.

    Args:
        workload: as for `run`.
        policies: two or more policies, each as for `run`. Ratios are to the first. By default, the policy of
            the device; `placements` or `victims` must then be given.
        device: as for `run`.
        placements: placement schemes, each as for `run`, on a device that writes by units.
        victims: victim rules, each as for `run`. Every scheme runs with every rule.
        threads: number of runs at the same time. Each needs the memory of a device.
        {options}

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place and the remedy.
        Interrupted: on Ctrl-C; its `partial` has the results so far.
    """
    if policies is None and not (placements or victims):
        raise FlashtwinError("compare: give policies, placements or victims")
    choices = [Choice.read(None)] if policies is None else read_choices(policies)
    check({"threads": threads})
    # Each run has a history, because the noise of a run is estimated from the batches in it.
    settings = run_options(**options, history=True)
    if placements or victims:
        tasks = _placed_tasks(
            workload,
            device,
            choices,
            placements=placements,
            victims=victims,
            threads=threads,
            options=settings,
        )
    else:
        job = Job.prepare(workload, device, choices, settings)
        job.need(devices=1 + min(threads, len(choices)), less="fewer threads take less")
        base = job.base_device()
        tasks = [job.task(each, each.fork_of(base)) for each in job.candidates]
    results, interrupted = run_all(tasks, threads, options["progress"])
    comparison = Comparison([cast(Result, result) for result in results])
    if interrupted:
        raise Interrupted(comparison if results else None)
    return comparison


@takes(PreconditionOptions)
def save_snapshot(
    path: str | os.PathLike[str],
    device: str | Path = DEFAULT_DEVICE,
    **options: Unpack[PreconditionOptions],
) -> None:
    """Precondition a device and save its state. Runs can then start from this state immediately.

    The file has the state of the flash, not of the buffer, so it fits every device with the same flash.

    Args:
        path: the file to write.
        device: as for `run`.
        {options}
    """
    spec = read_device(device, options["set"])
    need(spec.tables_bytes, devices=2)
    kind, seed = options["precondition"], options["seed"]
    base = precondition_spec(spec, kind, seed, options["progress"])
    remove_dead_partials(Path(path))
    base.save_snapshot(path, f"{kind}, seed {seed}")


@dataclass(frozen=True)
class Candidate:
    """A policy to run: its name in results, the device with this policy, the user's object or None.

    If the run has a `scale`, `spec` is the smaller device, and `scaled` has the device that it predicts.
    """

    label: str | None
    spec: Spec
    user: _core.UserPolicy | None
    scaled: Scaled | None

    def fork_of(self, base: _core.Device) -> Callable[[_core.Control], _core.Device]:
        """Return a function that creates the device of a run as a copy of `base`."""
        return lambda _: base.fork(self.spec, self.user)


@dataclass
class Job:
    """One or several runs that differ only in the policy. Their arguments have been checked."""

    source: Source
    candidates: list[Candidate]
    options: RunOptions
    #: Origin of the initial state, for results.
    prepared: str
    requests_total: int | None
    repeat: repeating.Repeat | None = None
    rules: Rules = OF_DEVICE
    #: End of the run in seconds of virtual time. Requests that arrive later are not submitted.
    span_max_s: float | None = None
    #: Seconds of real time that preconditioning took.
    precondition_wall_s: float = 0.0

    @staticmethod
    def prepare(
        workload: WorkloadLike,
        device: str | Path | None,
        choices: Sequence[Choice],
        options: RunOptions,
    ) -> Job:
        """Check all arguments, before any long computation. Return the job."""
        check(options)
        device, options = _start(workload, device, options)
        options, rules = _placed(options)
        pacing, requests_max = options["pacing"], options["requests_max"]
        if not isinstance(pacing, OpenLoop | ClosedLoop | None):
            raise FlashtwinError(
                f"pacing: {pacing!r}: give flashtwin.OpenLoop(speed), ClosedLoop(queue_depth) "
                "or AS_FAST_AS_POSSIBLE"
            )
        check_faults(options["faults"])
        candidates = [_candidate(choice, choices, device, options) for choice in choices]
        if rules.are_own and any(each.user for each in candidates):
            raise FlashtwinError("policy: a run takes a policy or placement rules of your own, not both")
        opened = source(workload, options["trace_options"])
        if candidates[0].scaled:
            opened = opened.smaller(candidates[0].scaled.factor)
        repeat = repeating.read(options["repeat"], options["repeat_shift"])
        if repeat is not None and opened.path is not None and not is_file(opened.path):
            raise FlashtwinError(f"{workload}: repeat: a pipe can be read once only; write it to a file")
        first = opened.open(candidates[0].spec.exported_bytes, options["seed"])
        total = first.requests_total
        if repeat is not None:
            if opened.path is None and total is None:
                raise FlashtwinError(f"{workload}: repeat: the load is endless; add requests=N to it")
            total = opened.open(candidates[0].spec.exported_bytes, options["seed"], repeat).requests_total
        if opened.path is None and total is None and requests_max is None and repeat is None:
            raise FlashtwinError(
                f"{opened.text}: the load is endless; add requests=N to it, or give requests_max "
                "(--requests-max N)"
            )
        if isinstance(pacing, OpenLoop) and pacing.speed > 0 and not first.timed:
            remedy = "add rate=N to it, or give" if opened.path is None else "give"
            raise FlashtwinError(
                f"{opened.text}: OpenLoop(speed={pacing.speed:g}) (--speed): it has no arrival times; "
                f"{remedy} ClosedLoop (--queue-depth N)"
            )
        if repeat is None:
            total = total or opened.estimate_requests()
        options = {**options, "pacing": pacing or default_for(first.timed)}
        return Job(
            opened,
            candidates,
            options,
            options["precondition"],
            min(filter(None, (total, requests_max)), default=None),
            repeat,
            rules,
        )

    def need(self, *, devices: int, less: str = "") -> None:
        """Reject devices that do not fit into memory, before any device is created."""
        need(self.candidates[0].spec.tables_bytes, devices=devices, less=less)

    def base_device(self) -> _core.Device:
        """Create the device in the initial state of all runs."""
        began = time.monotonic()
        if self.options["log"]:
            tables.import_ahead()
        work = partial(self._initial_device, self.candidates[0].spec)
        base = _alone("preconditioning", work, self.options["progress"])
        self.precondition_wall_s = time.monotonic() - began
        return base

    def own_device(self, each: Candidate, control: _core.Control) -> _core.Device:
        """Create a device for one run only, in its initial state."""
        base = self._initial_device(each.spec, control)
        return base.fork(each.spec, each.user) if each.user else base

    def _initial_device(self, spec: Spec, control: _core.Control) -> _core.Device:
        options = self.options
        if options["snapshot"] is not None:
            base = _core.Device(spec, *self.rules.make())
            made_by = base.load_snapshot(options["snapshot"])
            self.prepared = f"snapshot ({made_by})"
            return base
        load = self._load_of_state if is_by_load(options["precondition"]) else None
        kind, seed = options["precondition"], options["seed"]
        return _preconditioned(spec, kind, seed, control, load=load, made=self.rules.make())

    def _load_of_state(self, spec: Spec) -> tuple[_core.Workload, _core.Workload]:
        """Return the requests that fill a device, and the load that then brings it into its initial state.

        The load is the workload of the run. If it is generated, it has another seed here, so that the run
        does not repeat its requests.
        """
        of_load = self.source.text if self.source.path is None else None
        seed, range_bytes = self.options["seed"], spec.exported_bytes
        _, page_bytes = _core.placement_words_of(spec)
        fill = _core.Workload.fill(of_load, range_bytes, page_bytes, seed, self.source.factor)
        return fill, self.source.open(range_bytes, seed + 1, repeating.Repeat(None, 0))

    def task(
        self, each: Candidate, make: Callable[[_core.Control], _core.Device], label: str | None = None
    ) -> Task:
        """Return the task of one run. `make` creates its device when the run begins.

        `label` is the name of the run in comparisons; if it is None, the name of the policy is used.
        """
        spec, options, log = each.spec, self.options, self.options["log"]

        def work(control: _core.Control) -> Result:
            began = time.monotonic()
            ready = make(control)
            ready.fill_buffer(options["precondition"], options["seed"], control)
            filling_s = time.monotonic() - began
            table = tables.RequestTable() if log is True else None
            in_memory = nullcontext(table.add if table else None)
            raw = lost = None
            try:
                with in_memory if isinstance(log, bool) else tables.request_file(Path(log)) as sink:
                    raw = ready.run(
                        self.source.open(spec.exported_bytes, options["seed"], self.repeat),
                        control,
                        {
                            **options,
                            "precondition": self.prepared,
                            "drive_writes": self.repeat and self.repeat.drive_writes,
                        },
                        span_max_s=self.span_max_s,
                        label=each.label,
                        sink=sink,
                    )
            except FlashtwinError as e:
                if raw is None:
                    too_large = (
                        self.source.beyond(spec.exported_bytes) if options["beyond"] == "error" else None
                    )
                    if too_large is None:
                        raise
                    raise FlashtwinError(f"{e}; {too_large}") from None
                # The run has ended, and only writing its log has failed.
                lost = e
            as_json, text, histograms, gc_columns, windows, recorded, took_s, path = raw
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
                path=path,
            )
            if each.scaled:
                result.set_scale(each.scaled)
            result.beside = self._closed_forms(each, result)
            result.label = label or result.policy
            if lost is not None:
                raise OutputError(str(lost), result) from lost
            return result

        return Task(label or each.label or spec.policy or "no buffer", work, self.requests_total)

    def _closed_forms(self, each: Candidate, result: Result) -> list[Beside]:
        """Return the measured values of a run for which there are closed forms, each beside its form."""
        options = self.options
        special = (
            options["faults"],
            options["snapshot"],
            self.repeat,
            each.user,
            each.scaled,
        )
        if self.source.path is not None or any(special):
            return []
        from ._theory import beside_run

        return beside_run(result.summary, each.spec, self.source.text)


def _start(
    workload: WorkloadLike, device: str | Path | None, options: RunOptions
) -> tuple[str | Path, RunOptions]:
    """Return the device and the options of a run. For a recording, both are those of its start."""
    start = None
    # Only a path can be a recording. Arguments of wrong types are rejected later, with a message.
    if isinstance(workload, str | os.PathLike) and (device is None or is_device_of(workload, device)):
        start = start_of(workload)
    if start is None:
        return device or DEFAULT_DEVICE, options
    chosen = options["snapshot"] is not None or options["precondition"] != run_options()["precondition"]
    if not chosen:
        options = {**options, "snapshot": start.state, "precondition": start.precondition}
    return start.device, options


def _candidate(choice: Choice, among: Sequence[Choice], name: str | Path, options: RunOptions) -> Candidate:
    overrides = overrides_for(choice, among, options["set"] or {})
    size = options["size"]
    full = choice.spec(name, overrides) if size is None else sized(name, read_size(size), choice, overrides)
    factor = options["scale"]
    smaller = None if factor == 1 else scaled(name, factor, choice, overrides, full)
    spec = smaller.spec if smaller else full
    # The user's object is created before any long work, so that its errors are reported early.
    return Candidate(choice.label, spec, choice.instance(spec.buffer_pages, spec), smaller)


def is_by_load(precondition: str) -> bool:
    """Whether the initial state is reached by running the workload of the run itself."""
    return precondition.partition(":")[0] == "load"


#: A scheme and a victim rule of the user, created for one device; None for included ones.
Made = tuple[object | None, object | None]


def precondition_spec(
    spec: Spec, kind: str, seed: int, on_progress: OnProgress | None, *, made: Made = (None, None)
) -> _core.Device:
    """Create a device in the state `kind`. `made` has placement rules of the user."""
    return _alone("preconditioning", partial(_preconditioned, spec, kind, seed, made=made), on_progress)


#: Function that returns the requests that fill a device, and the load that then brings it into its initial
#: state.
LoadOfState = Callable[[Spec], tuple[_core.Workload, _core.Workload]]


def _preconditioned(
    spec: Spec,
    kind: str,
    seed: int,
    control: _core.Control,
    *,
    load: LoadOfState | None = None,
    made: Made = (None, None),
) -> _core.Device:
    device = _core.Device(spec, *made)
    if load is None:
        device.precondition(kind, seed, control)
    else:
        device.precondition_by_load(kind, *load(spec), control)
    return device


def _alone(
    label: str, work: Callable[[_core.Control], _core.Device], on_progress: OnProgress | None
) -> _core.Device:
    """Run a function that creates a device, while progress is reported. Ctrl-C ends it."""
    results, interrupted = run_all([Task(label, work)], 1, on_progress)
    if interrupted:
        raise Interrupted(None)
    return cast(_core.Device, results[0])


def _placed_tasks(
    workload: WorkloadLike,
    device: str | Path | None,
    choices: Sequence[Choice],
    *,
    placements: Sequence[SchemeLike],
    victims: Sequence[VictimLike],
    threads: int,
    options: RunOptions,
) -> list[Task]:
    """Return the tasks of all runs: one for each combination of placement scheme, victim rule and policy."""
    tasks: list[Task] = []
    labels: list[str] = []
    for scheme in placements or (None,):
        for victim in victims or (None,):
            job = Job.prepare(workload, device, choices, {**options, "placement": scheme, "victim": victim})
            if not tasks:
                runs = len(choices) * max(len(placements), 1) * max(len(victims), 1)
                job.need(devices=min(threads, runs), less="fewer threads take less")
            for each in job.candidates:
                several = [
                    (job.rules.scheme, len(placements) > 1),
                    (job.rules.victim, len(victims) > 1),
                ]
                parts = [rule.label for rule, varies in several if rule is not None and varies]
                if len(choices) > 1:
                    parts.append(each.label or "")
                label = ", ".join(parts) or None
                labels.append(label or "")
                tasks.append(job.task(each, partial(job.own_device, each), label))
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise FlashtwinError(f"compare: {twice} is named twice")
    return tasks


def _placed(options: RunOptions) -> tuple[RunOptions, Rules]:
    """Return the options together with the settings of included placement rules; and the rules."""
    rules = Rules.read(options["placement"], options["victim"])
    if not rules.settings:
        return options, rules
    return {**options, "set": {**(options["set"] or {}), **rules.settings}}, rules
