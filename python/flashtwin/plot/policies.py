"""Figures of policies side by side: response times, and hit ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .._support.record import Recorded
from .runs import draw_breakdown, draw_percentiles
from .style import legend_above, line, new, sizes_axis, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: If there are more policies than this, the figure is larger, to make room for the names.
_FEW = 6
#: A curve has markers if it has at most this number of sizes.
_MARKED = 20


class _Labelled(Recorded, Protocol):
    label: str


class _Comparison(Protocol):
    @property
    def results(self) -> Sequence[_Labelled]: ...


class _HitRow(Protocol):
    @property
    def policy(self) -> str: ...
    @property
    def capacity_pages(self) -> int: ...
    @property
    def hit_ratio(self) -> float: ...


class _HitTable(Protocol):
    @property
    def policies(self) -> list[str]: ...
    @property
    def capacities_pages(self) -> list[int]: ...
    @property
    def page_bytes(self) -> int: ...
    def __iter__(self) -> Iterator[_HitRow]: ...


class _CurveRow(_HitRow, Protocol):
    @property
    def error(self) -> float | None: ...
    @property
    def write_hit_ratio(self) -> float | None: ...
    @property
    def write_backs_per_write(self) -> float | None: ...


class _CurveTable(Protocol):
    @property
    def policies(self) -> list[str]: ...
    @property
    def capacities_pages(self) -> list[int]: ...
    @property
    def page_bytes(self) -> int: ...
    def __iter__(self) -> Iterator[_CurveRow]: ...


@styled
def comparison(results: _Comparison, *, columns: int = 2) -> Figure:
    """Draw two panels: response times up to p99.99, and parts of the mean, for each run."""
    many = max(0, len(results.results) - _FEW)
    figure = new(columns, 2.8 + 0.12 * many)
    tail, bars = figure.subplots(1, 2, width_ratios=(1.2, 1))
    records = {result.label: result.record() for result in results.results}
    draw_percentiles(tail, records, "all")
    tail.set(ylabel="response time (us)")
    tail.legend(loc="upper left", fontsize=5 if many else None, ncols=1 + many // 9)
    draw_breakdown(bars, records, "all", 1)
    bars.legend(loc="upper left", bbox_to_anchor=(1, 1))
    first = results.results[0].summary
    figure.suptitle(f"{first['device']}: {Path(first['workload'].split(': ')[0]).name}", fontsize=8)
    return figure


@styled
def hits(table: _HitTable, *, columns: int = 1) -> Figure:
    """Draw hit ratio over capacity, one line per policy. Black dots show MIN, the upper bound."""
    figure = new(columns, 2.6 + 0.1 * max(0, len(table.policies) - _FEW))
    axes = figure.subplots()
    for i, policy in enumerate(table.policies):
        rows = sorted((row for row in table if row.policy == policy), key=lambda row: row.capacity_pages)
        sizes = [row.capacity_pages * table.page_bytes / 2**20 for row in rows]
        style = {"linestyle": ":", "color": "black", "marker": "."} if policy == "min" else line(i)
        axes.plot(sizes, [row.hit_ratio * 100 for row in rows], label=policy, **style)
    sizes_axis(axes, sorted(pages * table.page_bytes / 2**20 for pages in table.capacities_pages))
    axes.set(xlabel="buffer (MiB)", ylabel="hit ratio (%)")
    axes.grid(which="major")
    legend_above(figure, axes, columns)
    return figure


@styled
def curve(table: _CurveTable, *, columns: int = 2) -> Figure:
    """Draw hit ratios and write-backs per page written over the size of the buffer.

    There are two hit ratios, of all accesses and of writes. If a curve is estimated from a sample, a band
    shows its interval.
    """
    figure = new(columns, 2.6 + 0.1 * max(0, len(table.policies) - _FEW))
    panels = figure.subplots(1, 3)
    names = ["hit ratio (%)", "hit ratio of writes (%)", "write-backs per page written"]
    few = len(table.capacities_pages) <= _MARKED
    for i, policy in enumerate(table.policies):
        rows = sorted((row for row in table if row.policy == policy), key=lambda row: row.capacity_pages)
        sizes = [row.capacity_pages * table.page_bytes / 2**20 for row in rows]
        dotted = {"linestyle": ":", "color": "black", "marker": "." if few else ""}
        style = dotted if policy == "min" else line(i, markers=few)
        ratios = [row.hit_ratio * 100 for row in rows]
        panels[0].plot(sizes, ratios, label=policy, **style)
        if all(row.error is not None for row in rows):
            half = [100 * (row.error or 0.0) for row in rows]
            low, high = (
                [max(0, min(100, r + s * h)) for r, h in zip(ratios, half, strict=True)] for s in (-1, 1)
            )
            panels[0].fill_between(sizes, low, high, alpha=0.2, linewidth=0, color=style["color"])
        for panel, values in (
            (panels[1], [row.write_hit_ratio and row.write_hit_ratio * 100 for row in rows]),
            (panels[2], [row.write_backs_per_write for row in rows]),
        ):
            if all(value is not None for value in values):
                panel.plot(sizes, values, **style)
    for panel, name in zip(panels, names, strict=True):
        panel.set_xscale("log", base=2)
        panel.set(xlabel="buffer (MiB)", ylabel=name)
        panel.set_ylim(bottom=0)
        panel.grid(which="major")
    legend_above(figure, panels[0], columns)
    return figure
