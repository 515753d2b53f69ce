"""`flashtwin compare`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .. import Comparison, Interrupted, policies, terminal
from .. import compare as compare_policies
from ..files import write_text
from ..options import WorkloadOptions
from ..policies import split_names
from .common import ProgressBar, note, run_arguments


def command(args: argparse.Namespace) -> int:
    """Run one workload under several policies."""
    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
    arguments = run_arguments(args, WorkloadOptions)
    names = split_names(args.policies, policies())
    began = time.monotonic()
    code = 0
    try:
        with ProgressBar() as bar:
            comparison = compare_policies(**arguments, policies=names, threads=args.threads, progress=bar)
    except Interrupted as e:
        if not isinstance(e.partial, Comparison):
            raise
        comparison, code = e.partial, 130
    wall_s = time.monotonic() - began
    if args.json:
        print(comparison.to_json())
    else:
        _show(comparison, wall_s)
    if args.output:
        write_text(Path(args.output), comparison.to_json() + "\n", "the summaries")
    if args.figure:
        comparison.figure(args.figure)
        note(f"figure: {args.figure}")
    if code:
        missing = [name for name in names if name not in comparison.policies]
        left_out = f"; not begun: {', '.join(missing)}" if missing else ""
        note(f"flashtwin: interrupted: these are partial results, of the requests so far{left_out}")
    return code


def _show(comparison: Comparison, wall_s: float) -> None:
    first = comparison.results[0].summary
    how = (first["pacing"], f"precondition {first['precondition']}", f"seed {first['seed']}")
    print(f"{first['device']} ({first['backend']}), {', '.join(how)}")
    console = terminal.console()
    for table in comparison.rich_tables(console.width):
        console.print(table)
    print(comparison.legend())
    for warning in first["warnings"]:
        print(f"warning: {warning}")
    print(f"wall time {wall_s:.1f} s")
