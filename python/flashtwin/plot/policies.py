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

#: With more policies than this, the figure is larger to make room for the names.
_FEW = 6


class _Comparison(Protocol):
    @property
    def results(self) -> Sequence[Recorded]: ...


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


@styled
def comparison(results: _Comparison, *, columns: int = 2) -> Figure:
    """Draw response times up to p99.99 and the parts of the mean, for each policy."""
    many = max(0, len(results.results) - _FEW)
    figure = new(columns, 2.8 + 0.12 * many)
    tail, bars = figure.subplots(1, 2, width_ratios=(1.2, 1))
    records = {f"{result.policy}": result.record() for result in results.results}
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
    """Draw hit ratio over capacity, a line per policy; MIN, the bound, in black dots."""
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
