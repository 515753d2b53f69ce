"""`flashtwin compare`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import flashtwin

from .._support import terminal
from .._support.files import write_text
from ..options import WorkloadOptions
from .commands import summary_of
from .common import ProgressBar, note, run_arguments
from .forms import Commands, new
from .grammar import add_json, add_options, add_workload

#: Policies compared if nothing is named.
_POLICIES = "lru,cflru,gcar-lru,gcar-cflru"


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "compare",
        summary_of("compare"),
        """\
examples:
  flashtwin compare trace.csv.gz --device demo --policies lru,cflru,gcar-lru,gcar-cflru
  flashtwin compare trace.csv.gz --policies lru,gcar-lru --threads 2 --figure out.png
  flashtwin compare trace.csv.gz --policies lru,cflru:window=0.1,cflru:window=0.5
  flashtwin compare trace.csv.gz --policies all --threads 2
  flashtwin compare cachelib:soc=0.2,requests=1e6 --device nvme-fdp --placements none,handle,sepbit
  flashtwin compare trace.csv --device nvme-fdp --victims "greedy;greedy@noisy;mine.py:Patient" --threads 2

The device is preconditioned once, and each policy starts from a copy. With --placements or --victims, each
run preconditions a device of its own under its rules; the policy is then that of the device, unless
--policies names others. Ratios are to the first run. More than 6 runs are ranked by mean response time. A
parameter given with --set applies to the policies that have it.
""",
        command=command,
    )
    add_workload(p)
    add_options(p, WorkloadOptions, of_recordings=True)
    p.add_argument(
        "--policies",
        metavar="A,B,...",
        help=f"policies, optionally with parameters, or all (default: {_POLICIES})",
    )
    p.add_argument(
        "--placements",
        default="",
        metavar="A;B",
        help="placement schemes of a device that writes by units, with ; or , between: names "
        "(see flashtwin placement list) or FILE.py:CLASS",
    )
    p.add_argument(
        "--victims",
        default="",
        metavar="A;B",
        help="victim rules of such a device, as in greedy@noisy or FILE.py:CLASS",
    )
    p.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="runs at a time (results do not change)",
    )
    g = p.add_argument_group("output")
    add_json(g, "all summaries")
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for all summaries")
    g.add_argument("--figure", metavar="FILE", help="figure of the response times: .png, .pdf or .svg")


def command(args: argparse.Namespace) -> int:
    """Run one workload under several policies or placements."""
    from .._placement.rules import split_rules
    from .._policies import split_names

    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
    arguments = run_arguments(args, WorkloadOptions)
    placements, victims = split_rules(args.placements), split_rules(args.victims)
    given = args.policies or ("" if placements or victims else _POLICIES)
    names = split_names(given, flashtwin.policies()) or None
    began = time.monotonic()
    code = 0
    try:
        with ProgressBar() as bar:
            comparison = flashtwin.compare(
                **arguments,
                policies=names,
                placements=placements,
                victims=victims,
                threads=args.threads,
                progress=bar,
            )
    except flashtwin.Interrupted as e:
        if not isinstance(e.partial, flashtwin.Comparison):
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
        missing = [name for name in names or () if name not in comparison.policies]
        left_out = f"; not begun: {', '.join(missing)}" if missing else ""
        note(f"flashtwin: interrupted: these are partial results, of the requests so far{left_out}")
    return code


def _show(comparison: flashtwin.Comparison, wall_s: float) -> None:
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
