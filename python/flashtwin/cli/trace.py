"""`flashtwin trace info` and `flashtwin trace convert`."""

from __future__ import annotations

import argparse
import json

from .. import convert as convert_trace
from .. import terminal, trace_info, words
from ..stand_in import against
from .common import note
from .options import trace_options


def info(args: argparse.Namespace) -> int:
    """Print what a trace holds, perhaps beside a generated load."""
    if args.against is not None:
        heads = ["figure", "trace", "load"]
        rows = against(args.trace, args.against, trace_options(args))
        if args.json:
            print(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2))
        else:
            console = terminal.console()
            for table in terminal.tables(heads, list(map(list, rows)), 1, console.width):
                console.print(table)
        return 0
    summary = trace_info(args.trace, trace_options(args))
    print(json.dumps(summary, indent=2) if args.json else repr(summary).rstrip("\n"))
    return 0


def convert(args: argparse.Namespace) -> int:
    """Write a trace in another form."""
    done = convert_trace(args.source, args.target, trace_options(args))
    note(done.source)
    for warning in done.warnings:
        note(f"warning: {warning}")
    print(f"{args.target}: {words.count(done.requests)} requests, {words.size(done.size_bytes)}")
    return 0
