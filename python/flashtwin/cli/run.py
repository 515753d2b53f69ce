"""`flashtwin run`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .. import Interrupted, Result, words
from .. import run as run_workload
from ..files import write_text
from ..plot.style import kind_of
from ..tables import write_table
from .common import ProgressBar, note, run_arguments


def command(args: argparse.Namespace) -> int:
    """Run one workload on one device."""
    arguments = run_arguments(args)
    for name in args.gc_timeline:
        if Path(name).suffix not in _TABLES:
            kind_of(Path(name))
    began = time.monotonic()
    code = 0
    try:
        with ProgressBar() as bar:
            result = run_workload(
                **arguments,
                policy=args.policy,
                series_s=args.interval if args.series else None,
                history=args.record is not None,
                log=args.requests or False,
                gc_timeline=bool(args.gc_timeline),
                threads=args.threads,
                progress=bar,
            )
    except Interrupted as e:
        if not isinstance(e.partial, Result):
            raise
        result, code = e.partial, 130
    wall_s = time.monotonic() - began
    _keep(result, args)
    if args.json:
        print(result.to_json())
    elif args.fio:
        print(result.to_fio() if args.fio == "text" else result.to_fio_json(), end="")
    else:
        print(result)
        requests = result.summary["requests_submitted"]
        print(f"{'wall time':<15}{wall_s:.1f} s, {words.count(requests / wall_s)} requests/s")
    if code:
        note("flashtwin: interrupted: these are partial results, of the requests so far")
    return code


def _keep(result: Result, args: argparse.Namespace) -> None:
    """Write the files that were asked for."""
    if args.output:
        write_text(Path(args.output), result.to_json() + "\n", "the summary")
    if args.hgrm:
        result.save_hgrm(args.hgrm)
    if args.record:
        result.save(args.record)
    if args.series:
        write_table(result.series, Path(args.series), "the series")
    for name in args.gc_timeline:
        _write_timeline(result, Path(name))


#: Kinds of tables; other names are those of figures.
_TABLES = (".csv", ".parquet")


def _write_timeline(result: Result, path: Path) -> None:
    if result.gc_intervals is not None and path.suffix in _TABLES:
        write_table(result.gc_intervals, path, "the timeline of collections")
    else:
        result.gc_figure(path)
