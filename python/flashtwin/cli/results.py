"""`flashtwin results show` and `query`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .. import results as open_results
from .._results import require_duckdb
from .._results.show import failures, legend, rich_tables
from .._support import terminal
from .._support.tables import csv_text
from .commands import summary_of
from .forms import Commands, family, new

if TYPE_CHECKING:
    import pyarrow as pa


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "results", summary_of("results"))
    p = new(
        inner,
        "show",
        "Print statistics over seeds, and ratios to the baseline.",
        """\
examples:
  flashtwin results show experiment.sweep
  flashtwin results show experiment.sweep --figures all_p9999_us,flash_gc_share_mean
  flashtwin results show experiment.sweep --csv > statistics.csv
""",
        command=show,
    )
    p.add_argument("directory", metavar="DIR", help="directory of a sweep")
    p.add_argument("--figures", metavar="A,B,...", help="columns to show (default: those of the experiment)")
    p.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="P",
        help="confidence of the intervals (default: 0.95)",
    )
    _add_form(p)
    p = new(
        inner,
        "query",
        "Query in SQL with DuckDB. The tables are cells and statistics.",
        """\
examples:
  flashtwin results query experiment.sweep "select policy, avg(all_p99_us) from cells group by policy"
  flashtwin results query experiment.sweep "describe cells"
""",
        command=query,
    )
    p.add_argument("directory", metavar="DIR", help="directory of a sweep")
    p.add_argument("sql", metavar="SQL")
    _add_form(p)


def _add_form(p: argparse.ArgumentParser) -> None:
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print rows as JSON")
    form.add_argument("--csv", action="store_true", help="print rows as CSV")


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
    """Print the result of a SQL query."""
    require_duckdb()
    found = open_results(args.directory)
    table = found.query(args.sql)
    # Columns on the left of a query's result identify its rows if they are axes of the sweep.
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
