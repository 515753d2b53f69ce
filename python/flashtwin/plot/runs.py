"""Figures of runs: response times, parts of their mean, values over time, programs by cause."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

from .._support.record import Record, Recorded, labels_of, percentile_curve, record_of
from .._support.tables import PARTS, cdf_table
from ..errors import FlashtwinError
from .style import fill, legend_above, line, named_ticks, new, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._support.record import Kind

#: A run: a result, a record, or the file of a record.
Run: TypeAlias = Union[Recorded, Record, str, "os.PathLike[str]"]
#: One run, several runs, or several runs by name.
Runs: TypeAlias = Run | Sequence[Run] | Mapping[str, Run]

#: A part of the mean is drawn separately if it is at least this fraction of the longest bar.
_VISIBLE = 0.01
#: All other parts are drawn together if their sum is at least this fraction of the longest bar.
_SHOWN = 0.001
#: Percentiles that are marked, by 1 / (1 - fraction).
_MARKED = {2: "p50", 10: "p90", 100: "p99", 1000: "p99.9", 10_000: "p99.99"}
#: Markers on a curve.
_MARKS = 12
#: Measures of a history over time, with the labels of their axes.
MEASURES = {
    "iops": "IOPS",
    "mb_per_s": "MB/s",
    "mean_us": "mean response (us)",
    "p99_us": "p99 response (us)",
    "hit_ratio": "hit ratio",
    "inside_mean": "requests in flight",
    "gc_write_amplification": "GC write amplification",
}
#: Causes of programs for the host, and all other causes, each in the order in which they are stacked.
_FOR_HOST = ("host_write", "destage", "flush", "write_back")
_BESIDE = ("gc_move", "fold", "migration", "merge_copy", "map_write", "padding", "merge")


def labelled(runs: Runs) -> dict[str, Record]:
    """Return the records of runs by label: the given names, or settings in which the runs differ.

    Raises:
        FlashtwinError: there are no runs, or a value is not a run.
    """
    if isinstance(runs, Mapping):
        named = {str(label): record_of(run) for label, run in runs.items()}
    else:
        several = isinstance(runs, Iterable) and not isinstance(runs, (str, os.PathLike))
        records = [record_of(run) for run in (runs if several else [runs])]  # type: ignore[union-attr]
        named = dict(zip(labels_of(records), records, strict=True)) if records else {}
    if not named:
        raise FlashtwinError("no runs to draw; give one or more results")
    return named


def _with_requests(records: Mapping[str, Record], requests: Kind) -> None:
    if requests not in ("all", "read", "write"):
        raise FlashtwinError(f"requests: {requests}: give all, read or write")
    for label, record in records.items():
        if not record.histograms[requests]:
            what = "request" if requests == "all" else requests
            raise FlashtwinError(f"{label}: this run has no {what} whose response time could be drawn")


_WHOSE = {"all": "response time", "read": "response time of reads", "write": "response time of writes"}


@styled
def cdf(runs: Runs, *, requests: Kind = "all", columns: int = 1) -> Figure:
    """Draw the cumulative distribution of response times.

    Args:
        runs: results, records, files of `Result.save`, or a mapping from names to them.
        requests: whether to draw all requests, only reads, or only writes.
        columns: width of the figure in columns of a paper: 1 (3.5 in) or 2 (7.16 in).

    Raises:
        FlashtwinError: there is nothing to draw.
    """
    records = labelled(runs)
    _with_requests(records, requests)
    figure = new(columns, 2.4)
    axes = figure.subplots()
    for i, (label, record) in enumerate(records.items()):
        table = cdf_table(record.histograms[requests])
        times, shares = table["response_us"].to_pylist(), table["share"].to_pylist()
        # Markers are at equidistant fractions of the requests, because most buckets of the histogram are
        # close together. They are shifted from line to line, so that both lines can be seen if they coincide.
        at = [(k + (i + 1) / (len(records) + 1)) / _MARKS for k in range(_MARKS)]
        marks = sorted({bisect_left(shares, share) for share in at})
        axes.step(times, shares, where="post", label=label, markevery=marks, **line(i))
    axes.set(xscale="log", ylim=(0, 1.01), xlabel=f"{_WHOSE[requests]} (us)", ylabel="share of requests")
    axes.grid(which="major")
    legend_above(figure, axes, columns)
    return figure


def draw_percentiles(axes: Axes, records: Mapping[str, Record], requests: Kind) -> None:
    """Draw response times from the median to p99.99 into a panel, one line per run."""
    for i, (label, record) in enumerate(records.items()):
        curve = [point for point in percentile_curve(record.histograms[requests]) if point[0] >= 1.99]
        at, times = [point[0] for point in curve], [point[1] for point in curve]
        marks = [j for j, nines in enumerate(at) if any(abs(nines / n - 1) < 0.01 for n in _MARKED)]
        axes.plot(at, times, label=label, markevery=marks, **(line(i) | {"markerfacecolor": "none"}))
    axes.set(xscale="log", yscale="log", xlim=(1.8, 11_500))
    axes.set_xticks(list(_MARKED), list(_MARKED.values()))
    axes.minorticks_off()
    axes.grid(which="major")


@styled
def percentiles(runs: Runs | Mapping[str, Runs], *, requests: Kind = "all", columns: int = 1) -> Figure:
    """Draw response times from the median to p99.99, on logarithmic axes.

    The lines end earlier if there are too few requests.

    Args:
        runs: as for `cdf`; or a mapping from titles to such mappings, each of which has a panel.
        requests: as for `cdf`.
        columns: as for `cdf`.
    """
    nested = isinstance(runs, Mapping) and all(isinstance(inner, Mapping) for inner in runs.values())
    panels: Mapping[str, Any] = cast(Mapping[str, Any], runs) if nested else {"": runs}
    figure = new(columns, 2.4 if len(panels) == 1 else 2.9)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, inner) in zip(drawn, panels.items(), strict=True):
        records = labelled(inner)
        _with_requests(records, requests)
        draw_percentiles(axes, records, requests)
        axes.set_title(title)
    drawn[0].set(ylabel=f"{_WHOSE[requests]} (us)")
    for axes in drawn:
        axes.tick_params(axis="x", labelrotation=45 if len(drawn) > columns else 0)
    legend_above(figure, drawn[0], columns)
    return figure


def _stack(axes: Axes, names: list[str], parts: Sequence[tuple[str, Sequence[float]]], columns: int) -> None:
    bottom = [0.0] * len(names)
    for i, (part, heights) in enumerate(parts):
        axes.bar(range(len(names)), heights, width=0.62, bottom=bottom, label=part, **fill(i))
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    named_ticks(axes, names, columns)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(axis="y")


def draw_breakdown(axes: Axes, records: Mapping[str, Record], requests: Kind, columns: int) -> None:
    """Draw the parts of the mean response time into a panel, one bar per run."""
    breakdowns = [record.summary[requests]["parts_us"] for record in records.values()]
    means = [sum(parts.values()) for parts in breakdowns]
    parts = [(part, [parts[part] for parts in breakdowns]) for part in PARTS]
    seen = [(part.replace("_", " "), us) for part, us in parts if max(us) >= _VISIBLE * max(means)]
    shown = [sum(column) for column in zip(*(us for _, us in seen), strict=True)]
    other = [max(0.0, mean - us) for mean, us in zip(means, shown, strict=True)]
    rest = [("other", other)] if max(other) >= _SHOWN * max(means) else []
    _stack(axes, list(records), [*seen, *rest], columns)
    axes.set_ylabel(f"mean {_WHOSE[requests]} (us)")


@styled
def breakdown(runs: Runs, *, requests: Kind = "all", columns: int = 1) -> Figure:
    """Draw the parts of the mean response time, one stacked bar per run. Arguments are those of `cdf`.

    Parts below a hundredth of the longest bar are combined as "other".
    """
    records = labelled(runs)
    _with_requests(records, requests)
    figure = new(columns, 2.6)
    axes = figure.subplots()
    draw_breakdown(axes, records, requests, columns)
    legend_above(figure, axes, columns)
    return figure


@styled
def amplification(runs: Runs, *, columns: int = 1) -> Figure:
    """Draw GC write amplification, one bar per run, stacked by cause of the programs.

    A bar shows the pages programmed per page programmed for the host. Its height is the GC write
    amplification.

    Raises:
        FlashtwinError: a run programmed nothing for the host, or it is a run of an array, in which each
            member has its own write amplification.
    """
    records = labelled(runs)
    shares: dict[str, list[float]] = {cause: [] for cause in ("host", *_BESIDE)}
    for label, record in records.items():
        if record.summary["array"]:
            raise FlashtwinError(
                f"{label}: GC write amplification by cause is drawn of single SSDs, not of arrays"
            )
        ops = {op["name"]: op["count"] for op in record.summary["flash"]["ops"]}
        host = sum(ops.get(cause, 0) for cause in _FOR_HOST)
        if not host:
            raise FlashtwinError(
                f"{label}: no page was programmed for the host: GC write amplification is undefined"
            )
        shares["host"].append(1.0)
        for cause in _BESIDE:
            shares[cause].append(ops.get(cause, 0) / host)
    seen = [
        (cause.replace("_", " ").replace("gc", "GC"), each) for cause, each in shares.items() if any(each)
    ]
    figure = new(columns, 2.4)
    axes = figure.subplots()
    _stack(axes, list(records), seen, columns)
    axes.set_ylabel("pages programmed\nper page of the host")
    legend_above(figure, axes, columns)
    return figure


def _with_history(records: Mapping[str, Record]) -> None:
    for label, record in records.items():
        if not record.history:
            raise FlashtwinError(
                f"{label}: nothing was kept over time; run it with history=True (flashtwin run --record FILE)"
            )


@styled
def over_time(
    runs: Runs, *, measures: Sequence[str] = ("iops", "mean_us", "gc_write_amplification"), columns: int = 1
) -> Figure:
    """Draw measures over virtual time, one panel per measure and one line per run.

    Args:
        runs: as for `cdf`, with `history=True`.
        measures: columns of `Result.history`.
        columns: as for `cdf`.
    """
    records = labelled(runs)
    _with_history(records)
    for name in measures:
        if name not in MEASURES:
            raise FlashtwinError(f"measures: {name}: give some of {', '.join(MEASURES)}")
    figure = new(columns, 0.6 + 1.05 * len(measures))
    panels = figure.subplots(len(measures), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, measures, strict=True):
        for i, (label, record) in enumerate(records.items()):
            middles = [point["t_s"] + point["length_s"] / 2 for point in record.history]
            values = [float("nan") if point[name] is None else point[name] for point in record.history]
            every = max(1, len(values) // _MARKS)
            axes.plot(
                middles,
                values,
                label=label,
                markevery=(every * (i + 1) // (len(records) + 1), every),
                **line(i),
            )
        axes.set_ylabel(MEASURES[name].replace(" ", "\n", 1) if columns == 1 else MEASURES[name])
        axes.set_ylim(bottom=0)
        axes.grid(which="major")
    panels[-1].set_xlabel("virtual time (s)")
    figure.align_ylabels()
    legend_above(figure, panels[0], columns)
    return figure


@styled
def gc_map(runs: Runs, *, columns: int = 1) -> Figure:
    """Draw the fraction of time that each chip was in GC, over virtual time, one panel per run.

    A field is a chip in a window of time: white is 0 % of the window in GC, black is 100 %. `runs` is as for
    `over_time`.
    """
    records = labelled(runs)
    _with_history(records)
    chips = max(len(record.history[0]["gc_share_by_chip"]) for record in records.values())
    height = min(2.4, 0.7 + 0.08 * chips)
    figure = new(columns, 0.5 + height * len(records))
    panels = figure.subplots(len(records), 1, sharex=True, squeeze=False)[:, 0]
    mesh: Any = None
    for axes, (label, record) in zip(panels, records.items(), strict=True):
        history = record.history
        edges = [point["t_s"] for point in history]
        edges.append(history[-1]["t_s"] + history[-1]["length_s"])
        rows = list(zip(*(point["gc_share_by_chip"] for point in history), strict=True))
        ends = [chip - 0.5 for chip in range(len(rows) + 1)]
        mesh = axes.pcolormesh(edges, ends, rows, cmap="Greys", vmin=0, vmax=1, rasterized=True)
        axes.set(ylabel="chip", title=label if len(records) > 1 else "")
        axes.locator_params(axis="y", integer=True)
    panels[-1].set_xlabel("virtual time (s)")
    figure.colorbar(mesh, ax=list(panels), label="share of time in GC", aspect=30)
    return figure
