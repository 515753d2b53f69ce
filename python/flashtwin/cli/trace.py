"""`flashtwin trace info` and `flashtwin trace convert`."""

from __future__ import annotations

import argparse
import json

from .. import convert as convert_trace
from .. import trace_info, words
from .common import note
from .options import trace_options


def info(args: argparse.Namespace) -> int:
    """Print what a trace holds."""
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
