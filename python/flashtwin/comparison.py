"""Several policies on the same device and workload, side by side."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import words

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from .record import Record
    from .result import Result


@dataclass(frozen=True)
class Measure:
    """One measure: its name, where it is in a summary, how it is said, whether less is better."""

    label: str
    path: tuple[str, ...]
    unit: str
    less_is_better: bool = True

    def value(self, result: Result | Record) -> float:
        """Find it in a summary."""
        at: Any = result.summary
        for key in self.path:
            at = at[key]
        return float(at)

    def say(self, value: float) -> str:
        """Say a value in its unit."""
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
        """Whether any result has something to say here: no row of reads without reads."""
        kind = self.path[0]
        return kind not in ("read", "write") or any(r.summary[kind]["requests"] for r in results)


MEASURES = [
    Measure("mean response", ("all", "mean_us"), "us"),
    Measure("  deviation", ("all", "deviation_us"), "us"),
    Measure("  CV", ("all", "variation"), "number"),
    Measure("  reads", ("read", "mean_us"), "us"),
    Measure("  writes", ("write", "mean_us"), "us"),
    Measure("  wait for a slot", ("all", "parts_us", "slot"), "us"),
    Measure("  wait behind host", ("all", "parts_us", "queue_host"), "us"),
    Measure("  wait behind GC", ("all", "parts_us", "queue_gc"), "us"),
    Measure("p99", ("all", "p99_us"), "us"),
    Measure("p99.9", ("all", "p999_us"), "us"),
    Measure("p99.99", ("all", "p9999_us"), "us"),
    Measure("hit ratio", ("hits", "ratio"), "share", less_is_better=False),
    Measure("write amplification", ("flash", "write_amplification"), "number"),
    Measure("erases", ("flash", "erases"), "count"),
    Measure("pages moved", ("flash", "pages_moved"), "count"),
    Measure("chip time in GC", ("flash", "gc_share_mean"), "share"),
]


#: What the ranking of many policies shows; the first is what it sorts by.
_RANKED = ["mean response", "p99", "erases", "write amplification", "hit ratio"]
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
            said = [row.say(value) for value in values]
            best = said[values.index(min(values) if row.less_is_better else max(values))]
            # What looks the same to the reader is not better or worse.
            differ = len({*said}) > 1
            cells = []
            for i, value in enumerate(values):
                ratio = f" {value / values[0]:5.2f}x" if values[0] else " " * 7
                cells.append((said[i] + (ratio if i else ""), differ and said[i] == best))
            yield row, cells

    def _grid(self) -> _Grid:
        """Policies side by side; many of them one below the other, the quickest first."""
        note = "x: ratio to the first policy"
        if len(self.results) <= _SIDE_BY_SIDE:
            rows = [(row.label, cells) for row, cells in self._measures()]
            return _Grid(self.policies, rows, note)
        columns = {row.label: cells for row, cells in self._measures()}
        by_mean = sorted(range(len(self.results)), key=lambda i: MEASURES[0].value(self.results[i]))
        rows = [
            (f"{rank:>2} {self.policies[i]}", [columns[label][i] for label in _RANKED])
            for rank, i in enumerate(by_mean, 1)
        ]
        ranked = f"by mean response; {note} named, {self.policies[0]}"
        return _Grid(_RANKED, rows, ranked)

    def rich_table(self) -> Table:
        """Build the table for a terminal; the best of each measure is bold and starred."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        grid = self._grid()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=f"* best; {grid.note}")
        table.add_column("", no_wrap=True)
        for head in grid.heads:
            table.add_column(head, justify="right", no_wrap=True)
        for label, cells in grid.rows:
            row = [Text(text + (" *" if best else "  "), "bold" if best else "") for text, best in cells]
            table.add_row(label, *row)
        return table

    def __repr__(self) -> str:
        from rich.console import Console

        out = io.StringIO()
        Console(file=out, width=200, color_system=None).print(self.rich_table())
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")

    def _repr_html_(self) -> str:
        grid = self._grid()
        head = "".join(f"<th>{escape(text)}</th>" for text in grid.heads)
        rows = []
        for label, cells in grid.rows:
            row = "".join(f"<td>{f'<b>{text}</b>' if best else text}</td>" for text, best in cells)
            rows.append(f"<tr><th style='text-align:left'>{escape(label.strip())}</th>{row}</tr>")
        return (
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
            f"<p>bold: best; {escape(grid.note)}</p>"
        )
