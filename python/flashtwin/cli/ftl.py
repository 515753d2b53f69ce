"""`flashtwin ftl list`, `show` and `trace`."""

from __future__ import annotations

import argparse
import json

from .. import ftl_info, ftls, trace_ftl
from .commands import summary_of
from .forms import Commands, family, new
from .grammar import add_json
from .options import overrides


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "ftl", summary_of("ftl"))
    p = new(inner, "list", "List the translation layers.", command=list_all)
    add_json(p, "them")
    p = new(
        inner,
        "show",
        "Describe a translation layer: rule, source, parameters, an example.",
        "example:\n  flashtwin ftl show fast\n",
        command=show,
    )
    p.add_argument("ftl", metavar="NAME")
    add_json(p, "it")
    _add_trace(inner)


def _add_trace(inner: Commands) -> None:

    p = new(
        inner,
        "trace",
        "Step a translation layer through a string of accesses and count flash operations.",
        """\
examples:
  flashtwin ftl trace fast --set rw_log_blocks=2 "0 1 2 3 4 9 13"
  flashtwin ftl trace dftl --set cmt_entries=2 --set entries_per_translation_page=4 "R0 1 R4 2 F"

7 writes page 7, 4x3 writes pages 4 to 6, R7 reads page 7, T7 trims it, and F writes the changed map entries
to flash. At first, all pages are written in order; these writes are not counted. A copy is a read and a
program. In a state, - is a stale page.
""",
        command=trace,
    )
    p.add_argument("ftl", metavar="NAME")
    p.add_argument("accesses", metavar="ACCESSES", nargs="+", help="access string, such as 0 1 R5 T3")
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the layer, such as rw_log_blocks=2",
    )
    p.add_argument("--blocks", type=int, default=16, metavar="N", help="blocks of the chip (default: 16)")
    p.add_argument(
        "--pages-per-block", type=int, default=4, metavar="N", help="pages in an erase block (default: 4)"
    )
    p.add_argument(
        "--logical-pages", type=int, metavar="N", help="exported pages (default: half of the chip)"
    )
    p.add_argument(
        "--empty", action="store_true", help="start with erased blocks (default: all pages written)"
    )
    add_json(p, "the steps and their total")


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
    """Print the description of a translation layer."""
    info = ftl_info(args.ftl)
    print(json.dumps(info, indent=2) if args.json else repr(info))
    return 0


def trace(args: argparse.Namespace) -> int:
    """Apply a string of accesses to a flash translation layer."""
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
