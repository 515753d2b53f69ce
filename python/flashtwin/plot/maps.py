"""Figures of sweeps over two parameters: heat maps, with one panel per value of a third axis."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._results import Results
from .._support.words import digits
from ..errors import FlashtwinError
from .style import new, styled
from .sweeps import Chosen, grid, label_edges, panels_of, rows_of, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Axes of a sweep that are not parameters of the device or the run.
_NO_PARAMETERS = ("device", "policy", "workload")
#: Maximum number of cells of a panel. If there are more, values are not printed in the cells.
_WRITTEN_CELLS = 36


@styled
def heat(
    sweep: Results | str | os.PathLike[str],
    figure: str,
    over: str | None = None,
    by: str | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    normalized: bool = False,
    columns: int = 1,
) -> Figure:
    """Draw a sweep over two parameters as a heat map: white is the lowest value, black the highest.

    Args:
        sweep: results of a sweep, or its directory.
        figure: a column of the dataset, such as "all.p99_us".
        over: axis from left to right; None: the first parameter that varies.
        by: axis from bottom to top; None: the next one.
        where: values of further axes. One further axis may vary, such as the policy. Each of its values then
            has a panel.
        normalized: whether to draw ratios to the sweep's baseline, paired by seed, instead of means.
        columns: width of the figure in columns of a paper: 1 (3.5 in) or 2 (7.16 in).

    Raises:
        FlashtwinError: there is no such axis, value or figure.
    """
    results = sweep if isinstance(sweep, Results) else Results(sweep)
    fixed = {Chosen.axis(results, axis): value for axis, value in (where or {}).items()}
    varied = [axis for axis in results.points if len(results.axes[axis]) > 1 and axis not in fixed]
    named = [Chosen.axis(results, axis) if axis else None for axis in (over, by)]
    free = [axis for axis in varied if axis not in named and axis not in _NO_PARAMETERS]
    if named.count(None) > len(free):
        raise FlashtwinError(
            f"{results.directory}: a heat map needs two axes that vary; of {', '.join(varied) or 'none'}, "
            "give over (--over AXIS) and by (--by AXIS)"
        )
    over, by = (axis or free.pop(0) for axis in named)
    further = [axis for axis in varied if axis not in (over, by)]
    if len(further) > 1:
        raise FlashtwinError(
            f"{results.directory}: {' and '.join(further)} vary, too; give where={{axis: value}} (--where "
            "AXIS=VALUE) for all but one of them"
        )
    parts = panels_of(results, further[0] if further else None, fixed)
    found = [Chosen(results, figure, by, over, at, normalized=normalized, confidence=0.95) for _, at in parts]
    panels = [
        [[math.nan if cell is None else cell[0] for cell in row] for row in chosen.series.values()]
        for chosen in found
    ]
    known = [value for rows in panels for row in rows for value in row if not math.isnan(value)]
    drawn = new(columns, 0.6 + 1.7 * rows_of(len(parts), columns))
    every = grid(drawn, len(parts), columns)
    mesh: Any = None
    for axes, (name, _), chosen, rows in zip(every, parts, found, panels, strict=True):
        mesh = axes.pcolormesh(rows, cmap="Greys", vmin=min(known), vmax=max(known), edgecolors="white")
        _write(axes, rows, (min(known) + max(known)) / 2)
        places = [str(place) for place in chosen.places]
        axes.set_xticks([i + 0.5 for i in range(len(places))], places, rotation=30, ha="right")
        axes.set_yticks([i + 0.5 for i in range(len(rows))], list(chosen.series))
        axes.set(title=name, xlabel=title_of(chosen.over or ""), ylabel=title_of(chosen.by or ""))
    label_edges(every, columns)
    drawn.colorbar(mesh, ax=every, label=found[0].label, aspect=30)
    return drawn


def _write(axes: Axes, rows: list[list[float]], middle: float) -> None:
    """Print the values into the cells of a heat map, unless there are too many cells."""
    if sum(map(len, rows)) > _WRITTEN_CELLS:
        return
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            if not math.isnan(value):
                colour = "white" if value > middle else "black"
                axes.text(x + 0.5, y + 0.5, digits(value), ha="center", va="center", color=colour, fontsize=6)
