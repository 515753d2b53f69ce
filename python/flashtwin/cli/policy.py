"""`flashtwin policy list`, `show`, `trace` and `hits`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .. import (
    FlashtwinError,
    HitTable,
    Interrupted,
    _core,
    policies,
    policy_info,
    terminal,
    trace_policy,
    words,
)
from .. import hits as count_hits
from ..policies import split_names
from ..workloads import generated, source
from .common import ProgressBar, note
from .options import overrides, trace_options


def list_all(args: argparse.Namespace) -> int:
    """List all policies."""
    every = [policy_info(name) for name in _core.catalog_names()]
    if args.json:
        keys = ("name", "title", "description", "family", "provenance", "offline")
        print(json.dumps([{key: info[key] for key in keys} for info in every], indent=2))
        return 0
    family = None
    for info in every:
        if info["family"] != family:
            family = info["family"]
            print(f"{family}:")
        offline = " (hit ratios only)" if info["offline"] else ""
        print(f"  {info['name']:<18} {info['description']}{offline}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print what a policy does."""
    info = policy_info(args.policy)
    print(json.dumps(info, indent=2) if args.json else repr(info))
    return 0


def trace(args: argparse.Namespace) -> int:
    """Step a policy through a string of accesses."""
    steps = trace_policy(
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


def hits(args: argparse.Namespace) -> int:
    """Count hits of policies in buffers of several sizes."""
    if (args.trace is None) == (args.workload is None):
        raise FlashtwinError("give either a trace file or --workload SPEC (see flashtwin policy hits --help)")
    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
    options = trace_options(args)
    workload = args.workload if args.trace is None else args.trace
    opened = generated(workload) if args.trace is None else source(workload, options)
    if opened.path is not None:
        note(opened.open(0, 0).describe())
    everything = [name for name in policies() if not name.startswith("gcar-")] + ["min"]
    code = 0
    try:
        with ProgressBar() as bar:
            table = count_hits(
                workload,
                split_names(args.policies, everything),
                _capacities(args.capacity, args.page_bytes),
                page_bytes=args.page_bytes,
                seed=args.seed,
                requests_max=args.requests_max,
                trace_options=options,
                threads=args.threads,
                progress=bar,
            )
    except Interrupted as e:
        if not isinstance(e.partial, HitTable):
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
        print("flashtwin: interrupted: what was counted so far", file=sys.stderr, flush=True)
    return code


def _show(table: HitTable) -> None:
    console = terminal.console()
    for shown in table.rich_tables(console.width):
        console.print(shown)
    if table.legend():
        print(table.legend())


def _capacities(text: str, page_bytes: int) -> list[int]:
    """Read `--capacity`, sizes as in 1MiB,32MiB, in pages."""
    capacities = []
    for part in (piece.strip() for piece in text.split(",")):
        size = words.read_size(part)
        if size is None or page_bytes < 1 or size < 1 or size % page_bytes:
            raise FlashtwinError(
                f"--capacity {part}: give whole pages of {page_bytes} bytes, as in 1MiB,32MiB"
            )
        capacities.append(size // page_bytes)
    return capacities
