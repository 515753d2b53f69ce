"""What the commands share: reading their options, notes on standard error, the progress bar."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from types import TracebackType
from typing import Any

from .. import (
    AS_FAST_AS_POSSIBLE,
    ClosedLoop,
    Fail,
    FlashtwinError,
    OpenLoop,
    Pacing,
    Progress,
    Replace,
    TraceOptions,
    words,
)
from ..workloads import generated, source


def note(text: str) -> None:
    """Print a note that is not part of the result."""
    print(text, file=sys.stderr, flush=True)


def overrides(settings: list[str]) -> dict[str, str]:
    """Read `--set KEY=VALUE`."""
    read = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise FlashtwinError(f"--set {setting}: give KEY=VALUE, as in buffer.capacity=8MiB")
        read[key.strip()] = value.strip()
    return read


def trace_options(args: argparse.Namespace) -> TraceOptions:
    """Read the options of the trace readers."""
    given = vars(args)
    return TraceOptions(**{f.name: given.get(f.name) for f in fields(TraceOptions)})


def pacing(args: argparse.Namespace) -> Pacing | None:
    """Read the pacing; None leaves it to the workload."""
    if args.as_fast_as_possible:
        return AS_FAST_AS_POSSIBLE
    if args.queue_depth is not None:
        if not 1 <= args.queue_depth < 1 << 32:
            raise FlashtwinError(f"--queue-depth {args.queue_depth}: give a whole number from 1")
        return ClosedLoop(args.queue_depth)
    return None if args.speed is None else OpenLoop(args.speed)


#: A span of time, as in 10s: the number and the unit.
TIME = r"(\d+(?:\.\d*)?|\.\d+)(s|ms|us)"
#: A member and an instant, as in 3@10s.
_FAULT = re.compile(rf"(\d+)@{TIME}")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def seconds(number: str, unit: str) -> float:
    """Read what `TIME` has found."""
    return float(number) * _SECONDS[unit]


def faults(args: argparse.Namespace) -> list[Fail | Replace]:
    """Read `--fail` and `--replace`."""
    read: list[Fail | Replace] = []
    kinds: list[tuple[str, type[Fail] | type[Replace]]] = [("fail", Fail), ("replace", Replace)]
    for option, kind in kinds:
        for given in getattr(args, option):
            parts = _FAULT.fullmatch(given.replace(" ", ""))
            if parts is None:
                raise FlashtwinError(f"--{option} {given}: give MEMBER@TIME, as in 3@10s or 0@250ms")
            read.append(kind(int(parts[1]), seconds(parts[2], parts[3])))
    return read


def run_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Read what `run` and `compare` have in common, and print the trace format found."""
    if (args.trace is None) == (args.workload is None):
        raise FlashtwinError("give either a trace file or --workload SPEC (see flashtwin run --help)")
    options = trace_options(args)
    workload = args.workload if args.trace is None else args.trace
    opened = generated(workload) if args.trace is None else source(workload, options)
    if opened.path is not None:
        note(opened.open(0, 0).describe())
    return {
        "workload": workload,
        "device": args.device,
        "set": overrides(args.set),
        "pacing": pacing(args),
        "precondition": args.precondition,
        "seed": args.seed,
        "snapshot": args.snapshot,
        "requests_max": args.requests_max,
        "warmup_requests": args.warmup,
        "beyond": args.beyond,
        "faults": faults(args),
        "trace_options": options,
    }


#: Finished bars stay on the terminal up to so many.
_BARS = 6


#: Seconds between two lines of progress where standard error is no terminal.
_LINE_PERIOD_S = 30.0


class ProgressLines:
    """A line of progress every 30 s, for a standard error that is no terminal."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + _LINE_PERIOD_S

    def say(self, text: Callable[[], str]) -> None:
        """Print a line if it is time for one."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LINE_PERIOD_S
            note(text())


class ProgressBar:
    """Bars with rate and time left on a terminal; a line every 30 s where standard error is a file."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._ids: dict[str, Any] = {}
        self._lines = ProgressLines()

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Move a bar."""
        if not self._bars:
            if not progress.finished:
                self._lines.say(lambda: _line(progress))
            return
        if progress.label not in self._ids:
            self._ids[progress.label] = self._bars.add_task(progress.label, total=None, rate="")
        bar = self._ids[progress.label]
        total = max(progress.total, progress.done) if progress.total else None
        if progress.finished:
            total = progress.done or 1
            # With many pieces of work only running ones are shown.
            self._bars.update(bar, visible=len(self._ids) <= _BARS)
        speed = self._bars.tasks[bar].speed
        rate = f"{speed / 1e6:.2f} M/s" if speed else ""
        if progress.rebuilt is not None:
            rate += f", rebuilt {progress.rebuilt:.0%}"
        self._bars.update(
            bar, completed=total if progress.finished else progress.done, total=total, rate=rate
        )


def _line(progress: Progress) -> str:
    """Return the progress of one piece of work as text."""
    share = f" of {words.count(progress.total)}" if progress.total else ""
    return f"{progress.label}: {words.count(progress.done)}{share} done"
