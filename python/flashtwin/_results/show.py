"""Results as a table for a terminal: one line per point with mean, interval, and ratio to the baseline."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from .._support import terminal, words

if TYPE_CHECKING:
    from rich.table import Table

    from . import Results


def said(figure: str, value: float) -> str:
    """Format the value of a figure. The end of the figure's name gives the unit."""
    if figure.endswith("_us"):
        return ("-" if value < 0 else "") + words.time(abs(value))
    if figure.endswith(("ratio", "_share_mean", "_share_max")):
        return words.percent(value)
    return words.count(value) if abs(value) >= 1000 else f"{value:.4g}"


def legend(results: Results, confidence: float = 0.95) -> str:
    """Describe the columns in one line."""
    seeds = len(results.axes["seed"])
    parts = [f"mean over {seeds} seeds +- {confidence * 100:g} % interval" if seeds > 1 else "one seed"]
    if _incomplete(results):
        parts.append(f"n: a point that has only so many of {seeds} seeds")
    if results.baseline:
        named = ", ".join(f"{axis.removeprefix('set_')} {value}" for axis, value in results.baseline.items())
        parts.append(
            f"x: ratio to {named}, seed by seed" + (", ?: its interval holds 1" if seeds > 1 else "")
        )
    return "; ".join(parts)


def rich_tables(
    results: Results, figures: list[str] | None = None, confidence: float = 0.95, columns: int = 200
) -> list[Table]:
    """Build tables for a terminal of the given width. Axes with only one value are omitted.

    Figures that do not fit beside the axes are in additional tables.
    """
    heads, rows, keys = _cells(results, results.figures if figures is None else figures, confidence)
    if not keys:
        heads, rows, keys = ["", *heads], [["all", *row] for row in rows], 1
    return terminal.tables(heads, rows, keys, columns)


def as_html(results: Results) -> str:
    """Return the table as HTML, with the failed cells below it."""
    heads, rows, keys = _cells(results, results.figures, 0.95)
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr>{''.join(f'<{_tag(i < keys)}>{escape(t)}</{_tag(i < keys)}>' for i, t in enumerate(row))}</tr>"
        for row in rows
    )
    below = "<br>".join(escape(line) for line in (legend(results), *failures(results)))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{below}</p>"


def _tag(key: bool) -> str:
    return "th" if key else "td"


def _cells(results: Results, figures: list[str], confidence: float) -> tuple[list[str], list[list[str]], int]:
    """Return the heads, the rows, and the number of columns on the left that are axes."""
    varied = [axis for axis in results.points if len(results.axes[axis]) > 1]
    # Values have units of their own.
    heads = [axis.removeprefix("set_") for axis in varied] + [f.removesuffix("_us") for f in figures]
    seeds = len(results.axes["seed"])
    rows = []
    for point, by_figure in _points(results, figures, confidence):
        shown = [str(value) for axis, value in zip(results.points, point, strict=True) if axis in varied]
        rows.append([*shown, *(_cell(figure, by_figure.get(figure), seeds) for figure in figures)])
    return heads, rows, len(varied)


def _incomplete(results: Results) -> bool:
    """Whether a point has no result for some seed, because the sweep was interrupted or a cell failed."""
    seeds = len(results.axes["seed"])
    return any(row["seeds"] < seeds for row in results.statistics().to_pylist())


def _points(
    results: Results, figures: list[str], confidence: float
) -> list[tuple[tuple[Any, ...], dict[str, dict[str, Any]]]]:
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in results.statistics(figures, confidence).to_pylist():
        point = tuple(row[axis] for axis in results.points)
        found.setdefault(point, {})[row["figure"]] = row
    return list(found.items())


def _cell(figure: str, row: dict[str, Any] | None, seeds: int) -> str:
    if row is None or row["mean"] is None:
        return "-"
    text = said(figure, row["mean"])
    if row["mean_low"] is not None:
        half = (row["mean_high"] - row["mean_low"]) / 2
        text += f" +-{half / abs(row['mean']) * 100:.1f} %" if row["mean"] else ""
    # The baseline itself is 1 exactly.
    if row["ratio"] is not None and not row["ratio"] == row["ratio_low"] == row["ratio_high"] == 1:
        text += f" {row['ratio']:.3g}x"
        low, high = row["ratio_low"], row["ratio_high"]
        if low is not None and low <= 1 <= high:
            text += "?"
    return text if row["seeds"] == seeds else f"{text} (n={row['seeds']})"


def as_text(results: Results) -> str:
    """Return the table as text, with the failed cells below it."""
    return "\n".join([terminal.as_text(rich_tables(results)), legend(results), *failures(results)])


def failures(results: Results) -> list[str]:
    """List the errors of failed cells, each with its count."""
    counts: dict[str, int] = {}
    for row in results.table.select(["status", "error"]).to_pylist():
        if row["status"] == "failed":
            counts[row["error"]] = counts.get(row["error"], 0) + 1
    return [f"failed: {words.count(n)} of {results.table.num_rows} cells: {e}" for e, n in counts.items()]
