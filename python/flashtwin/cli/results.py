"""`flashtwin results show` and `query`."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import TYPE_CHECKING

from .. import results as open_results
from .. import terminal
from ..results.show import failures, legend, rich_tables

if TYPE_CHECKING:
    import pyarrow as pa


def show(args: argparse.Namespace) -> int:
    """Print statistics."""
    found = open_results(args.directory)
    figures = [f.strip() for f in args.figures.split(",") if f.strip()] if args.figures else found.figures
    if args.json or args.csv:
        _print(found.statistics(figures, args.confidence), args)
        return 0
    console = terminal.console()
    for table in rich_tables(found, figures, args.confidence, console.width):
        console.print(table)
    for line in (legend(found, args.confidence), *failures(found)):
        print(line)
    return 0


def query(args: argparse.Namespace) -> int:
    """Print what SQL asks for."""
    _print(open_results(args.directory).query(args.sql), args)
    return 0


def _print(table: pa.Table, args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps(table.to_pylist(), indent=2, default=str))
        return
    rows = zip(*table.to_pydict().values(), strict=True)
    if args.csv:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(table.column_names)
        out.writerows(rows)
        return
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in table.column_names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*("" if value is None else _short(value) for value in row))
    terminal.console().print(shown)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
