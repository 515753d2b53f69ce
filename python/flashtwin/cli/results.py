"""`flashtwin results show` and `query`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .. import results as open_results
from .. import terminal
from ..results import require_duckdb
from ..results.show import failures, legend, rich_tables
from ..tables import csv_text

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
    require_duckdb()
    found = open_results(args.directory)
    table = found.query(args.sql)
    # The axes distinguish a row from the others, where the query begins with them.
    axes = {*found.axes, "figure"}
    keys = next((i for i, name in enumerate(table.column_names) if name not in axes), table.num_columns)
    _print(table, args, max(1, keys))
    return 0


def _print(table: pa.Table, args: argparse.Namespace, keys: int = 1) -> None:
    if args.json:
        print(json.dumps(table.to_pylist(), indent=2, default=str))
        return
    if args.csv:
        print(csv_text(table), end="")
        return
    rows = list(zip(*table.to_pydict().values(), strict=True))
    shown = [["" if value is None else _short(value) for value in row] for row in rows]
    texts = [i for i in range(table.num_columns) if not all(_is_number(row[i]) for row in rows)]
    console = terminal.console()
    for each in terminal.tables(table.column_names, shown, keys, console.width, texts):
        console.print(each)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, (int, float))


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
