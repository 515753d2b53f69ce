"""Figures of sweeps: groups of bars, and lines over a parameter, with intervals over seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._results import Results
from .._results.dataset import column_of
from .._support import words
from ..errors import FlashtwinError
from .style import fill, legend_above, line, named_ticks, new, sizes_axis, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Series by name. A series has mean and ends of the interval for each position, or None if there is no value.
_Series = dict[str, list["tuple[float, float, float] | None"]]


class Chosen:
    """The part of a sweep that is drawn: one series per line or kind of bar, and positions along the axis."""

    def __init__(
        self,
        sweep: Results | str | os.PathLike[str],
        figure: str,
        by: str | None,
        over: str | None,
        where: Mapping[str, Any],
        *,
        normalized: bool,
        confidence: float,
    ) -> None:
        results = sweep if isinstance(sweep, Results) else Results(sweep)
        self.figure = figure.replace(".", "_")
        fixed = {self.axis(results, axis): str(value) for axis, value in where.items()}
        for axis, value in fixed.items():
            known = [str(each) for each in results.axes[axis]]
            if value not in known:
                raise FlashtwinError(f"where: {axis} is never {value}; its values are {', '.join(known)}")
        varied = [axis for axis in results.points if len(results.axes[axis]) > 1 and axis not in fixed]
        self.over = self.axis(results, over) if over else None
        self.by = self.axis(results, by) if by else None
        if self.by is not None and self.by == self.over:
            raise FlashtwinError(f"by and over: both are {self.by}; give two axes")
        free = [axis for axis in varied if axis not in (self.over, self.by)]
        if self.by is None and free:
            self.by = free.pop(free.index("policy") if "policy" in free else 0)
        if self.over is None and free:
            self.over = free.pop(0)
        if free:
            raise FlashtwinError(
                f"{results.directory}: {', '.join(free)} varies, too; give where={{axis: value}} (--where "
                "AXIS=VALUE) for all but two axes, draw lines with panels=axis (--panels AXIS), or a heat map"
            )
        self.places = results.axes[self.over] if self.over else [""]
        self.normalized = normalized
        what = "ratio" if normalized else "mean"
        found: dict[tuple[str, str], tuple[float, float, float]] = {}
        for row in results.statistics([self.figure], confidence).to_pylist():
            told = {axis: str(row[axis]) for axis in results.points}
            if row[what] is None or any(told[axis] != value for axis, value in fixed.items()):
                continue
            ends = [
                row[what] if row[f"{what}_{end}"] is None else row[f"{what}_{end}"] for end in ("low", "high")
            ]
            place = told[self.over] if self.over else ""
            found[told[self.by] if self.by else "", place] = (row[what], ends[0], ends[1])
        if not found:
            raise FlashtwinError(f"{results.directory}: nothing to draw: no cell has {self.figure} there")
        names = [str(value) for value in results.axes[self.by]] if self.by else [""]
        self.series: _Series = {
            name: [found.get((name, str(place))) for place in self.places] for name in names
        }
        baseline = [str(value) for value in results.baseline.values()]
        self.label = said(self.figure)
        if normalized:
            self.label = f"{self.label.removesuffix(' (us)')} / {', '.join(baseline) or 'baseline'}"

    @staticmethod
    def axis(results: Results, name: str) -> str:
        """Return the column of an axis.

        Raises:
            FlashtwinError: the sweep has no such axis.
        """
        column = column_of(name)
        for known in (name, column):
            if known in results.points:
                return known
        raise FlashtwinError(f"{name}: no axis of this sweep; its axes are {', '.join(results.points)}")


#: Texts that label an axis, by the column whose values it shows.
_SAID = {
    "all_mean_us": "mean response (us)",
    "read_mean_us": "mean response of reads (us)",
    "write_mean_us": "mean response of writes (us)",
    "all_p99_us": "p99 response (us)",
    "all_p999_us": "p99.9 response (us)",
    "all_p9999_us": "p99.99 response (us)",
    "throughput_iops": "IOPS",
    "throughput_mb_per_s": "MB/s",
    "hits_ratio": "hit ratio",
    "health_device_write_amplification": "device write amplification",
    "flash_gc_write_amplification": "GC write amplification",
    "flash_erases": "erases",
}


def said(column: str) -> str:
    """Return the label for an axis of a figure that shows the values of a column of the results."""
    return _SAID.get(column, column.replace("_", " "))


def title_of(axis: str) -> str:
    """Return the label for an axis of a figure that shows the values of a parameter of the sweep."""
    return axis.removeprefix("set_").removeprefix("run_").replace("_", " ")


@styled
def bars(
    sweep: Results | str | os.PathLike[str],
    figure: str,
    *,
    by: str | None = None,
    over: str | None = None,
    where: Mapping[str, Any] | None = None,
    normalized: bool = False,
    confidence: float = 0.95,
    columns: int = 1,
) -> Figure:
    """Draw a sweep as groups of bars: one group per value of one axis, one bar per value of another.

    Args:
        sweep: results of a sweep, or its directory.
        figure: a column of the dataset, such as "all.p99_us".
        by: axis with a bar per value; by default the policy if it varies, otherwise the first axis that
            varies.
        over: axis with a group per value; by default the next axis that varies.
        where: values of other axes.
        normalized: whether to draw ratios to the sweep's baseline, paired by seed, instead of means.
        confidence: confidence level of the intervals (Student's t over seeds).
        columns: width of the figure in columns of a paper: 1 (3.5 in) or 2 (7.16 in).

    Raises:
        FlashtwinError: there is no such axis, value or figure.
    """
    chosen = Chosen(sweep, figure, by, over, where or {}, normalized=normalized, confidence=confidence)
    drawn = new(columns, 2.4)
    axes = drawn.subplots()
    alone = chosen.over is None
    width = 0.62 if alone else 0.8 / len(chosen.series)
    for i, (name, values) in enumerate(chosen.series.items()):
        shift = i if alone else (i - (len(chosen.series) - 1) / 2) * width
        points = [(place + shift, *value) for place, value in enumerate(values) if value is not None]
        at, means = [point[0] for point in points], [point[1] for point in points]
        axes.bar(at, means, width=width, label=name, **fill(i))
        # One seed has no interval.
        for at_x, mean, low, high in (point for point in points if point[3] > point[2]):
            # A white line under the black one makes it visible on dark and on light bars.
            for colour, thick in (("white", 2.2), ("black", 0.8)):
                ends = [[mean - low], [high - mean]]
                axes.errorbar(at_x, mean, ends, fmt="none", ecolor=colour, elinewidth=thick, capsize=1.5)
    named_ticks(axes, list(chosen.series) if alone else [str(place) for place in chosen.places], columns)
    if chosen.over:
        axes.set_xlabel(title_of(chosen.over))
    if normalized:
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set_ylabel(chosen.label)
    axes.grid(axis="y")
    if not alone:
        legend_above(drawn, axes, columns)
    return drawn


@styled
def lines(
    sweep: Results | str | os.PathLike[str],
    figure: str,
    over: str,
    *,
    by: str | None = None,
    where: Mapping[str, Any] | None = None,
    panels: str | None = None,
    normalized: bool = False,
    confidence: float = 0.95,
    columns: int = 1,
) -> Figure:
    """Draw a sweep over a parameter, one line per value of another axis.

    Sizes and numbers on the horizontal axis are placed to scale, on a logarithmic axis if they span a factor
    of eight or more. Other values are equidistant. If `panels` names an axis, each of its values has a panel.
    All other arguments are as for `bars`.
    """
    results = sweep if isinstance(sweep, Results) else Results(sweep)
    parts = panels_of(results, panels, where or {})
    drawn = new(columns, 2.4 if panels is None else 0.4 + 2.0 * rows_of(len(parts), columns))
    for axes, (name, at) in zip(grid(drawn, len(parts), columns), parts, strict=True):
        chosen = Chosen(results, figure, by, over, at, normalized=normalized, confidence=confidence)
        _draw_lines(axes, chosen, columns)
        axes.set_title(name)
    label_edges(drawn.axes, columns)
    legend_above(drawn, drawn.axes[0], columns)
    return drawn


#: Maximum number of panels side by side in a figure of one column. In a figure of two columns, it is doubled.
_PANELS_IN_A_ROW = 2


def panels_of(
    results: Results, panels: str | None, where: Mapping[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the title of each panel, and the values of axes that select its cells."""
    if panels is None:
        return [("", dict(where))]
    axis = Chosen.axis(results, panels)
    # The section of a key is omitted from titles, because they would be too long for a panel.
    name = title_of(axis.partition("_")[2].partition("_")[2] if axis.startswith("set_") else axis)
    return [(f"{name} {value}", {**where, axis: value}) for value in results.axes[axis]]


def rows_of(panels: int, columns: int) -> int:
    """Return the number of rows in which the panels of a figure are placed."""
    return -(-panels // (_PANELS_IN_A_ROW * columns))


def grid(figure: Figure, panels: int, columns: int) -> list[Axes]:
    """Create the panels of a figure, in rows and with equal axes."""
    across = min(panels, _PANELS_IN_A_ROW * columns)
    found = figure.subplots(rows_of(panels, columns), across, sharex=True, sharey=True, squeeze=False)
    every = list(found.flat)
    for unused in every[panels:]:
        unused.remove()
    return every[:panels]


def label_edges(panels: list[Axes], columns: int) -> None:
    """Remove the labels of axes from all panels except those on the left and at the bottom."""
    across = min(len(panels), _PANELS_IN_A_ROW * columns)
    for i, axes in enumerate(panels):
        left, lowest = i % across == 0, i + across >= len(panels)
        axes.tick_params(labelleft=left, labelbottom=lowest)
        axes.set(xlabel=axes.get_xlabel() if lowest else "", ylabel=axes.get_ylabel() if left else "")


def _draw_lines(axes: Axes, chosen: Chosen, columns: int) -> None:
    """Draw the lines of a panel."""
    places, unit = _numbers(chosen.places)
    for i, (name, values) in enumerate(chosen.series.items()):
        points = sorted((places[j], *value) for j, value in enumerate(values) if value is not None)
        if not points:
            continue
        at, means, lows, highs = zip(*points, strict=True)
        errors = [
            [mean - low for mean, low in zip(means, lows, strict=True)],
            [high - mean for mean, high in zip(means, highs, strict=True)],
        ]
        axes.errorbar(at, means, errors, label=name, capsize=1.5, elinewidth=0.7, **line(i))
    if unit is None:
        named_ticks(axes, [str(place) for place in chosen.places], columns)
    elif min(places) > 0 and max(places) >= 8 * min(places):
        sizes_axis(axes, sorted(places))
    if chosen.normalized:
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
    else:
        axes.set_ylim(bottom=0)
    axes.set(xlabel=title_of(chosen.over or "") + (f" ({unit})" if unit else ""), ylabel=chosen.label)
    axes.grid(which="major")


def _numbers(places: list[Any]) -> tuple[list[float], str | None]:
    """Return the positions of values along an axis, and their unit.

    Sizes are in MiB, numbers are unchanged. All other values are equidistant; their unit is None.
    """
    if all(isinstance(place, (int, float)) and not isinstance(place, bool) for place in places):
        return [float(place) for place in places], ""
    sizes = [words.read_size(str(place)) for place in places]
    if all(size is not None for size in sizes):
        return [size / 2**20 for size in sizes if size is not None], "MiB"
    return [float(i) for i in range(len(places))], None
