"""Code that the commands share: reading of options, notes on standard error, progress bars."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import flashtwin

from .._support import terminal, words
from ..errors import FlashtwinError
from .options import read, trace_options


def note(text: str) -> None:
    """Print a note that is not part of the result."""
    print(text, file=sys.stderr, flush=True)


def run_arguments(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """Return the arguments of a run: workload, device and options. Print the detected format of a trace."""
    # Imported here, because help does not need it.
    from .._support.recording import start_of
    from ..workloads import generated, source

    if (args.trace is None) == (args.workload is None):
        raise FlashtwinError("give either a trace file or --workload SPEC (see flashtwin run --help)")
    options = trace_options(args)
    workload = args.workload if args.trace is None else args.trace
    opened = generated(workload) if args.trace is None else source(workload, options)
    if opened.path is not None:
        note(opened.open(0, 0).describe())
    shared = read(args, kind)
    if args.device is None and (start := start_of(workload)):
        note(f"device and state of the recording: {start.device}, {start.state or 'never written'}")
    return {"workload": workload, "device": args.device, **shared, "trace_options": options}


#: Maximum number of finished bars that stay on the terminal.
_BARS = 6


#: Interval in seconds between two lines of progress if standard error is not a terminal.
_LINE_PERIOD_S = 30.0


class ProgressLines:
    """Prints a line of progress every 30 s, if standard error is not a terminal."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + _LINE_PERIOD_S

    def say(self, text: Callable[[], str]) -> None:
        """Print a line if 30 s have passed since the last one."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LINE_PERIOD_S
            note(text())


class ProgressBar:
    """Progress bars on a terminal, with rate and remaining time.

    If standard error is not a terminal, the progress is printed as a line every 30 s.
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._ids: dict[str, Any] = {}
        self._lines = ProgressLines()
        self._started_s = time.monotonic()

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
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(file=terminal.unescaped(sys.stderr)),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def __call__(self, progress: flashtwin.Progress) -> None:
        """Update the bar of a piece of work."""
        if not self._bars:
            if not progress.finished:
                self._lines.say(lambda: _line(progress, time.monotonic() - self._started_s))
            return
        if progress.label not in self._ids:
            self._ids[progress.label] = self._bars.add_task(words.shown(progress.label), total=None, rate="")
        bar = self._ids[progress.label]
        description = words.shown(_named(progress))
        total = max(progress.total, progress.done) if progress.total else None
        if progress.finished:
            total = progress.done or 1
            # If there are many pieces of work, finished ones are no longer shown.
            self._bars.update(bar, visible=len(self._ids) <= _BARS)
        speed = self._bars.tasks[bar].speed
        rate = f"{speed / 1e6:.2f} M/s" if speed else ""
        if progress.rebuilt is not None:
            rate += f", rebuilt {100 * progress.rebuilt:.0f} %"
        self._bars.update(
            bar,
            description=description,
            completed=total if progress.finished else progress.done,
            total=total,
            rate=rate,
        )


def _named(progress: flashtwin.Progress) -> str:
    """Return the label of a piece of work, followed by its phase if it has one."""
    return f"{progress.label} ({progress.phase})" if progress.phase else progress.label


def _line(progress: flashtwin.Progress, elapsed_s: float) -> str:
    """Return the progress of a piece of work as text: counts or, if there are none, the elapsed time."""
    if not (progress.done or progress.total):
        return f"{_named(progress)}: running for {elapsed_s:.0f} s"
    share = ""
    if progress.total:
        total = max(progress.total, progress.done)
        share = f" of {words.count(total)} ({100 * progress.done / total:.0f} %)"
    return f"{_named(progress)}: {words.count(progress.done)}{share} done"
