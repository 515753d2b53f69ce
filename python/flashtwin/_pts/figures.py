"""Plots of a test: convergence over the rounds, the window of the steady state, and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..plot.style import fill, legend_above, line, named_ticks, new, styled
from .drive import SIZES, Access
from .tests import IOPS_BLOCKS, IOPS_MIXES, LATENCY_BLOCKS, LATENCY_MIXES, Rounds, Saturation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def convergence(test: Rounds, accesses: list[Access], label: str) -> Figure:
    """Draw the tracked figure (the one that must become steady) of several accesses, round by round."""
    figure = new(2, 2.8)
    axes = figure.subplots()
    rounds = list(range(1, len(test.rounds) + 1))
    for i, access in enumerate(accesses):
        axes.plot(rounds, test.course(access), label=f"{access.size}, {access.mix}", **line(i))
    axes.set(xlabel="round", ylabel=label)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", integer=True)
    axes.grid(which="major")
    legend_above(figure, axes, 2)
    return figure


@styled
def window(test: Rounds, label: str) -> Figure:
    """Draw the tracked figure (the one that must become steady) in the last five rounds.

    Lines show the average, 90 % and 110 % of the average, and the least-squares fit.
    """
    figure = new(2, 2.6)
    axes = figure.subplots()
    found = test.window
    ends = [found.first - 0.2, found.last + 0.2]
    rounds = range(found.first, found.last + 1)
    shown = {"label": f"{test.tracked.size}, {test.tracked.mix}", **line(0), "linestyle": "none"}
    axes.plot(list(rounds), list(found.values), **shown)
    fitted = [found.intercept + found.slope * at for at in ends]
    axes.plot(ends, fitted, label="fitted line", color="#d1495b", linestyle="--")
    axes.plot(ends, [found.average] * 2, label="average", color="black", linestyle="-")
    for share, name in ((1.1, "110 %, 90 % of it"), (0.9, None)):
        axes.plot(ends, [share * found.average] * 2, label=name, color="0.45", linestyle=":")
    axes.set(xlabel="round", ylabel=label, xticks=list(rounds))
    axes.set_ylim(0, 1.3 * max(found.values) or 1)
    axes.grid(which="major")
    legend_above(figure, axes, 2)
    return figure


@styled
def iops_by_size(test: Rounds) -> Figure:
    """Draw IOPS over block size, one line per mix of reads and writes."""
    figure = new(2, 3.0)
    axes = figure.subplots()
    blocks = sorted(IOPS_BLOCKS)
    for i, reads in enumerate(IOPS_MIXES):
        values = [test.average(Access(block, reads), "iops") for block in blocks]
        axes.plot(blocks, values, label=f"{reads}/{100 - reads}", **line(i))
    axes.set(xlabel="block size (KiB)", ylabel="IOPS", yscale="log")
    axes.set_xscale("log", base=2)
    axes.set_xticks(blocks, [SIZES[block].removesuffix(" KiB") for block in blocks])
    axes.minorticks_off()
    axes.grid(which="major")
    legend_above(figure, axes, 2)
    return figure


@styled
def iops_in_space(test: Rounds) -> Figure:
    """Draw IOPS by mix and block size as three-dimensional bars."""
    figure = new(2, 4.2)
    axes: Any = figure.add_subplot(projection="3d")
    for row, reads in enumerate(IOPS_MIXES):
        for column, block in enumerate(IOPS_BLOCKS):
            height = test.average(Access(block, reads), "iops")
            shade = str(0.35 + 0.55 * row / (len(IOPS_MIXES) - 1))
            look = {"color": shade, "edgecolor": "black", "linewidth": 0.2}
            axes.bar3d(column - 0.3, row - 0.3, 0, 0.6, 0.6, height, **look)
    axes.set_xticks(range(len(IOPS_BLOCKS)), [SIZES[block].removesuffix(" KiB") for block in IOPS_BLOCKS])
    axes.set_yticks(range(len(IOPS_MIXES)), [f"{reads}/{100 - reads}" for reads in IOPS_MIXES])
    axes.set(xlabel="block size (KiB)", ylabel="reads/writes", zlabel="IOPS")
    axes.view_init(elev=28, azim=-125)
    return figure


@styled
def latency_bars(test: Rounds) -> Figure:
    """Draw mean and longest response times by block size and mix."""
    figure = new(2, 2.8)
    panels = figure.subplots(1, 2)
    for axes, (name, title) in zip(panels, (("mean_us", "mean"), ("max_us", "longest")), strict=True):
        width = 0.8 / len(LATENCY_BLOCKS)
        for i, block in enumerate(LATENCY_BLOCKS):
            at = [j + (i - 1) * width for j in range(len(LATENCY_MIXES))]
            values = [test.average(Access(block, reads), name) for reads in LATENCY_MIXES]
            axes.bar(at, values, width=width, label=SIZES[block], **fill(i))
        named_ticks(axes, [f"{reads}/{100 - reads}" for reads in LATENCY_MIXES], 1)
        axes.set(xlabel="reads/writes", ylabel=f"{title} response time (us)")
        axes.grid(axis="y")
    legend_above(figure, panels[0], 2)
    return figure


@styled
def saturation(test: Saturation) -> Figure:
    """Draw IOPS, response times and write amplification over virtual time."""
    figure = new(2, 4.2)
    panels = figure.subplots(3, 1, sharex=True)
    middles = [(i + 0.5) * test.interval_s for i in range(len(test.iops))]
    bare = {**line(0, markers=False), "linewidth": 0.8}
    panels[0].plot(middles, test.iops, **bare)
    panels[0].set_ylabel("IOPS")
    for i, (name, values) in enumerate((("mean", test.mean_us), ("longest", test.max_us))):
        shown = [float("nan") if value is None else value for value in values]
        panels[1].plot(middles, shown, label=name, **{**line(i, markers=False), "linewidth": 0.8})
    panels[1].set(ylabel="response time (us)", yscale="log")
    panels[1].legend(loc="lower right", ncols=2)
    panels[2].plot(*([point[i] for point in test.amplification] for i in (0, 1)), **bare)
    panels[2].set(ylabel="write\namplification", xlabel="virtual time (s)")
    for axes in panels:
        axes.grid(which="major")
        if axes.get_yscale() == "linear":
            axes.set_ylim(bottom=0)
    figure.align_ylabels()
    return figure


def of_rounds(test: Rounds) -> dict[str, Figure]:
    """Return the plots of a test, by the endings of their file names."""
    label = {"iops": "IOPS", "mb_per_s": "MB/s", "mean_us": "mean response time (us)"}[test.figure]
    drawn: dict[str, Figure] = {}
    if test.figure == "iops":
        tracked = [Access(block, 0) for block in IOPS_BLOCKS]
        drawn = {"by-size": iops_by_size(test), "in-space": iops_in_space(test)}
    elif test.figure == "mean_us":
        tracked = [Access(block, 0) for block in LATENCY_BLOCKS]
        drawn = {"bars": latency_bars(test)}
    else:
        tracked = [Access(test.tracked.block_bytes, reads, sequential=True) for reads in (100, 0)]
    return {"convergence": convergence(test, tracked, label), "window": window(test, label), **drawn}
