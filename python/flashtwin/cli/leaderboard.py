"""`flashtwin leaderboard`."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path

from .. import Interrupted, policies
from .._policies import split_names
from .._support import terminal
from .._support.files import write_text
from ..leaderboard import board, definition
from ..leaderboard.page import markdown, ranks, write_html
from .commands import summary_of
from .common import note
from .forms import Commands, new
from .grammar import add_workers
from .sweep import SweepBar


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "leaderboard",
        summary_of("leaderboard"),
        """\
examples:
  flashtwin leaderboard
  flashtwin leaderboard --policies cflru,cflru:window=64,gcar-cflru -o windows
  flashtwin leaderboard --full --dask tcp://head:8786

Each situation is a sweep. Finished cells are saved at once, and the same command continues an interrupted
leaderboard. The directory receives leaderboard.json, leaderboard.md and leaderboard.html; each row of the
page has the command that repeats it. The exit code is 1 if cells failed.
""",
        command=command,
    )
    p.add_argument(
        "--policies",
        default="all",
        metavar="A,B,...",
        help="policies to compare with lru, optionally with parameters (default: all)",
    )
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="short runs, a few minutes (default)")
    size.add_argument("--full", action="store_true", help="long runs with more seeds, hours")
    p.add_argument(
        "-o",
        "--output",
        default="leaderboard",
        metavar="DIR",
        help="directory for the results (default: leaderboard)",
    )
    p.add_argument(
        "--traces",
        metavar="DIR",
        help="folder of traces that replace stand-ins (default: $FLASHTWIN_TRACES)",
    )
    p.add_argument("--json", action="store_true", help="print only the outcome, as JSON")
    add_workers(p)


def command(args: argparse.Namespace) -> int:
    """Run the leaderboard, or the cells that an earlier call has not finished."""
    directory = Path(args.output)
    matrices = list(definition().matrices)
    with ExitStack() as bars:

        def progress(matrix: str) -> SweepBar:
            bars.close()
            note(f"{matrix} ({matrices.index(matrix) + 1} of {len(matrices)})")
            return bars.enter_context(SweepBar())

        try:
            outcome = board(
                directory,
                variant="full" if args.full else "quick",
                policies=split_names(args.policies, policies()),
                threads=args.threads,
                dask=args.dask,
                traces=args.traces,
                progress=progress,
            )
        except Interrupted:
            bars.close()
            note("flashtwin: interrupted: finished cells are kept; repeat the command to continue")
            return 130
    write_text(directory / "leaderboard.md", markdown(outcome), "the page")
    write_html(outcome, directory / "leaderboard.html")
    if args.json:
        print(json.dumps(outcome, indent=1))
        return int(outcome["failed"] > 0)
    console = terminal.console()
    for title, heads, rows in ranks(outcome):
        print(f"{title}:")
        for table in terminal.tables(heads, rows, 1, console.width):
            console.print(table)
    print(f"{directory}: leaderboard.json, leaderboard.md, leaderboard.html")
    return int(outcome["failed"] > 0)
