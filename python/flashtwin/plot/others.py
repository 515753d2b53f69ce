"""Figures of a comparison, of hit ratios, and of garbage collection in an array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FlashtwinError
from .runs import draw_breakdown, draw_percentiles
from .style import legend_above, line, new, sizes_axis, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..comparison import Comparison
    from ..hit_ratios import HitTable
    from ..result import Result

#: A member's own collections, and those it was told to do.
_OWN: dict[str, Any] = {"facecolor": "0.75", "edgecolor": "0.4", "linewidth": 0.4}
_FORCED: dict[str, Any] = {"facecolor": "#0b3c5d", "edgecolor": "#0b3c5d", "linewidth": 0.4}
#: With more policies than this names take more room.
_FEW = 6


@styled
def comparison(results: Comparison, *, columns: int = 2) -> Figure:
    """Draw response times to p99.99, and where the mean went, policy by policy."""
    many = max(0, len(results) - _FEW)
    figure = new(columns, 2.8 + 0.12 * many)
    tail, bars = figure.subplots(1, 2, width_ratios=(1.2, 1))
    records = {f"{result.policy}": result.record() for result in results}
    draw_percentiles(tail, records, "all")
    tail.set(ylabel="response time (us)")
    tail.legend(loc="upper left", fontsize=5 if many else None, ncols=1 + many // 9)
    draw_breakdown(bars, records, "all", 1)
    bars.legend(loc="upper left", bbox_to_anchor=(1, 1))
    first = results.results[0].summary
    figure.suptitle(f"{first['device']}: {Path(first['workload'].split(': ')[0]).name}", fontsize=8)
    return figure


@styled
def hits(table: HitTable, *, columns: int = 1) -> Figure:
    """Draw hit ratio over capacity, a line a policy; MIN, the bound, in black dots."""
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
def collections(
    results: Mapping[str, Result], *, from_s: float = 0, until_s: float | None = None, columns: int = 2
) -> Figure:
    """Draw a row for each member of an array, with bars where it collects; a panel for each result.

    Bars of collections that the coordinator asked for are dark and full, those of a member's own light.

    Args:
        results: of `run(gc_timeline=True)`, by their titles.
        from_s: where to begin, in seconds from the start of the measurement.
        until_s: where to end; with the last request if None.
        columns: of a paper that the figure is as wide as: 1 (3.5 in) or 2 (7.16 in).
    """
    members = []
    intervals = []
    for result in results.values():
        if result.gc_intervals is None:
            raise FlashtwinError("a figure of garbage collection by member needs a run with gc_timeline=True")
        members.append(len(result.summary["array"]["members"]))
        intervals.append(result.gc_intervals.to_pylist())
    figure = new(columns, 0.6 + sum(0.35 + 0.11 * count for count in members))
    from matplotlib.patches import Patch

    panels = figure.subplots(len(members), 1, sharex=True, squeeze=False, height_ratios=members)[:, 0]
    drawn = zip(panels, results.items(), members, intervals, strict=True)
    for axes, (label, result), count, rows in drawn:
        end_s = result.summary["span_s"] if until_s is None else until_s
        for forced, style in ((False, _OWN), (True, _FORCED)):
            bars: list[list[tuple[float, float]]] = [[] for _ in range(count)]
            for row in rows:
                begin, end = row["begin_ns"] * 1e-9, row["end_ns"] * 1e-9
                if (row["kind"] == "forced") == forced and end > from_s and begin < end_s:
                    bars[row["member"]].append((begin, end - begin))
            for member, spans in enumerate(bars):
                axes.broken_barh(spans, (member - 0.4, 0.8), **style)
        axes.set(title=label, ylabel="member", xlim=(from_s, end_s), ylim=(count - 0.4, -0.6))
        axes.set_yticks(range(count))
        axes.tick_params(axis="y", labelsize=6)
    panels[-1].set(xlabel="virtual time (s)")
    handles = [Patch(label=text, **style) for text, style in (("its own", _OWN), ("forced", _FORCED))]
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure
