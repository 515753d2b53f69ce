"""`flashtwin trace info` and `flashtwin trace convert`."""

from __future__ import annotations

import argparse
import json

import flashtwin

from .._support import terminal, words
from .commands import summary_of
from .common import note
from .forms import Commands, family, new
from .grammar import add_json, add_trace_options
from .options import trace_options


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "trace", summary_of("trace"))
    p = new(
        inner,
        "info",
        "Summarise a trace, or compare it with a generated load.",
        """\
examples:
  flashtwin trace info trace.csv.gz
  flashtwin trace info hm_0.csv.gz --against zipf:theta=1.05,range=472M,write=0.65,rate=6.6/s
""",
        command=info,
    )
    p.add_argument("trace", metavar="TRACE")
    p.add_argument(
        "--against",
        metavar="LOAD",
        help="generated load to compare with, of as many requests as the trace has",
    )
    add_trace_options(p)
    add_json(p, "it")
    p = new(
        inner,
        "convert",
        "Write a trace in our binary or text form.",
        """\
examples:
  flashtwin trace convert trace.csv.gz trace.ftb        binary, read without parsing
  flashtwin trace convert trace.csv.gz trace.csv.zst    text
""",
        command=convert,
    )
    p.add_argument("source", metavar="TRACE")
    p.add_argument(
        "target", metavar="NEW", help="output file: .ftb or .csv, optionally followed by .zst or .gz"
    )
    add_trace_options(p)


def info(args: argparse.Namespace) -> int:
    """Print the summary of a trace and, with --against, that of a generated load beside it."""
    if args.against is not None:
        from .._support.stand_in import against

        heads = ["figure", "trace", "load"]
        rows = against(args.trace, args.against, trace_options(args))
        if args.json:
            print(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2))
        else:
            console = terminal.console()
            for table in terminal.tables(heads, list(map(list, rows)), 1, console.width):
                console.print(table)
        return 0
    summary = flashtwin.trace_info(args.trace, trace_options(args))
    print(json.dumps(summary, indent=2) if args.json else repr(summary).rstrip("\n"))
    return 0


def convert(args: argparse.Namespace) -> int:
    """Write a trace in another form."""
    done = flashtwin.convert(args.source, args.target, trace_options(args))
    note(done.source)
    for warning in done.warnings:
        note(f"warning: {warning}")
    print(f"{args.target}: {words.count(done.requests)} requests, {words.size(done.size_bytes)}")
    return 0
