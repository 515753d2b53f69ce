"""`flashtwin report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import report as write_report
from .._support import words
from .commands import summary_of
from .forms import Commands, new


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "report",
        summary_of("report"),
        """\
examples:
  flashtwin run trace.csv.gz --device demo --record lru.json
  flashtwin report lru.json -o report.html
  flashtwin report lru.json gcar.json -o both.html
  flashtwin report experiment.sweep -o sweep.html

Several runs are compared with the first.
""",
        command=command,
    )
    p.add_argument(
        "what",
        nargs="+",
        metavar="RUN|SWEEP",
        help="files written by run --record, or the directory of a sweep",
    )
    p.add_argument(
        "-o",
        "--output",
        default="report.html",
        metavar="FILE",
        help="HTML file to write (default: report.html)",
    )
    p.add_argument("--title", metavar="TEXT", help="title of the page")


def command(args: argparse.Namespace) -> int:
    """Write a report."""
    what = args.what[0] if len(args.what) == 1 else args.what
    write_report(what, args.output, title=args.title)
    print(f"{args.output}: {words.size(Path(args.output).stat().st_size)}")
    return 0
