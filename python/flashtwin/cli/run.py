"""`flashtwin run`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .. import FlashtwinError, Interrupted, OutputError, Result, Timeline, Window, words
from .. import run as run_workload
from ..files import write_text
from ..options import RunOptions
from ..tables import write_table
from .common import ProgressBar, note, run_arguments
from .options import TIME, seconds


def command(args: argparse.Namespace) -> int:
    """Run one workload on one device."""
    arguments = run_arguments(args, RunOptions)
    for name in args.gc_timeline:
        if Path(name).suffix not in _TABLES:
            from ..plot.style import kind_of

            kind_of(Path(name))
    window = _window(args)
    code = 0
    failures: list[FlashtwinError] = []
    try:
        with ProgressBar() as bar:
            result = run_workload(
                **arguments,
                series_s=args.interval if args.series else None,
                history=args.record is not None,
                log=args.requests or False,
                gc_timeline=bool(args.gc_timeline),
                timeline=window,
                progress=bar,
            )
    except Interrupted as e:
        if not isinstance(e.partial, Result):
            raise
        result, code = e.partial, 130
    except OutputError as e:
        result = e.result
        failures.append(e)
    if args.json:
        print(result.to_json(), flush=True)
        note(json.dumps({"wall_s": result.wall_s}))
    elif args.fio:
        print(result.to_fio() if args.fio == "text" else result.to_fio_json(), end="")
    else:
        print(result)
        print(f"{'wall time':<15}{_wall(result)}")
    # The summary is printed by now, whatever becomes of the files.
    for write in _files(result, args):
        try:
            write()
        except FlashtwinError as e:
            failures.append(e)
    for failure in failures:
        note(f"flashtwin: error: {failure}")
    if code:
        note("flashtwin: interrupted: these are partial results, of the requests so far")
    return 2 if failures else code


def _wall(result: Result) -> str:
    """Return the real time of the simulation, each part separately."""
    took = result.wall_s
    text = f"preconditioning {took['precondition']:.1f} s, "
    if took["warmup"] >= 0.05:
        text += f"warm-up {took['warmup']:.1f} s, "
    text += f"measured run {took['measured']:.1f} s"
    counts = result.summary["counts"].values()
    done = sum(count["requests"] + count["refused"] + count["failed"] for count in counts)
    if done:
        text += f", {words.count(done / max(took['measured'], 1e-9))} requests/s"
    return text


def _files(result: Result, args: argparse.Namespace) -> Iterator[Callable[[], object]]:
    """Yield a writer for each file that was asked for."""
    if args.output:
        yield lambda: write_text(Path(args.output), result.to_json() + "\n", "the summary")
    if args.hgrm:
        yield lambda: result.save_hgrm(args.hgrm)
    if args.record:
        yield lambda: result.save(args.record)
    if args.series:
        yield lambda: write_table(result.series, Path(args.series), "the series")
    for name in args.gc_timeline:
        yield partial(_write_timeline, result, Path(name))
    if result.timeline:
        yield partial(_write_trace, result.timeline, args.timeline)


#: Kinds of tables; other names are those of figures.
_TABLES = (".csv", ".parquet")


def _write_timeline(result: Result, path: Path) -> None:
    if result.gc_intervals is not None and path.suffix in _TABLES:
        write_table(result.gc_intervals, path, "the timeline of collections")
    else:
        result.gc_figure(path)


#: A beginning and a length, or a length, as in 10s+50ms.
_WINDOW = re.compile(rf"(?:{TIME}\+)?{TIME}")


def _window(args: argparse.Namespace) -> Window | None:
    """Read `--timeline` and `--timeline-window`."""
    given = args.timeline_window
    if args.timeline is None:
        if given is not None:
            raise FlashtwinError(f"--timeline-window {given}: add --timeline FILE to name the file to write")
        return None
    if given is None:
        return Window()
    parts = _WINDOW.fullmatch(given.replace(" ", ""))
    if parts is None:
        raise FlashtwinError(
            f"--timeline-window {given}: give BEGINNING+LENGTH or LENGTH, as in 10s+50ms or 200ms"
        )
    begin, unit, length, length_unit = parts.groups()
    return Window(seconds(begin, unit) if begin else 0.0, seconds(length, length_unit))


def _write_trace(timeline: Timeline, name: str) -> None:
    timeline.save(name)
    if timeline.cut_at_s is not None:
        note(
            f"flashtwin: the timeline is full and ends at {words.time(timeline.cut_at_s * 1e6)}; "
            "a shorter --timeline-window would be shown whole"
        )
    elif timeline.slices == 0:
        note("flashtwin: the timeline is empty: the device did nothing in its window (--timeline-window)")
