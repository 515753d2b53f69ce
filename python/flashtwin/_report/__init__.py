"""Reports: one or several runs, or a sweep, as one HTML page that needs no network (docs/reports.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from .. import _core
from .._results import Results
from .._support.files import write_text
from .._support.inputs import is_dir
from .._support.record import labels_of, record_of
from ..errors import FlashtwinError
from ..result import Result
from .data import of_runs, of_sweep

if TYPE_CHECKING:
    from .tables import HeatTable, Table

__all__ = ["page", "report"]

_HERE = Path(__file__).parent
#: More runs than this are a sweep.
_RUNS_MAX = 12


def report(
    what: Result | Results | str | os.PathLike[str] | Sequence[Result | str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> None:
    """Write a report: one self-contained HTML file.

    The same results give the same bytes.

    Args:
        what: one run, several runs, or a sweep. A run is a `Result` or a file of `Result.save`; it has charts
            over time if `run` had `history=True`. In a list of runs, all are compared with the first. A sweep
            is its results or its directory.
        path: path of the page.
        title: title of the page; by default derived from the runs.

    Raises:
        FlashtwinError: there is nothing to report on, or the file cannot be written.
    """
    sweep = _sweep_of(what)
    if sweep is not None:
        data, above, below = of_sweep(sweep)
        title = title or sweep.name or "Sweep"
    else:
        each = [what] if isinstance(what, (Result, str, os.PathLike)) else list(what)  # type: ignore[arg-type]
        if not 1 <= len(each) <= _RUNS_MAX:
            raise FlashtwinError(f"{len(each)} runs: give 1 to {_RUNS_MAX}, or a sweep for more")
        records = [record_of(one) for one in each]
        labels = labels_of(records)
        data, above, below = of_runs(records, labels)
        title = title or f"{records[0].summary['device']}: {' beside '.join(labels)}"
    write_text(Path(path), page(title, data, above, below), "the report")


def _sweep_of(what: object) -> Results | None:
    if isinstance(what, Results):
        return what
    is_sweep = isinstance(what, (str, os.PathLike)) and ("://" in str(what) or is_dir(what))
    return Results(what) if is_sweep else None  # type: ignore[arg-type]


def page(
    title: str,
    data: dict[str, Any],
    above: Sequence[Table | HeatTable],
    below: Sequence[Table | HeatTable],
    lead: str = "",
) -> str:
    """Return a page: the HTML `lead`, tables, the charts that page.js draws from `data`, more tables."""

    def part(name: str) -> str:
        return (_HERE / name).read_text(encoding="utf-8")

    def tables(those: Sequence[Table | HeatTable]) -> str:
        return f'<div class="tables">{"".join(table.html() for table in those)}</div>'

    # A text that contains "</script>" would end the script.
    as_json = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Template(part("page.html")).substitute(
        title=escape(title),
        made=f"flashtwin {_core.__version__}. Times are virtual. Click a column's head to sort by it.",
        css=part("page.css"),
        top=lead + tables(above),
        bottom=tables(below),
        data=as_json,
        echarts=part("echarts/echarts.min.js"),
        charts=part("charts.js"),
        script=part("page.js"),
    )
