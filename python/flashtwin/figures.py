"""Figures for papers, readable in grey: lines differ in dashes and bars in hatching."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import FlashtwinError
from .files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .comparison import Comparison
    from .hit_ratios import HitTable
    from .result import Result

_DASHES = ["-", "--", "-.", ":"]
_HATCHES = ["", "//", "..", "xx", "\\\\", "++"]
_COLOURS = ["#0b3c5d", "#d1495b", "#2a9d8f", "#edae49", "#7a5195", "#6b6b6b"]
#: The distribution is drawn up to here, as a share of requests that took longer.
_TAIL = 1e-5
#: A part of the mean is drawn on its own from this share of the longest bar.
_VISIBLE = 0.01


#: Percentiles of a summary, by the share of requests that took longer.
_PERCENTILES = {0.5: "p50_us", 0.1: "p90_us", 0.01: "p99_us", 1e-3: "p999_us", 1e-4: "p9999_us"}
_MARKERS = "osv^D<>Xp*"
#: A member's own collections, and those it was told to do.
_OWN: dict[str, Any] = {"facecolor": "0.75", "edgecolor": "0.4", "linewidth": 0.4}
_FORCED: dict[str, Any] = {"facecolor": "#0b3c5d", "edgecolor": "#0b3c5d", "linewidth": 0.4}

#: With more policies than this, names stand upright and the figure grows.
_FEW = 6


def kind_of(path: Path) -> str:
    """Find the kind of figure that a file's name asks for."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise FlashtwinError("figures need matplotlib: pip install 'flashtwin[plot]'") from None
    known = FigureCanvasAgg.filetypes
    kind = path.suffix.lstrip(".").lower()
    if kind not in known:
        raise FlashtwinError(f"{path}: a figure's name must end in one of: .{', .'.join(sorted(known))}")
    return kind


def _new(path: Path, width: float, height: float) -> tuple[Figure, str]:
    """Make a figure, and find the kind of file that its name asks for."""
    kind = kind_of(path)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained"), kind


def _save(figure: Figure, path: Path, kind: str) -> None:
    from matplotlib import rc_context

    # No date or version inside, and no names drawn by lot: the same results give the same file.
    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with whole_file(path, "the figure") as file, rc_context({"svg.hashsalt": "flashtwin"}):
        figure.savefig(file, format=kind, dpi=150, metadata=metadata.get(kind))


def _line(i: int) -> dict[str, Any]:
    """Dashes and colour of the i-th line: 24 pairs before the first comes again."""
    both = len(_DASHES) * len(_COLOURS) // 2
    return {"linestyle": _DASHES[(i + i // both) % len(_DASHES)], "color": _COLOURS[i % len(_COLOURS)]}


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw how many requests took longer than a time, and where the mean went, policy by policy."""
    many = max(0, len(comparison) - _FEW)
    figure, kind = _new(path, 9.5 + 0.25 * many, 3.8 + 0.08 * many)
    tail, bars = figure.subplots(1, 2, width_ratios=(1.35, 1))
    for i, result in enumerate(comparison):
        cdf = result.cdf()
        longer = [max(1 - share, 0.0) for share in cdf["share"].to_pylist()]
        tail.step(cdf["response_us"].to_pylist(), longer, where="post", label=result.policy, **_line(i))
    tail.set(xscale="log", yscale="log", ylim=(_TAIL, 1.2), xlabel="response time (us)")
    tail.set(ylabel="share of requests that took longer", title="Response times of reads and writes")
    tail.grid(which="major", color="0.88")
    tail.legend(frameon=False, fontsize="small" if many else None, ncols=1 + many // 12)
    bottom = [0.0] * len(comparison)
    for i, (part, heights) in enumerate(_visible_parts(comparison)):
        bars.bar(
            comparison.policies,
            heights,
            bottom=bottom,
            label=part,
            color=_COLOURS[i % len(_COLOURS)],
            edgecolor="white",
            linewidth=0.5,
            hatch=_HATCHES[i % len(_HATCHES)],
        )
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    bars.set(ylabel="us", title="Where the mean went")
    bars.tick_params(axis="x", labelrotation=90 if many else 20)
    bars.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    first = comparison.results[0].summary
    figure.suptitle(f"{first['device']}: {Path(first['workload'].split(': ')[0]).name}", fontsize="medium")
    _save(figure, path, kind)


def draw_hits(table: HitTable, path: Path) -> None:
    """Draw hit ratio over capacity, a line a policy; MIN, the bound, in black dots."""
    figure, kind = _new(path, 7.5, 4.2 + 0.08 * max(0, len(table.policies) - _FEW))
    axes = figure.subplots()
    for i, policy in enumerate(table.policies):
        rows = sorted((row for row in table if row.policy == policy), key=lambda row: row.capacity_pages)
        sizes = [row.capacity_pages * table.page_bytes / 2**20 for row in rows]
        style = {"linestyle": ":", "color": "black"} if policy == "min" else _line(i)
        axes.plot(sizes, [row.hit_ratio * 100 for row in rows], marker=".", label=policy, **style)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="buffer (MiB)", ylabel="hit ratio (%)", title=Path(table.workload.split(": ")[0]).name)
    axes.grid(which="major", color="0.88")
    axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path, kind)


def draw_collections(
    results: Mapping[str, Result], path: Path, from_s: float = 0, until_s: float | None = None
) -> None:
    """Draw a row for each member of an array, with bars where it collects; a panel for each result.

    Bars of collections that the coordinator asked for are dark and full, those of a member's own light.
    """
    members = []
    intervals = []
    for result in results.values():
        if result.gc_intervals is None:
            raise FlashtwinError("a figure of who collects when needs a run with gc_timeline=True")
        members.append(len(result.summary["array"]["members"]))
        intervals.append(result.gc_intervals.to_pylist())
    figure, kind = _new(path, 9.5, 0.9 + sum(0.5 + 0.16 * count for count in members))
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
    panels[-1].set(xlabel="virtual time (s)")
    handles = [Patch(label=text, **style) for text, style in (("its own", _OWN), ("told to", _FORCED))]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)
    _save(figure, path, kind)


def draw_percentiles(panels: Mapping[str, Mapping[str, Result]], path: Path) -> None:
    """Draw response times from the median to p99.99, a panel for each load and a line for each scheme.

    Lines differ in colour, dashes and marker, so that they can be told apart in grey.
    """
    figure, kind = _new(path, 4.0 * len(panels) + 1.8, 4.4)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (load, results) in zip(axes, panels.items(), strict=True):
        for i, (label, result) in enumerate(results.items()):
            at = list(_PERCENTILES)
            times = [result.latency[_PERCENTILES[share]] for share in at]
            style = {"color": "black", "linestyle": ":"} if label == "ideal" else _line(i)
            panel.plot(at, times, label=label, marker=_MARKERS[i % len(_MARKERS)], markersize=4, **style)
        panel.set(xscale="log", yscale="log", title=load, xlim=(0.6, 0.8e-4))
        panel.set_xticks(list(_PERCENTILES), ["p50", "p90", "p99", "p99.9", "p99.99"], fontsize="small")
        panel.minorticks_off()
        panel.grid(which="major", color="0.88")
    axes[0].set(ylabel="response time (us)")
    axes[-1].legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path, kind)


def _visible_parts(comparison: Comparison) -> list[tuple[str, list[float]]]:
    """Name and height for each policy of the parts one can see; the others together last."""
    means = [sum(result.breakdown.values()) for result in comparison]
    parts = {part: [r.breakdown[part] for r in comparison] for part in comparison.results[0].breakdown}
    seen = [(part.replace("_", " "), us) for part, us in parts.items() if max(us) >= _VISIBLE * max(means)]
    shown = [sum(column) for column in zip(*(us for _, us in seen), strict=True)]
    return [*seen, ("other", [mean - us for mean, us in zip(means, shown, strict=True)])]
