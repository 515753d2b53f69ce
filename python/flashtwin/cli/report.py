"""`flashtwin report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import report as write_report
from .. import words


def command(args: argparse.Namespace) -> int:
    """Write a report."""
    what = args.what[0] if len(args.what) == 1 else args.what
    write_report(what, args.output, title=args.title)
    print(f"{args.output}: {words.size(Path(args.output).stat().st_size)}")
    return 0
