"""The page of model errors: one cell per drive, load and figure.

A click on a cell shows the measured and the modelled curve, and the command that runs the row again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from .._report import page
from .._report.tables import Cell as Text
from .._report.tables import HeatCell, HeatTable, Table
from .._support.files import write_text
from .check import Cell, write_cells
from .fits import SPLITS, fit_of

#: Names of the figures on the page, in the order in which tables list them.
FIGURES = {
    "kiops": "rate",
    "mb_per_s": "MB/s",
    "waf": "WAF",
    **{f"{op}_p{p}_us": f"{op} p{p}" for op in ("read", "write") for p in ("50", "99", "99.9")},
}
#: Upper bounds of the steps of the colour scale, as absolute errors in percent. The last step has no bound.
_BOUNDS = (5, 10, 20, 50)
#: Title of a table and meaning of its columns, by kind of rows.
_KINDS = {
    "latency": ("Percentiles beside writes", "rate of the row in thousands of requests a second"),
    "fill": ("Write amplification by used capacity", "GiB in use and pattern of the writes"),
    "pattern": ("Write amplification by pattern", "pattern and state before"),
    "placement": (
        "Write amplification by placement",
        "load, percentage for small objects, placement handles",
    ),
    "iops": ("Writes by pattern", "pattern"),
    "reads": ("Random reads", "processes x depth"),
}
#: Labels of the x axes of curves, by kind of rows. The x axis of all other curves is the Zipf exponent.
_ACROSS = {"latency": _KINDS["latency"][1], "fill": "GiB in use"}
_UNITS = {"kiops": "rate in thousands a second", "mb_per_s": "MB/s"}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def write_html(cells: Sequence[Cell], path: str | Path, title: str = "Errors beside measured drives") -> None:
    """Write the page as one self-contained file, and the cells as Parquet beside it.

    Args:
        cells: cells of one or several releases, the newest release first.
        path: path of the page. The Parquet file has the same name with the suffix .parquet.
        title: title of the page.

    Raises:
        FlashtwinError: a file cannot be written.
    """
    parquet = Path(path).with_suffix(".parquet")
    write_cells(cells, parquet)
    releases = list(dict.fromkeys(cell.release for cell in cells))
    newest = [cell for cell in cells if cell.release == releases[0]]
    data = {
        "kind": "drives",
        "figures": {name: f"{text}{_unit(name)}" for name, text in FIGURES.items()},
        "cells": [_data(cell) for cell in cells],
    }
    lead = _lead(newest, parquet.name)
    above = [_by_release(cells, releases), _by_split(newest)]
    text = page(title, data, above, _heat_tables(cells, releases), lead)
    write_text(Path(path), text, "the page")


def _unit(figure: str) -> str:
    return ", thousands a second" if figure == "kiops" else ", us" if figure.endswith("_us") else ""


def _data(cell: Cell) -> dict[str, Any]:
    """Return a cell for the page's script, with the curve that it belongs to and its x value."""
    key, kind, load = _parts(cell)
    curve, at = _place(kind, load)
    data = asdict(cell)
    data["line"] = str(cell)
    data["split"] = _split(cell)
    data["curve"] = "/".join((cell.device, key, kind, curve, cell.figure))
    data["at"] = at
    data["load"] = _short(load)
    data["across"] = _ACROSS.get(kind, "exponent of the Zipf distribution")
    return data


def _parts(cell: Cell) -> tuple[str, str, str]:
    """Return drive, kind and load from the name of a row."""
    key, kind, load = [*cell.row.split("/", 2), "", ""][:3]
    return key, kind, load


def _place(kind: str, load: str) -> tuple[str, float | None]:
    """Return the curve that a load belongs to, and the x value of the load on this curve.

    The x value is None if loads of this kind have no order, such as patterns.
    """
    base, _, again = load.partition("#")
    first, _, rest = base.partition("-")
    try:
        if kind == "latency":
            return again, float(base)
        if kind == "fill":
            return rest, float(first)
        if first == "zipf":
            return f"{rest.rpartition('-')[0]}#{again}", float(rest.rpartition("-")[2])
    except ValueError:
        pass
    return (base.rpartition("-")[2] if kind == "reads" else ""), None


def _short(load: str) -> str:
    """Return a short name of a load: short numbers, and no parts that are equal for all loads of a table."""
    reads = re.fullmatch(r"plain-4096-(\d+x\d+)-\w+(#\d+)?", load)
    if reads:
        return f"{reads[1]}{reads[2] or ''}"
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):g}", load)


def _split(cell: Cell) -> str:
    fit = fit_of(cell.device)
    return fit.split(cell.row, cell.figure) if fit else cell.role


def _lead(cells: Sequence[Cell], parquet: str) -> str:
    """Return the explanation of the page as HTML."""
    names = [f"up to {_BOUNDS[0]} %", *(f"to {bound} %" for bound in _BOUNDS[1:]), "more"]
    swatches = "".join(f'<span class="swatch heat-{i}">{name}</span>' for i, name in enumerate(names))
    text = (
        "Each cell is the deviation of the modelled from the measured value, in percent. Rows are drives and "
        "figures, columns are loads. Click a cell, or press Enter on it (arrow keys move between cells): a "
        "panel opens with the measured and the modelled curve, and with the command that runs the row again."
    )
    shown = [f"<p>{escape(text)}</p>"]
    fitted = '<span class="swatch marked heat-0">fitted<sup>f</sup></span>'
    shown.append(f'<p class="legend">Absolute error: {swatches} {fitted}</p>')
    shown.append(_stated(cells))
    shown.append(f"<p>All cells, with their commands, are in <code>{escape(parquet)}</code>.</p>")
    return f'<div class="lead">{"".join(shown)}</div>'


def _stated(cells: Sequence[Cell]) -> str:
    """Return how the errors are cross-validated, as HTML."""
    found = dict.fromkeys(map(_split, cells))
    if "open" in found:
        return "<p>The device is not fitted to these drives: no cell is fitted, and no cell is held out.</p>"
    count = sum(cell.role == "fitted" for cell in cells)
    splits = [f"<li>by {split}: {text}" for split, text in SPLITS.items() if split in found]
    if not splits:
        return "<p>The profile was fitted to all figures of this page: no cell is held out.</p>"
    return (
        f"<p><b>Cross-validation.</b> The profiles were fitted to {count} of {len(cells)} figures. These "
        "have a dashed frame, italics and an <sup>f</sup>. All other figures were held out: no fit used "
        "them. There is one split, not several folds. Figures are held out</p>"
        f"<ul>{';</li>'.join(splits)}.</li></ul>"
    )


def _middle(cells: Iterable[Cell]) -> tuple[float, float, int] | None:
    """Return the median absolute error, the largest one, and the number of cells that have an error.

    Returns None if no cell has an error.
    """
    errors = [abs(cell.error_percent) for cell in cells if cell.error_percent is not None]
    return (median(errors), max(errors), len(errors)) if errors else None


def _by_release(cells: Sequence[Cell], releases: Sequence[str]) -> Table:
    """Return a table of median errors: one row per release, one column per figure."""
    figures = _figures(cells)
    rows = []
    for release in releases:
        row = [Text(release)]
        for figure in figures:
            own = [cell for cell in cells if cell.release == release and cell.figure == figure]
            others = _middle(cell for cell in own if cell.role != "fitted")
            fitted = _middle(cell for cell in own if cell.role == "fitted")
            note = f"(fitted {fitted[0]:.1f})" if fitted else ""
            row.append(Text(f"{others[0]:.1f}", others[0], note) if others else Text("", None, note))
        rows.append(row)
    title = "Releases: median absolute error of figures that were not fitted, %"
    return Table(title, ["release", *(FIGURES[figure] for figure in figures)], rows)


def _by_split(cells: Sequence[Cell]) -> Table:
    """Return a table of median errors, with one column per figure.

    There is one row for each way in which cells are held out from a fit (`SPLITS`), one for the cells that a
    fit used, and one for devices without a fit. Rows without cells are omitted.
    """
    figures = _figures(cells)
    words = {
        "fitted": "used by a fit",
        **{split: f"held out by {split}" for split in SPLITS},
        "open": "device without a fit",
    }
    rows = []
    for split, text in words.items():
        own = [cell for cell in cells if _split(cell) == split]
        if not own:
            continue
        row = [Text(text)]
        for figure in figures:
            found = _middle(cell for cell in own if cell.figure == figure)
            row.append(
                Text(f"{found[0]:.1f}", found[0], f"(to {found[1]:.0f}; {found[2]})") if found else Text("")
            )
        rows.append(row)
    title = "Cross-validation: median absolute error, % (largest; number of figures)"
    return Table(title, ["figures", *(FIGURES[figure] for figure in figures)], rows)


def _figures(cells: Iterable[Cell]) -> list[str]:
    found = {cell.figure for cell in cells}
    return [figure for figure in FIGURES if figure in found]


def _heat_tables(cells: Sequence[Cell], releases: Sequence[str]) -> list[HeatTable]:
    """Return one table of cells per release and kind of load. Tables of earlier releases are collapsed."""
    numbered: dict[tuple[str, str, str], list[tuple[int, Cell]]] = {}
    for number, cell in enumerate(cells):
        _, kind, load = _parts(cell)
        part = ""
        if kind == "iops":
            part = _UNITS[cell.figure]
        elif kind == "reads":
            part = _place(kind, load)[0]
        numbered.setdefault((cell.release, kind, part), []).append((number, cell))
    order = list(_KINDS)
    tables = []
    for (release, kind, part), own in sorted(
        numbered.items(), key=lambda pair: (releases.index(pair[0][0]), order.index(pair[0][1]))
    ):
        title, note = _KINDS[kind]
        title = f"{title}, {part}" if part else title
        title = f"{title} ({release})" if len(releases) > 1 else title
        tables.append(_heat_table(title, note, own, folded=release != releases[0]))
    return tables


def _heat_table(title: str, note: str, own: Sequence[tuple[int, Cell]], *, folded: bool) -> HeatTable:
    loads = sorted({_parts(cell)[2] for _, cell in own}, key=_natural)
    figures = _figures(cell for _, cell in own)
    places: dict[str, dict[str, dict[str, HeatCell]]] = {}
    for number, cell in own:
        key, _, load = _parts(cell)
        head = f"{cell.drive} ({key}), {cell.device}"
        figure = FIGURES[cell.figure] if len(figures) > 1 else ""
        places.setdefault(head, {}).setdefault(figure, {})[load] = _heat_cell(number, cell)
    heads = [FIGURES[figure] for figure in figures] if len(figures) > 1 else [""]
    groups: dict[str, Mapping[str, Sequence[HeatCell | None]]] = {
        head: {name: [rows[name].get(load) for load in loads] for name in heads if name in rows}
        for head, rows in places.items()
    }
    return HeatTable(title, f"Columns: {note}.", [_short(load) for load in loads], groups, folded)


def _heat_cell(number: int, cell: Cell) -> HeatCell:
    if cell.error_percent is None:
        return HeatCell(number, "not run", None)
    error = abs(cell.error_percent)
    text = f"{cell.error_percent:+.1f}" if error < 99.95 else f"{cell.error_percent:+.0f}"
    return HeatCell(number, text, sum(error > bound for bound in _BOUNDS), cell.role == "fitted")


def _natural(text: str) -> list[tuple[int, float, str]]:
    """Return a sort key for texts that contain numbers: "a9" is sorted before "a10"."""
    parts = _NUMBER.split(text)
    return [(1, float(part), "") if i % 2 else (0, 0.0, part) for i, part in enumerate(parts)]
