"""`flashtwin ftl list`, `show` and `trace`."""

from __future__ import annotations

import argparse
import json

from .. import ftl_info, ftls, trace_ftl
from .options import overrides


def list_all(args: argparse.Namespace) -> int:
    """List the translation layers."""
    every = [ftl_info(name) for name in ftls()]
    if args.json:
        keys = ("name", "title", "description", "provenance")
        print(json.dumps([{key: info[key] for key in keys} for info in every], indent=2))
        return 0
    for info in every:
        print(f"{info['name']:<8} {info['description']}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print what a translation layer does."""
    info = ftl_info(args.ftl)
    print(json.dumps(info, indent=2) if args.json else repr(info))
    return 0


def trace(args: argparse.Namespace) -> int:
    """Step a translation layer through a string of accesses."""
    steps = trace_ftl(
        args.ftl,
        args.accesses,
        set=overrides(args),
        blocks=args.blocks,
        pages_per_block=args.pages_per_block,
        logical_pages=args.logical_pages,
        empty=args.empty,
    )
    print(json.dumps({"steps": steps, "total": steps.total}, indent=2) if args.json else repr(steps))
    return 0
