"""`flashtwin run`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import flashtwin

from .._support import words
from .._support.files import write_text
from ..errors import FlashtwinError, Interrupted
from ..options import RunOptions
from .commands import summary_of
from .common import ProgressBar, note, run_arguments
from .forms import Commands, new
from .grammar import add_json, add_options, add_workload
from .options import TIME, seconds


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "run",
        summary_of("run"),
        """\
examples:
  flashtwin run trace.csv.gz --device demo
  flashtwin run trace.csv.gz --device my.toml --set buffer.capacity=8MiB --speed 2
  flashtwin run --workload zipf:theta=0.9,write=0.8,requests=1e6 --queue-depth 16
  flashtwin run trace.csv.gz --device raid5-array --fail 3@10s --replace 3@20s
  flashtwin run trace.csv.gz --requests log.parquet --series second.csv --json > summary.json
  flashtwin run trace.csv.gz --timeline out.perfetto-trace --timeline-window 10s+50ms
""",
        command=command,
    )
    add_workload(p)
    add_options(p, RunOptions, of_recordings=True)
    g = p.add_argument_group("output")
    form = g.add_mutually_exclusive_group()
    add_json(form, "the summary")
    form.add_argument(
        "--fio",
        choices=["text", "json+"],
        help="print only fio's text or json+ format on standard output",
    )
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for the summary")
    g.add_argument(
        "--hgrm",
        metavar="FILE",
        help="files for HdrHistogram's plotters: x.hgrm, x.read.hgrm, x.write.hgrm",
    )
    g.add_argument("--requests", metavar="FILE", help="Parquet file with one row per request")
    g.add_argument("--series", metavar="FILE", help="CSV file with a time series")
    g.add_argument(
        "--placement-log",
        metavar="FILE",
        help="JSON file for log pages 20h to 23h of a device that writes by units",
    )
    g.add_argument("--record", metavar="FILE", help="file with the data for flashtwin report and plot")
    g.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="interval of the series, in virtual time (default: 1)",
    )
    g.add_argument(
        "--gc-timeline",
        action="append",
        default=[],
        metavar="FILE",
        help="garbage collection by array member over time: table (.csv, .parquet) or figure (.png, .pdf, "
        ".svg); may be repeated",
    )
    g.add_argument(
        "--timeline",
        metavar="FILE",
        help="trace of every device operation in a window, for ui.perfetto.dev",
    )
    g.add_argument(
        "--timeline-window",
        metavar="BEGINNING+LENGTH",
        help="window in virtual time since the start of the measurement (default: 0s+100ms)",
    )


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
            result = flashtwin.run(
                **arguments,
                series_s=args.interval if args.series else None,
                history=args.record is not None,
                log=args.requests or False,
                gc_timeline=bool(args.gc_timeline),
                timeline=window,
                progress=bar,
            )
    except Interrupted as e:
        if not isinstance(e.partial, flashtwin.Result):
            raise
        result, code = e.partial, 130
    except flashtwin.OutputError as e:
        result = e.result
        failures.append(e)
    if args.json:
        print(result.to_json(), flush=True)
        note(json.dumps({"wall_s": result.wall_s, "path": result.path}))
    elif args.fio:
        print(result.to_fio() if args.fio == "text" else result.to_fio_json(), end="")
    else:
        print(result)
        print(f"{'wall time':<15}{_wall(result)}")
    # The summary is printed before the files are written, so that it appears even if writing a file fails.
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


def _wall(result: flashtwin.Result) -> str:
    """Return the wall-clock time that each part of the simulation took."""
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


def _files(result: flashtwin.Result, args: argparse.Namespace) -> Iterator[Callable[[], object]]:
    """Yield a writer for each requested file."""
    from .._support.tables import write_table

    if args.output:
        yield lambda: write_text(Path(args.output), result.to_json() + "\n", "the summary")
    if args.hgrm:
        yield lambda: result.save_hgrm(args.hgrm)
    if args.record:
        yield lambda: result.save(args.record)
    if args.series:
        yield lambda: write_table(result.series, Path(args.series), "the series")
    if args.placement_log:
        yield partial(_write_placement_log, result, Path(args.placement_log))
    for name in args.gc_timeline:
        yield partial(_write_timeline, result, Path(name))
    if result.timeline is not None:
        yield partial(_write_trace, result.timeline, args.timeline)


def _write_placement_log(result: flashtwin.Result, path: Path) -> None:
    placement = result.summary.get("placement")
    if placement is None:
        device = result.summary["device"]
        raise FlashtwinError(f"{device} does not write by units: it has no log pages (docs/placement.md)")
    write_text(path, json.dumps(placement["logs"], indent=2) + "\n", "the log pages")


#: Suffixes of file names with which a table is written. With other suffixes, a figure is drawn.
_TABLES = (".csv", ".parquet")


def _write_timeline(result: flashtwin.Result, path: Path) -> None:
    from .._support.tables import write_table

    if result.gc_intervals is not None and path.suffix in _TABLES:
        write_table(result.gc_intervals, path, "the timeline of collections")
    else:
        result.gc_figure(path)


#: A window of time: start and length, such as 10s+50ms, or only a length.
_WINDOW = re.compile(rf"(?:{TIME}\+)?{TIME}")


def _window(args: argparse.Namespace) -> flashtwin.Window | None:
    """Read `--timeline` and `--timeline-window`."""
    given = args.timeline_window
    if args.timeline is None:
        if given is not None:
            raise FlashtwinError(f"--timeline-window {given}: add --timeline FILE to name the file to write")
        return None
    if given is None:
        return flashtwin.Window()
    parts = _WINDOW.fullmatch(given.replace(" ", ""))
    if parts is None:
        bare = [part for part in given.replace(" ", "").split("+") if re.fullmatch(r"\d+(\.\d*)?", part)]
        why = f'"{bare[0]}" has no unit (s, ms, us); ' if bare else ""
        raise FlashtwinError(
            f"--timeline-window {given}: {why}give BEGINNING+LENGTH or LENGTH, as in 10s+50ms or 200ms"
        )
    begin, unit, length, length_unit = parts.groups()
    return flashtwin.Window(seconds(begin, unit) if begin else 0.0, seconds(length, length_unit))


def _write_trace(timeline: flashtwin.Timeline, name: str) -> None:
    timeline.save(name)
    if timeline.cut_at_s is not None:
        note(
            f"flashtwin: the timeline is full and ends at {words.time(timeline.cut_at_s * 1e6)}; "
            "a shorter --timeline-window would be shown whole"
        )
    elif len(timeline) == 0:
        note("flashtwin: the timeline is empty: the device did nothing in its window (--timeline-window)")
