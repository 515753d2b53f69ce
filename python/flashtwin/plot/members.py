"""Figures of the members of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import FlashtwinError
from .style import new, styled

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

#: Style of bars for collections that a member starts itself, and for those that the array's coordinator
#: forces.
_OWN: dict[str, Any] = {"facecolor": "0.75", "edgecolor": "0.4", "linewidth": 0.4}
_FORCED: dict[str, Any] = {"facecolor": "#0b3c5d", "edgecolor": "#0b3c5d", "linewidth": 0.4}


class _Result(Protocol):
    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def gc_intervals(self) -> pa.Table | None: ...


@styled
def collections(
    results: Mapping[str, _Result], *, from_s: float = 0, until_s: float | None = None, columns: int = 2
) -> Figure:
    """Draw when members of an array are in GC: a panel per result, a row per member, a bar per interval.

    Dark bars are collections that the coordinator of the array forced. Light bars are collections that a
    member started itself.

    Args:
        results: results of `run(gc_timeline=True)`, by title.
        from_s: beginning, in seconds from the start of the measurement.
        until_s: end, in seconds from the start of the measurement; by default the last request.
        columns: width of the figure in columns of a paper: 1 (3.5 in) or 2 (7.16 in).
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
