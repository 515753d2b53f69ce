"""`flashtwin sweep`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import Interrupted, Results, SweepProgress
from .. import sweep as run_sweep
from .._results.show import failures
from .._support import words
from .._support.terminal import unescaped
from .commands import summary_of
from .common import ProgressLines, note
from .forms import Commands, new
from .grammar import add_workers


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "sweep",
        summary_of("sweep"),
        """\
examples:
  flashtwin sweep experiment.toml
  flashtwin sweep experiment.toml -o results --threads 8
  flashtwin sweep experiment.toml --dask tcp://head:8786

An experiment is a TOML file with lists of devices, policies, workloads, [parameters] and seeds
(docs/sweeps.md). Each combination is a cell. Finished cells are saved at once: after Ctrl-C, a crash or a
full disk, the same command continues. The dataset does not depend on how the cells were run. The exit code is
1 if cells failed.
""",
        command=command,
    )
    p.add_argument("experiment", metavar="FILE", help="TOML file of the experiment")
    p.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="directory or URL for the results (default: FILE with .sweep instead of .toml)",
    )
    add_workers(p)


def command(args: argparse.Namespace) -> int:
    """Run an experiment."""
    directory = args.output or str(Path(args.experiment).with_suffix(".sweep").name)
    with SweepBar() as bar:
        try:
            found = run_sweep(args.experiment, directory, threads=args.threads, dask=args.dask, progress=bar)
        except Interrupted as e:
            kept = e.partial.table.num_rows if isinstance(e.partial, Results) else 0
            bar.close()
            note(
                f"flashtwin: interrupted: {words.count(kept)} cells are kept; repeat the command to continue"
            )
            return 130
    last = bar.last
    if last is not None:
        computed = last.done - last.found
        note(
            f"{words.count(last.cells)} cells: {words.count(last.found)} found finished, "
            f"{words.count(computed)} run in {last.elapsed_s:.1f} s, {words.count(last.failed)} failed"
        )
    for line in failures(found):
        note(line)
    print(f"{directory}: {words.count(found.table.num_rows)} rows; flashtwin results show {directory}")
    return 1 if found.failed else 0


class SweepBar:
    """A progress bar on a terminal: finished cells, rate and remaining time.

    If standard error is not a terminal, the progress is printed as a line every 30 s.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._id: Any = None
        self.last: SweepProgress | None = None
        self._lines = ProgressLines()

    def __enter__(self) -> SweepBar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("cells"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[state]}"),
                console=Console(file=unescaped(sys.stderr)),
                transient=True,
            )
            self._bar.start()
            self._id = self._bar.add_task("cells", total=None, state="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def __call__(self, progress: SweepProgress) -> None:
        """Move the bar."""
        self.last = progress
        if not self._bar:
            ended = progress.done + progress.failed
            self._lines.say(lambda: f"{words.count(ended)} of {words.count(progress.cells)} cells done")
            return
        parts = [f"{progress.rate_per_s:.2f}/s"] if progress.rate_per_s else []
        if progress.left_s is not None:
            parts.append(f"{_clock(progress.left_s)} left")
        if progress.failed:
            parts.append(f"{progress.failed} failed")
        ended = progress.done + progress.failed
        self._bar.update(self._id, completed=ended, total=progress.cells, state=", ".join(parts))


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
