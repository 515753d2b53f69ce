"""Several policies on the same device and workload, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._support import terminal, words
from ._support.noise import relative_noise
from ._support.record import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from .result import Result


@dataclass(frozen=True)
class Measure:
    """One measure: its name, its place in a summary, its format, whether less is better."""

    label: str
    path: tuple[str, ...]
    unit: str
    less_is_better: bool = True

    def value(self, result: Result | Record) -> float | None:
        """Find it in a summary; None where the run has no such value."""
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
        """Whether any result has a value here: no row of reads without reads."""
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
    """Label of a run; if it was interrupted, with the number of requests that its figures are of."""
    if not run.summary["interrupted"]:
        return label
    return f"{label} (part: {words.count(run.summary['requests_submitted'])})"


def windows_of(run: Result | Record) -> list[dict[str, Any]]:
    """Windows of a run's history."""
    return (run if isinstance(run, Record) else run.record()).history


def best_of(measure: Measure, runs: Sequence[Result | Record]) -> int | None:
    """Return the best run by a measure, beyond the noise of the runs; None if there is none (D-185).

    Its interval lies apart from those of all others. Part of a workload is not comparable to the
    whole, so where a run was interrupted none is the best.
    """
    if len(runs) < 2 or any(run.summary["interrupted"] for run in runs):
        return None
    intervals = []
    for run in runs:
        value, noise = measure.value(run), relative_noise(windows_of(run), measure.path)
        if value is None or noise is None:
            return None
        # Turned round where more is better, so that the least end is always the best.
        sign = 1 if measure.less_is_better else -1
        intervals.append(sorted(sign * value * (1 + side * noise) for side in (-1, 1)))
    first = min(range(len(intervals)), key=lambda i: intervals[i][1])
    others = [low for i, (low, _) in enumerate(intervals) if i != first]
    return first if intervals[first][1] < min(others) else None


#: Measures that the ranking of many policies shows; it sorts by the first.
_RANKED = ["mean response", "p99", "erases", "device write ampl.", "hit ratio"]
_BEST = "* best beyond the noise of the run"
#: With more policies than this the table is a ranking, one line a policy.
_SIDE_BY_SIDE = 6


@dataclass(frozen=True)
class _Grid:
    """A table to be printed: cells are a text and whether it is the best of its measure."""

    heads: list[str]
    rows: list[tuple[str, list[tuple[str, bool]]]]
    note: str


class Comparison:
    """The results of several policies, in the order asked for; ratios are to the first.

    Print it for the table, index it by policy, iterate over its results.
    """

    def __init__(self, results: list[Result]) -> None:
        self.results = results

    @property
    def policies(self) -> list[str]:
        """The policies, the first being the one compared to."""
        return [result.policy for result in self.results]

    @property
    def interrupted(self) -> bool:
        """Whether a result is missing or is one of a part of the workload only."""
        return any(result.interrupted for result in self.results)

    def __getitem__(self, policy: str) -> Result:
        for result in self.results:
            if result.policy == policy:
                return result
        raise KeyError(policy)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def items(self) -> Iterator[tuple[str, Result]]:
        """Policies and their results."""
        return ((result.policy, result) for result in self.results)

    @property
    def table(self) -> pa.Table:
        """One row per policy, one column per measure, each with its unit in its name."""
        import pyarrow as pa

        columns: dict[str, Any] = {"policy": self.policies}
        for row in MEASURES:
            columns["_".join(row.path)] = [row.value(result) for result in self.results]
        return pa.table(columns)

    def to_json(self) -> str:
        """All summaries as JSON, the same bytes for the same runs."""
        return json.dumps({"results": [result.summary for result in self.results]}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw response-time distributions and means into a file (PNG, PDF, SVG ...)."""
        from . import plot

        plot.save(plot.comparison(self), path)

    def _measures(self) -> Iterator[tuple[Measure, list[tuple[str, bool]]]]:
        """Each measure, and for each policy what to print and whether it is the best."""
        for row in MEASURES:
            if not row.applies(self.results):
                continue
            values = [row.value(result) for result in self.results]
            best = best_of(row, self.results)
            base = None if self.results[0].interrupted else values[0]
            cells = []
            for i, value in enumerate(values):
                comparable = base and value is not None and not self.results[i].interrupted
                ratio = f" {value / base:5.2f}x" if comparable and base and value is not None else " " * 7
                cells.append((row.say(value) + (ratio if i else ""), i == best))
            yield row, cells

    def _grid(self) -> _Grid:
        """Policies side by side; many of them one below the other, the quickest first."""
        note = "x: ratio to the first policy"
        if self.interrupted:
            note += "; part: interrupted after so many requests, not comparable"
        heads = [label_of_part(result.policy, result) for result in self.results]
        if len(self.results) <= _SIDE_BY_SIDE:
            rows = [(row.label, cells) for row, cells in self._measures()]
            return _Grid(heads, rows, note)
        columns = {row.label: cells for row, cells in self._measures()}

        def rank(i: int) -> tuple[bool, float]:
            return self.results[i].interrupted, MEASURES[0].value(self.results[i]) or 0.0

        by_mean = sorted(range(len(self.results)), key=rank)
        rows = [
            (f"{place:>2} {heads[i]}", [columns[label][i] for label in _RANKED])
            for place, i in enumerate(by_mean, 1)
        ]
        ranked = f"by mean response; {note} named, {self.policies[0]}"
        return _Grid(_RANKED, rows, ranked)

    def rich_tables(self, columns: int) -> list[Table]:
        """Build tables for a terminal of so many columns; the best of each measure is bold and starred.

        Policies that do not fit beside one another stand in a further table.
        """
        from rich.text import Text

        grid = self._grid()
        rows: list[list[str | Text]] = [
            [label, *(Text(text + (" *" if best else "  "), "bold" if best else "") for text, best in cells)]
            for label, cells in grid.rows
        ]
        return terminal.tables(["", *grid.heads], rows, 1, columns)

    def legend(self) -> str:
        """Explain star and ratio."""
        return f"{_BEST}; {self._grid().note}"

    def __repr__(self) -> str:
        return terminal.as_text(self.rich_tables(200)) + "\n" + self.legend()

    def _repr_html_(self) -> str:
        grid = self._grid()
        head = "".join(f"<th>{escape(text)}</th>" for text in grid.heads)
        rows = []
        for label, cells in grid.rows:
            row = "".join(f"<td>{f'<b>{text}</b>' if best else text}</td>" for text, best in cells)
            rows.append(f"<tr><th style='text-align:left'>{escape(label.strip())}</th>{row}</tr>")
        return (
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
            f"<p>{escape(_BEST.replace('*', 'bold:'))}; {escape(grid.note)}</p>"
        )
