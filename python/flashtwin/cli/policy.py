"""`flashtwin policy list`, `show`, `trace`, `hits` and `curve`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Literal

import flashtwin

from .. import _core
from .._support import terminal, words
from ..errors import FlashtwinError, Interrupted
from ..hit_ratios import PAGES_MAX
from .commands import summary_of
from .common import ProgressBar, note
from .forms import Commands, family, new
from .grammar import add_json, add_workload
from .options import overrides, trace_options


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "policy", summary_of("policy"))
    p = new(inner, "list", "List all policies.", command=list_all)
    add_json(p, "them")
    p = new(
        inner,
        "show",
        "Describe a policy: rule, source, parameters, an example.",
        "examples:\n  flashtwin policy show cflru\n  flashtwin policy show gcar-lru\n",
        command=show,
    )
    p.add_argument("policy", metavar="NAME")
    add_json(p, "it")
    _add_trace(inner)
    _add_hits(inner)
    _add_curve(inner)


def _add_trace(inner: Commands) -> None:

    p = new(
        inner,
        "trace",
        "Step a policy through a string of accesses, as the examples of papers do.",
        """\
examples:
  flashtwin policy trace cflru --capacity 4 --set window=2 "W1 R2 W3 W4 R5 W6 R7"
  flashtwin policy trace gcar-lru --capacity 4 --chips 2 "W1 W2 R3 W4 gc+1 W6 R8"
  flashtwin policy trace mine.py:Mine --capacity 4 "W1 R2 W3"     # a class of your own

W1 writes page 1, R2 reads page 2, W4x3 writes pages 4 to 6 in one request, trim1 trims page 1. gc+0 begins
and gc-0 ends a garbage collection on chip 0, drain0=500 gives chip 0 pending work of 500 us, idle0 makes it
idle, and t+100 lets 100 ms pass. Pages are striped over the chips. In a state, 7d is page 7, dirty, and 7c is
page 7, clean; the most recent page is first.
""",
        command=trace,
    )
    p.add_argument("policy", metavar="NAME")
    p.add_argument("accesses", metavar="ACCESSES", nargs="+", help="access string, such as W1 R2 W3")
    p.add_argument(
        "--capacity", type=int, required=True, metavar="N", help="capacity of the buffer, in pages"
    )
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the policy, such as window=2",
    )
    p.add_argument("--chips", type=int, default=1, metavar="N", help="number of chips (default: 1)")
    p.add_argument(
        "--stride", type=int, default=1, metavar="N", help="consecutive pages on a chip (default: 1)"
    )
    p.add_argument(
        "--pages-per-block", type=int, default=4, metavar="N", help="pages in an erase block (default: 4)"
    )
    add_json(p, "the steps")


def _add_hits(inner: Commands) -> None:

    p = new(
        inner,
        "hits",
        "Count hits of policies in buffers of several sizes, without a device.",
        """\
examples:
  flashtwin policy hits trace.csv.gz --policies lru,arc,s3-fifo,min --capacity 1MiB,32MiB
  flashtwin policy hits trace.csv.gz --policies all --capacity 4MiB --figure out.png
  flashtwin policy hits trace.csv.gz --policies arc,mine.py:Mine --capacity 4MiB

min is Belady's optimum: the largest possible number of hits, computed with knowledge of all future accesses.
""",
        command=hits,
    )
    add_workload(p)
    p.add_argument(
        "--policies",
        default="lru,arc,s3-fifo,min",
        metavar="A,B,...",
        help="policies, or all (default: lru,arc,s3-fifo,min)",
    )
    p.add_argument(
        "--capacity",
        required=True,
        metavar="SIZE,...",
        help="buffer sizes, such as 1MiB,32MiB, or shares of the trace's different pages, such as 1%%,10%%",
    )
    _add_accesses(p)
    p.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="policies to run at a time (results do not change)",
    )
    g = p.add_argument_group("output")
    add_json(g, "the rows")
    g.add_argument("--figure", metavar="FILE", help="figure of the hit ratios: .png, .pdf or .svg")


def _add_accesses(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--page-bytes", type=int, default=4096, metavar="N", help="page size in bytes (default: 4096)"
    )
    p.add_argument("--requests-max", type=int, metavar="N", help="maximum number of requests")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the generator (default: 1)")


def _add_curve(inner: Commands) -> None:
    p = new(
        inner,
        "curve",
        "Compute hit ratios and write-backs by the size of the buffer: for LRU at all sizes in one pass.",
        """\
examples:
  flashtwin policy curve trace.csv.gz
  flashtwin policy curve trace.csv.gz --sizes all --csv lru.csv
  flashtwin policy curve trace.csv.gz --policies lru,arc,s3-fifo,min --sizes 12 --figure out.png
  flashtwin policy curve trace.csv.gz --policies lru,arc --sizes 1MiB,8MiB,64MiB --sample 0.01

LRU is exact at all sizes after one pass, because a buffer of C pages holds the C pages accessed last. Other
policies run once per size, several runs at a time.

--sample 0.01 follows one page in a hundred, chosen by hash. LRU is then estimated by SHARDS, and other
policies run in a buffer of a hundredth of the size (miniature simulation). The column +- is the error of the
estimate. If the sample has fewer than some thousand pages, the error is large: give a larger share.

Columns: hit ratio; hit ratio of writes; pages written back (dirty evictions), also per page written: what
the buffer does not absorb; mean number of pages that an eviction writes back together.
""",
        command=curve,
    )
    add_workload(p)
    p.add_argument("--policies", default="lru", metavar="A,B,...", help="policies, or all (default: lru)")
    p.add_argument(
        "--sizes",
        default="16",
        metavar="N|SIZE,...|all",
        help="number of sizes, at equal ratios up to the pages of the workload; or sizes, such as "
        "1MiB,32MiB, or shares of these pages, such as 1%%,10%%; or all, for lru (default: 16)",
    )
    p.add_argument(
        "--sample",
        type=float,
        metavar="RATE",
        help="share of the pages to follow, such as 0.01 (default: all)",
    )
    _add_accesses(p)
    p.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="runs at a time (default: the number of processors; results do not change)",
    )
    g = p.add_argument_group("output")
    add_json(g, "the rows")
    g.add_argument("--csv", metavar="FILE", help="CSV file for the rows; Parquet if it ends in .parquet")
    g.add_argument("--figure", metavar="FILE", help="figure of the curves: .png, .pdf or .svg")


#: For each family of policies, the situations in which its policies are useful.
_SITUATIONS = {
    "Recency and clean pages": "reads and writes share the buffer, and a clean page costs no write",
    "Blocks of pages": "a block mapping, or writes of runs of pages",
    "State of the chips": "pages stay on their chips, and requests wait for chips or collections",
    "Caches in general": "hits matter more than what an eviction costs",
}


def list_all(args: argparse.Namespace) -> int:
    """List all policies."""
    every = [flashtwin.policy_info(name) for name in _core.catalog_names()]
    if args.json:
        keys = ("name", "title", "description", "family", "provenance", "offline")
        print(json.dumps([{key: info[key] for key in keys} for info in every], indent=2))
        return 0
    family = None
    for info in every:
        if info["family"] != family:
            family = info["family"]
            print(f"{family}: where {_SITUATIONS[family]}")
        offline = " (hit ratios only)" if info["offline"] else ""
        print(f"  {info['name']:<18} {info['description']}{offline}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print the description of a policy."""
    info = flashtwin.policy_info(args.policy)
    print(json.dumps(info, indent=2) if args.json else repr(info))
    return 0


def trace(args: argparse.Namespace) -> int:
    """Apply a string of accesses to a policy."""
    steps = flashtwin.trace_policy(
        args.policy,
        args.accesses,
        capacity=args.capacity,
        set=overrides(args),
        chips=args.chips,
        stride_pages=args.stride,
        pages_per_block=args.pages_per_block,
    )
    print(json.dumps(steps, indent=2) if args.json else repr(steps))
    return 0


def _arguments(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return the arguments that `hits` and `curve` have in common. Print the detected format of a trace."""
    from .._policies import split_names
    from ..workloads import generated, source

    if (args.trace is None) == (args.workload is None):
        raise FlashtwinError(
            f"give either a trace file or --workload SPEC (see flashtwin policy {name} --help)"
        )
    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
    options = trace_options(args)
    workload = args.workload if args.trace is None else args.trace
    opened = generated(workload) if args.trace is None else source(workload, options)
    if opened.path is not None:
        note(opened.open(0, 0).describe())
    everything = [name for name in flashtwin.policies() if not name.startswith("gcar-")] + ["min"]
    return {
        "workload": workload,
        "policies": split_names(args.policies, everything),
        "page_bytes": args.page_bytes,
        "seed": args.seed,
        "requests_max": args.requests_max,
        "trace_options": options,
        "threads": args.threads,
    }


def curve(args: argparse.Namespace) -> int:
    """Compute hit ratios and write-backs as functions of the buffer's size."""
    arguments = _arguments(args, "curve")
    sizes = _sizes(args.sizes, args.page_bytes)
    if sizes == "all" and not (args.json or args.csv or args.figure):
        raise FlashtwinError(
            "--sizes all: add --csv FILE, --figure FILE or --json, or give a number of sizes"
        )
    code = 0
    try:
        with ProgressBar() as bar:
            table = flashtwin.curve(**arguments, sizes=sizes, sample=args.sample, progress=bar)
    except Interrupted as e:
        if not isinstance(e.partial, flashtwin.CurveTable):
            raise
        table, code = e.partial, 130
    if args.json:
        print(table.to_json())
    else:
        if sizes != "all":
            console = terminal.console()
            for shown in table.rich_tables(console.width):
                console.print(shown)
        print("\n".join(table.summary()))
    if args.csv:
        table.save(args.csv)
        note(f"rows: {args.csv}")
    if args.figure:
        table.figure(args.figure)
        note(f"figure: {args.figure}")
    if code:
        print("flashtwin: interrupted: partial counts", file=sys.stderr, flush=True)
    return code


def hits(args: argparse.Namespace) -> int:
    """Count hits of policies in buffers of several sizes."""
    arguments = _arguments(args, "hits")
    code = 0
    try:
        with ProgressBar() as bar:
            capacities = _capacities("--capacity", args.capacity, args.page_bytes)
            table = flashtwin.hits(**arguments, capacities_pages=capacities, progress=bar)
    except Interrupted as e:
        if not isinstance(e.partial, flashtwin.HitTable):
            raise
        table, code = e.partial, 130
    if args.json:
        print(table.to_json())
    else:
        _show(table)
    if args.figure:
        table.figure(args.figure)
        note(f"figure: {args.figure}")
    if code:
        print("flashtwin: interrupted: partial counts", file=sys.stderr, flush=True)
    return code


def _show(table: flashtwin.HitTable) -> None:
    console = terminal.console()
    for shown in table.rich_tables(console.width):
        console.print(shown)
    if table.legend():
        print(table.legend())


def _sizes(text: str, page_bytes: int) -> int | list[int | str] | Literal["all"]:
    """Read `--sizes`, which is a number of sizes, a list of sizes, or "all"."""
    if text == "all":
        return "all"
    return int(text) if text.isdecimal() else _capacities("--sizes", text, page_bytes)


def _capacities(flag: str, text: str, page_bytes: int) -> list[int | str]:
    """Read a list of sizes such as 1MiB,32MiB, and convert it to pages. Shares such as 10% are kept."""
    capacities: list[int | str] = []
    for part in (piece.strip() for piece in text.split(",")):
        if words.read_percent(part):
            capacities.append(part)
            continue
        size = words.read_size(part)
        if size is None or page_bytes < 1 or size < 1 or size % page_bytes:
            raise FlashtwinError(
                f"{flag} {part}: give whole pages of {page_bytes} bytes, as in 1MiB,32MiB, or a share of the "
                "different pages of the trace, as in 10%"
            )
        if size // page_bytes > PAGES_MAX:
            raise FlashtwinError(f"{flag} {part}: give at most {words.size(page_bytes * PAGES_MAX)}")
        capacities.append(size // page_bytes)
    return capacities
