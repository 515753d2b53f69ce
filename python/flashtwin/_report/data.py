"""Content of a report: the data of its charts as plain values, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._results.body import histograms_of
from .._results.show import said
from .._support import words
from .._support.folders import Folder
from .._support.record import DIGITS, Record, percentile_curve
from .._sweep.store import Store
from ..comparison import label_of_part, rows_of
from ..errors import FlashtwinError
from .tables import Cell, Table

if TYPE_CHECKING:
    from .._results import Results

_KINDS = ("all", "read", "write")
#: Largest number of points of a sweep for which curves are drawn. Bars and table rows show all points.
_CURVES_MAX = 60


def of_runs(
    records: Sequence[Record], labels: Sequence[str]
) -> tuple[dict[str, Any], list[Table], list[Table]]:
    """Return the content of a report on runs: data of the charts, tables above them, tables below them."""
    runs = [_run(record, label) for record, label in zip(records, labels, strict=True)]
    below = [
        _latencies(record, label if len(records) > 1 else "")
        for record, label in zip(records, labels, strict=True)
    ]
    below.append(_operations(records, labels))
    for record, label in zip(records, labels, strict=True):
        if "placement" in record.summary:
            below += _placement(record.summary["placement"], label if len(records) > 1 else "")
    return {"kind": "runs", "runs": runs}, [_facts(records, labels), _measures(records, labels)], below


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _run(record: Record, label: str) -> dict[str, Any]:
    summary, history = record.summary, record.history
    columns = (
        "t_s",
        "length_s",
        "iops",
        "mean_us",
        "p99_us",
        "inside_mean",
        "hit_ratio",
        "gc_write_amplification",
    )
    past: dict[str, Any] = {name: [_rounded(point[name]) for point in history] for name in columns}
    past["gc_share_by_chip"] = [point["gc_share_by_chip"] for point in history]
    past["owners"] = _owners(history)
    past["end_s"] = history[-1]["t_s"] + history[-1]["length_s"] if history else 0
    return {
        "label": label,
        "percentiles": {kind: percentile_curve(record.histograms[kind]) for kind in _KINDS},
        "parts": {kind: summary[kind]["parts_us"] for kind in _KINDS if summary[kind]["requests"]},
        "history": past,
        "destages": summary["buffer"]["destages"],
        "erases": summary["flash"]["block_erases_counts"],
        "chips": len(summary["flash"]["gc_time_ms_by_chip"]),
        "collected": {
            owner["name"]: owner["live_at_collection"]
            for owner in summary.get("placement", {}).get("owners", ())
            if any(owner["live_at_collection"])
        },
    }


def _owners(history: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[float | None]]]:
    """Return three values per window of time for each owner (a group of pages with flash units of its own).

    The values are the owner's live pages, its units, and the pages moved out of its units per page that the
    host wrote. A window without a sample of the flash has no values.
    """
    windows = [{owner["name"]: owner for owner in point.get("owners", ())} for point in history]
    names = dict.fromkeys(name for window in windows for name in window)
    found: dict[str, dict[str, list[float | None]]] = {
        name: {"live": [], "units": [], "moved": []} for name in names
    }
    for window in windows:
        host = sum(owner["host_pages"] for owner in window.values())
        for name, values in found.items():
            owner = window.get(name, {"live_pages": 0, "units": 0, "moved_out_pages": 0})
            values["live"].append(owner["live_pages"] if window else None)
            values["units"].append(owner["units"] if window else None)
            values["moved"].append(_rounded(owner["moved_out_pages"] / host) if host else None)
    return found


def _facts(records: Sequence[Record], labels: Sequence[str]) -> Table:
    rows = []
    for title, key in (
        ("device", "device"),
        ("back end", "backend"),
        ("policy", "policy"),
        ("buffer", "buffer_pages"),
        ("exported", "exported_bytes"),
        ("workload", "workload"),
        ("pacing", "pacing"),
        ("precondition", "precondition"),
        ("seed", "seed"),
        ("requests", "requests_submitted"),
        ("virtual time", "span_s"),
        ("warnings", "warnings"),
    ):
        values = [_fact(record.summary, key) for record in records]
        # A setting is omitted if no run has it, or if its values are the labels of the runs.
        if not any(values) or (len(values) > 1 and values == list(labels)):
            continue
        if len(set(values)) == 1:
            rows.append([Cell(title), Cell(values[0])])
        else:
            each = "; ".join(f"{label}: {value}" for label, value in zip(labels, values, strict=True))
            rows.append([Cell(title), Cell(each)])
    return Table("What was run", ["", ""], rows, plain=True)


def _fact(summary: dict[str, Any], key: str) -> str:
    value = summary[key]
    if key == "buffer_pages":
        return f"{words.size(value * summary['page_bytes'])}, {words.count(value)} pages" if value else "none"
    if key == "exported_bytes":
        return words.size(value)
    if key == "requests_submitted":
        return words.count(value) + (
            ", interrupted: a part of the workload only" if summary["interrupted"] else ""
        )
    if key == "span_s":
        return words.time(value * 1e6)
    return "; ".join(value) if isinstance(value, list) else str(value)


def _measures(records: Sequence[Record], labels: Sequence[str]) -> Table:
    """Return the table of measures of several runs, with their ratios to the first run."""
    rows = []
    for row in rows_of(records):
        cells = [Cell(row.measure.label)]
        for value, cell in zip(row.values, row.cells, strict=True):
            ratio = "" if cell.ratio is None else f"{cell.ratio:.3g}x{cell.mark}"
            cells.append(Cell(cell.text, value, ratio))
        rows.append(cells)
    title = "Summary" if len(records) == 1 else f"Summary, with ratios to {labels[0]}"
    labels = [label_of_part(*pair) for pair in zip(labels, records, strict=True)]
    return Table(title, ["measure", *(labels if len(records) > 1 else ["value"])], rows)


def _latencies(record: Record, label: str) -> Table:
    names = (
        "mean_us",
        "deviation_us",
        "p50_us",
        "p90_us",
        "p95_us",
        "p99_us",
        "p999_us",
        "p9999_us",
        "max_us",
    )
    rows = []
    for kind in ("all", "read", "write", "trim", "flush"):
        times = record.summary[kind]
        if times["requests"]:
            cells = [Cell(words.time(times[name]), times[name]) for name in names]
            rows.append([Cell(kind), Cell(words.count(times["requests"]), times["requests"]), *cells])
    title = f"Response times: {label}" if label else "Response times"
    heads = ["requests", "mean", "deviation", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"]
    return Table(title, ["", *heads], rows)


def _operations(records: Sequence[Record], labels: Sequence[str]) -> Table:
    rows = []
    ops = [{op["name"]: op["count"] for op in record.summary["flash"]["ops"]} for record in records]
    for name in ops[0]:
        counts = [op.get(name, 0) for op in ops]
        if any(counts):
            rows.append([Cell(name.replace("_", " ")), *(Cell(words.count(n), n) for n in counts)])
    heads = list(labels) if len(records) > 1 else ["pages or blocks"]
    return Table("Flash operations by cause", ["cause", *heads], rows)


def _placement(placed: dict[str, Any], label: str) -> list[Table]:
    """Return two tables: the pages of each owner, and the moved pages by class and owner.

    An owner is a group of pages that fills flash units of its own. The class is that of the page that needed
    room when the pages were moved.
    """
    of = f": {label}" if label else ""
    names = ("host_pages", "moved_in_pages", "moved_out_pages", "erases", "live_pages", "units")
    rows = [
        [Cell(owner["name"]), *(Cell(words.count(owner[name]), owner[name]) for name in names)]
        for owner in placed["owners"]
    ]
    heads = ["owner", *(name.replace("_", " ") for name in names)]
    rules = f"{placed['scheme']}; {placed['victim']} among {placed['scope']}"
    tables = [Table(f"Units by owner{of} ({rules})", heads, rows)]
    owners = [owner["name"] for owner in placed["owners"]]
    moved: dict[int, dict[str, int]] = {}
    for cause in placed["caused"]:
        moved.setdefault(cause["class"], {})[cause["owner"]] = cause["pages"]
    rows = [
        [Cell(f"h{number}"), *(Cell(words.count(pages.get(name, 0)), pages.get(name, 0)) for name in owners)]
        for number, pages in moved.items()
    ]
    if rows:
        title = f"Pages moved while a page of a class needed room, by owner{of}"
        tables.append(Table(title, ["class", *owners], rows))
    return tables


def of_sweep(results: Results) -> tuple[dict[str, Any], list[Table], list[Table]]:
    """Return the content of a report on a sweep: data of the charts, tables above them, tables below them."""
    varied = [axis for axis in results.points if len(results.axes[axis]) > 1]
    by_point = _statistics(results)
    if not by_point:
        raise FlashtwinError(f"{results.directory}: no cell finished: nothing to report on")
    curves = _curves(results, list(by_point)[:_CURVES_MAX])
    parts = [name for name in results.table.column_names if name.startswith("all_parts_us_")]
    means: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = _statistics(results, parts)
    points = []
    for point, values in by_point.items():
        told = [str(value) for axis, value in zip(results.points, point, strict=True) if axis in varied]
        points.append(
            {
                "label": ", ".join(told) or "all",
                "axes": told,
                "values": {
                    figure: {"mean": row["mean"], "low": row["mean_low"], "high": row["mean_high"]}
                    for figure, row in values.items()
                },
                "percentiles": curves.get(point, []),
                "parts_us": {
                    name.removeprefix("all_parts_us_"): row["mean"] for name, row in means[point].items()
                },
            }
        )
    data = {
        "kind": "sweep",
        "seeds": len(results.axes["seed"]),
        "axes": [axis.removeprefix("set_") for axis in varied],
        "figures": [{"name": figure} for figure in results.figures],
        "points": points,
    }
    return data, [_axes(results)], [_points_table(results, varied, by_point), *_failures(results)]


def _statistics(
    results: Results, figures: list[str] | None = None
) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in results.statistics(figures).to_pylist():
        point = tuple(row[axis] for axis in results.points)
        found.setdefault(point, {})[row["figure"]] = row
    return found


def _curves(results: Results, points: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[list[float]]]:
    """Return one percentile curve per point of a sweep. The histograms of all seeds of a point are added."""
    store = Store(Folder(results.directory))
    wanted = set(points)
    sums: dict[tuple[Any, ...], dict[int, int]] = {}
    for row in results.table.select([*results.points, "status", "cell"]).to_pylist():
        point = tuple(row[axis] for axis in results.points)
        body = store.read(row["cell"]) if row["status"] == "ok" and point in wanted else None
        if body is not None:
            together = sums.setdefault(point, {})
            for ns, count in histograms_of(body)["all"]:
                together[ns] = together.get(ns, 0) + count
    return {point: percentile_curve(sorted(counts.items())) for point, counts in sums.items()}


def _axes(results: Results) -> Table:
    rows = [[Cell(axis), Cell(", ".join(map(str, values)))] for axis, values in results.axes.items()]
    if results.baseline:
        rows.append([Cell("baseline"), Cell(", ".join(f"{k} {v}" for k, v in results.baseline.items()))])
    rows.append(
        [Cell("cells"), Cell(f"{words.count(results.table.num_rows)}, of them failed: {results.failed}")]
    )
    return Table("What was run", ["", ""], rows, plain=True)


def _points_table(
    results: Results, varied: list[str], by_point: dict[tuple[Any, ...], dict[str, dict[str, Any]]]
) -> Table:
    rows = []
    for point, values in by_point.items():
        cells = [
            Cell(str(value), value if isinstance(value, (int, float)) else None)
            for axis, value in zip(results.points, point, strict=True)
            if axis in varied
        ]
        for figure in results.figures:
            row = values[figure]
            if row["mean"] is None:
                cells.append(Cell("-"))
                continue
            notes = []
            if row["mean_low"] is not None and row["mean"]:
                notes.append(f"+-{(row['mean_high'] - row['mean_low']) / 2 / abs(row['mean']) * 100:.1f} %")
            if row["ratio"] is not None:
                notes.append(f"{row['ratio']:.3g}x")
            cells.append(Cell(said(figure, row["mean"]), row["mean"], " ".join(notes)))
        rows.append(cells)
    note = "Means over seeds, with their 95 % interval"
    if results.baseline:
        note += f", and ratios to {', '.join(f'{k} {v}' for k, v in results.baseline.items())} paired by seed"
    return Table(note, [*varied, *results.figures], rows, texts=max(1, len(varied)))


def _failures(results: Results) -> list[Table]:
    rows = []
    for row in results.table.select([*results.axes, "status", "error"]).to_pylist():
        if row["status"] == "failed":
            told = ", ".join(str(row[axis]) for axis in results.axes if len(results.axes[axis]) > 1)
            rows.append([Cell(told), Cell(row["error"])])
    return [Table("Cells that failed", ["cell", "error"], rows, texts=2, wrap=True)] if rows else []
