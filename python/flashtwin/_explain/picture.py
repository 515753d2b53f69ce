"""The picture of an explanation: the parts of the request, and below them the work of its die."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..plot.style import fill, legend_above, new, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .events import Work

#: Parts and kinds shorter than this share of the response time are drawn together as "other".
_SHOWN = 0.005


def draw(
    path: str | Path, request: int, parts_ps: Mapping[str, int], die: str | None, work: Sequence[Work]
) -> None:
    """Draw the parts of a request, and the work of the die that it waited for, into a file."""
    save(_figure(request, parts_ps, die, work), path)


@styled
def _figure(request: int, parts_ps: Mapping[str, int], die: str | None, work: Sequence[Work]) -> Figure:
    figure = new(2, 1.9)
    axes = figure.subplots()
    response_ps = sum(parts_ps.values())
    rows = [(f"request {request}", _parts(parts_ps))]
    if die:
        rows.append((die, [(each.begin_ps, each.end_ps, each.kind) for each in work]))
    labels = list(dict.fromkeys(kind for _, spans in rows for _, _, kind in spans))
    for y, (_, spans) in enumerate(rows):
        _bars(axes, y, spans, labels)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set(xlim=(0, response_ps * 1e-9), xlabel="time since arrival (ms)")
    axes.invert_yaxis()
    legend_above(figure, axes, 2)
    return figure


def _parts(parts_ps: Mapping[str, int]) -> list[tuple[int, int, str]]:
    """Parts of the response time one behind the other; small ones together."""
    response_ps = sum(parts_ps.values())
    spans, at, other = [], 0, 0
    for part, ps in parts_ps.items():
        if ps < _SHOWN * response_ps:
            other += ps
            continue
        spans.append((at, at + ps, part.replace("_", " ")))
        at += ps
    return [*spans, (at, at + other, "other")] if other else spans


def _bars(axes: Axes, y: int, spans: list[tuple[int, int, str]], labels: list[str]) -> None:
    for i, label in enumerate(labels):
        of_label = [(begin * 1e-9, (end - begin) * 1e-9) for begin, end, kind in spans if kind == label]
        if of_label:
            axes.broken_barh(of_label, (y - 0.3, 0.6), label=label, **fill(i))
