"""`flashtwin leaderboard`."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path

from .. import Interrupted, policies, terminal
from ..files import write_text
from ..leaderboard import board, definition
from ..leaderboard.page import markdown, ranks, write_html
from ..policies import split_names
from .common import note
from .sweep import SweepBar


def command(args: argparse.Namespace) -> int:
    """Run the leaderboard, or what an earlier call left undone."""
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
            note("flashtwin: interrupted: finished cells are kept; the same command goes on")
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
