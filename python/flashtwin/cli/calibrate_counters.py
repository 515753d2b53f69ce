"""`flashtwin calibrate counters`."""

from __future__ import annotations

import argparse

from ..calibrate.counted import points_of_results, points_of_tables
from ..calibrate.identify import GIB, identify
from ..errors import FlashtwinError
from .forms import Commands, new
from .grammar import add_json


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "counters",
        "Identify overhead, reserve, watermark and victim rule from counters of a drive.",
        """\
examples:
  flashtwin calibrate plan --target /dev/nvme0n1 --counters -o plan
  sudo plan/counters.sh
  flashtwin calibrate counters plan/results
  flashtwin calibrate counters --table wa_by_fill.csv --drive mp0 --capacity-gib 745.2

Counters are those that nvme-cli reads, or those of a published table. Response times are not needed.
""",
        command=run_counters,
    )
    p.add_argument("results", nargs="?", metavar="RESULTS", help="directory with the results of counters.sh")
    p.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="FILE",
        help="CSV file with write amplification of drives; may be repeated",
    )
    p.add_argument("--drive", metavar="KEY", help="drive of the tables")
    p.add_argument("--capacity-gib", type=float, metavar="N", help="capacity of the drive of the tables")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of modelled loads (default: 1)")
    add_json(p, "the parameters")


def run_counters(args: argparse.Namespace) -> int:
    """Identify parameters."""
    if (args.results is None) == (not args.table):
        raise FlashtwinError("give RESULTS, or --table with --drive and --capacity-gib")
    if args.table:
        if not args.drive or not args.capacity_gib or args.capacity_gib <= 0:
            raise FlashtwinError("--table needs --drive and --capacity-gib (above 0)")
        capacity = args.capacity_gib * GIB
        points = points_of_tables(args.table, args.drive, capacity)
    else:
        points, capacity = points_of_results(args.results)
    found = identify(points, capacity, args.seed)
    print(found.to_json() if args.json else found)
    return 0
