"""`flashtwin run`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .. import Interrupted, Result, words
from .. import run as run_workload
from ..files import write_text
from .common import ProgressBar, note, run_arguments


def command(args: argparse.Namespace) -> int:
    """Run one workload on one device."""
    arguments = run_arguments(args)
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
                progress=bar,
            )
    except Interrupted as e:
        if not isinstance(e.partial, Result):
            raise
        result, code = e.partial, 130
    wall_s = time.monotonic() - began
    if args.output:
        write_text(Path(args.output), result.to_json() + "\n", "the summary")
    if args.record:
        result.save(args.record)
    if args.series:
        _write_series(result, Path(args.series))
    if args.json:
        print(result.to_json())
    else:
        print(result)
        requests = result.summary["requests_submitted"]
        print(f"{'wall time':<15}{wall_s:.1f} s, {words.count(requests / wall_s)} requests/s")
    if code:
        note("flashtwin: interrupted: these are partial results, of the requests so far")
    return code


def _write_series(result: Result, path: Path) -> None:
    rows = [result.series.column_names, *zip(*result.series.to_pydict().values(), strict=True)]
    write_text(path, "".join(",".join(map(str, row)) + "\n" for row in rows), "the series")
