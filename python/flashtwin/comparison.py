"""Several policies on the same device and workload, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._support import terminal, words
from ._support.noise import Interval, ratio_interval
from ._support.record import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from .result import Result


@dataclass(frozen=True)
class Measure:
    """A measure: its name, its path in a summary, its format, and whether lower is better."""

    label: str
    path: tuple[str, ...]
    unit: str
    less_is_better: bool = True

    def value(self, result: Result | Record) -> float | None:
        """Return the value of this measure in a run; None if the run has none."""
        if self.path[0] in ("all", "read", "write") and not result.summary[self.path[0]]["requests"]:
            return None
        at: Any = result.summary
        for key in self.path:
            at = at[key]
        return None if at is None else float(at)

    def say(self, value: float | None) -> str:
        """Format a value in its unit."""
        if value is None:
            return "-"
        match self.unit:
            case "us":
                return words.time(value)
            case "share":
                return words.percent(value)
            case "count":
                return words.count(value)
            case _:
                return words.digits(value)

    def applies(self, results: Sequence[Result | Record]) -> bool:
        """Whether any of the results has a value. Runs without reads, for example, have no row for reads."""
        kind = self.path[0]
        return kind not in ("read", "write") or any(r.summary[kind]["requests"] for r in results)


MEASURES = [
    Measure("mean response", ("all", "mean_us"), "us"),
    Measure("  deviation", ("all", "deviation_us"), "us"),
    Measure("  CV", ("all", "variation"), "number"),
    Measure("  reads", ("read", "mean_us"), "us"),
    Measure("  writes", ("write", "mean_us"), "us"),
    Measure("  wait for a slot: order", ("all", "parts_us", "slot_order"), "us"),
    Measure("    behind host", ("all", "parts_us", "slot_queue_host"), "us"),
    Measure("    behind GC", ("all", "parts_us", "slot_queue_gc"), "us"),
    Measure("    transfer", ("all", "parts_us", "slot_transfer"), "us"),
    Measure("    flash array", ("all", "parts_us", "slot_array"), "us"),
    Measure("  wait behind host", ("all", "parts_us", "queue_host"), "us"),
    Measure("  wait behind GC", ("all", "parts_us", "queue_gc"), "us"),
    Measure("p99", ("all", "p99_us"), "us"),
    Measure("p99.9", ("all", "p999_us"), "us"),
    Measure("p99.99", ("all", "p9999_us"), "us"),
    Measure("hit ratio", ("hits", "ratio"), "share", less_is_better=False),
    Measure("device write ampl.", ("health", "device_write_amplification"), "number"),
    Measure("GC write ampl.", ("flash", "gc_write_amplification"), "number"),
    Measure("erases", ("flash", "erases"), "count"),
    Measure("pages moved", ("flash", "pages_moved"), "count"),
    Measure("chip time in GC", ("flash", "gc_share_mean"), "share"),
]


def label_of_part(label: str, run: Result | Record) -> str:
    """Return the label of a run, with the number of requests if the run was interrupted."""
    if not run.summary["interrupted"]:
        return label
    return f"{label} (part: {words.count(run.summary['requests_submitted'])})"


@dataclass(frozen=True)
class Cell:
    """A cell of a comparison: the value of a measure in one run, and its ratio to the first run.

    Attributes:
        text: the formatted value.
        ratio: ratio to the value of the first run; None for the first run itself, or if there is no ratio.
        interval: lower and upper end of the ratio's interval; None if it cannot be determined.
    """

    text: str
    ratio: float | None = None
    interval: Interval | None = None

    @property
    def mark(self) -> str:
        """Return `?` if the ratio's interval contains 1, otherwise an empty text."""
        return "?" if self.interval and self.interval[0] <= 1 <= self.interval[1] else ""


@dataclass(frozen=True)
class Row:
    """A measure of several runs."""

    measure: Measure
    values: list[float | None]
    cells: list[Cell]

    @property
    def has_intervals(self) -> bool:
        """Whether every ratio of the row has an interval."""
        return all(cell.interval for cell in self.cells if cell.ratio is not None)


def rows_of(runs: Sequence[Result | Record]) -> Iterator[Row]:
    """Return a row per measure, with its values in all runs and the ratios to the first run (D-185).

    All runs have the same workload. An interrupted run has no ratio, because a part of a workload cannot be
    compared with the whole.
    """
    batches = [(run if isinstance(run, Record) else run.record()).batches for run in runs]
    whole = [not run.summary["interrupted"] for run in runs]
    for measure in MEASURES:
        if not measure.applies(runs):
            continue
        values = [measure.value(run) for run in runs]
        base = values[0] if whole[0] else None
        cells = []
        for i, value in enumerate(values):
            cell = Cell(measure.say(value))
            if i and base and value is not None and whole[i]:
                interval = ratio_interval(batches[i], batches[0], measure.path)
                cell = Cell(cell.text, value / base, interval)
            cells.append(cell)
        yield Row(measure, values, cells)


#: Measures that a ranking of many policies shows. The first one determines the order of the policies.
_RANKED = ["mean response", "p99", "erases", "device write ampl.", "hit ratio"]
#: Maximum number of policies in columns. For more policies, the table is a ranking with one line per policy.
_SIDE_BY_SIDE = 6


def _early_slot_waits(runs: Sequence[Result | Record]) -> list[bool]:
    """Return, for each run, whether requests waited for a buffer slot only in the first of its ten batches.

    A batch has consecutive requests. If only the first one has such waits, their mean depends on the length
    of the run: more requests only reduce it.
    """
    found = []
    for run in runs:
        batches = (run if isinstance(run, Record) else run.record()).batches
        waits = [
            sum(us for part, us in batch["parts_us"].items() if part.startswith("slot_")) for batch in batches
        ]
        found.append(bool(waits) and waits[0] > 0 and not any(waits[1:]))
    return found


@dataclass(frozen=True)
class _Grid:
    """A table to be printed."""

    heads: list[str]
    rows: list[tuple[str, list[str]]]
    notes: list[str]


def _said(cell: Cell, run: int) -> str:
    """Format a cell of run number `run`. Ratios are aligned within a column."""
    if not run:
        return cell.text
    return f"{cell.text} " + (f"{cell.ratio:5.2f}x{cell.mark or ' '}" if cell.ratio is not None else " " * 7)


class Comparison:
    """Results of several policies or placements, in the given order. Ratios are to the first one.

    Print the object to see a table, index it by label, or iterate over its results.
    """

    def __init__(self, results: list[Result]) -> None:
        self.results = results

    @property
    def labels(self) -> list[str]:
        """Return the labels of the runs: the policies, or other settings in which the runs differ."""
        return [result.label for result in self.results]

    @property
    def policies(self) -> list[str]:
        """Return the policies of the runs."""
        return [result.policy for result in self.results]

    @property
    def interrupted(self) -> bool:
        """Whether a result is missing or covers only a part of the workload."""
        return any(result.interrupted for result in self.results)

    def __getitem__(self, label: str) -> Result:
        for result in self.results:
            if result.label == label:
                return result
        raise KeyError(label)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def items(self) -> Iterator[tuple[str, Result]]:
        """Return the labels, each with its result."""
        return ((result.label, result) for result in self.results)

    @property
    def table(self) -> pa.Table:
        """Return a table with one row per run and one column per measure; names end in units."""
        import pyarrow as pa

        columns: dict[str, Any] = {"policy": self.policies}
        if self.labels != self.policies:
            columns = {"label": self.labels, **columns}
        for row in MEASURES:
            columns["_".join(row.path)] = [row.value(result) for result in self.results]
        return pa.table(columns)

    def to_json(self) -> str:
        """Return all summaries as JSON. Equal runs give the same bytes."""
        return json.dumps({"results": [result.summary for result in self.results]}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw response-time distributions and means into a file (PNG, PDF, SVG ...)."""
        from . import plot

        plot.save(plot.comparison(self), path)

    def _grid(self) -> _Grid:
        """Return the table: a column per policy or, for many, a row per policy, the fastest first."""
        heads = [label_of_part(result.label, result) for result in self.results]
        if len(self.results) <= _SIDE_BY_SIDE:
            shown = list(rows_of(self.results))
            rows = [
                (row.measure.label, [_said(cell, i) for i, cell in enumerate(row.cells)]) for row in shown
            ]
            return _Grid(heads, rows, self._notes(shown, f"the first {self._kind}"))
        by_label = {row.measure.label: row for row in rows_of(self.results)}
        shown = [by_label[label] for label in _RANKED]

        def rank(i: int) -> tuple[bool, float]:
            return self.results[i].interrupted, MEASURES[0].value(self.results[i]) or 0.0

        by_mean = sorted(range(len(self.results)), key=rank)
        rows = [
            (f"{place:>2} {heads[i]}", [_said(row.cells[i], i) for row in shown])
            for place, i in enumerate(by_mean, 1)
        ]
        notes = self._notes(shown, f"the first {self._kind} named, {self.labels[0]}")
        return _Grid(_RANKED, rows, ["by mean response", *notes])

    @property
    def _kind(self) -> str:
        return "policy" if self.labels == self.policies else "run"

    def _notes(self, shown: Sequence[Row], first: str) -> list[str]:
        """Return notes that explain ratios and marks, and name limits of the device that were reached."""
        notes = [f"x: ratio to {first}"]
        if any(cell.interval for row in shown for cell in row.cells):
            notes.append("?: its 95 % interval contains 1")
        without = [row.measure.label.strip() for row in shown if not row.has_intervals]
        if without and len(self.results) > 1:
            notes.append(f"no interval: {', '.join(without)}")
        if self.interrupted:
            notes.append("part: interrupted after so many requests, not comparable")
        early = [
            label for label, only in zip(self.labels, _early_slot_waits(self.results), strict=True) if only
        ]
        if early:
            notes.append(
                f"waits for a slot only in the first tenth of the requests (see --warmup): {', '.join(early)}"
            )
        limits = [(result.label, result.summary["buffer"].get("limit")) for result in self.results]
        reached = [f"{label} {words.percent(limit['time_share'])}" for label, limit in limits if limit]
        if reached:
            limit = next(limit for _, limit in limits if limit)
            notes.append(
                f"limit {limit['key']} = {limit['value']} reached, share of the time: {', '.join(reached)}"
            )
        return notes

    def rich_tables(self, columns: int) -> list[Table]:
        """Build tables for a terminal of the given width.

        Policies that do not fit beside one another are in additional tables.
        """
        grid = self._grid()
        rows = [[label, *cells] for label, cells in grid.rows]
        return terminal.tables(["", *grid.heads], rows, 1, columns)

    def legend(self) -> str:
        """Return a line that explains ratios and marks, and names limits of the device that were reached."""
        return "; ".join(self._grid().notes)

    def __repr__(self) -> str:
        return terminal.as_text(self.rich_tables(200)) + "\n" + self.legend()

    def _repr_html_(self) -> str:
        grid = self._grid()
        head = "".join(f"<th>{escape(text)}</th>" for text in grid.heads)
        rows = []
        for label, cells in grid.rows:
            row = "".join(f"<td>{text}</td>" for text in cells)
            rows.append(f"<tr><th style='text-align:left'>{escape(label.strip())}</th>{row}</tr>")
        return (
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
            f"<p>{escape('; '.join(grid.notes))}</p>"
        )
