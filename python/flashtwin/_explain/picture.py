"""The picture of an explanation: the parts of a response time, and below them the work of one die."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..plot.style import fill, legend_above, new, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .events import Work

#: A bar: its begin and its end, in picoseconds after the arrival, and its name.
Span: TypeAlias = tuple[int, int, str]
#: Parts that take less than this fraction of the response time are combined as "other".
_SHOWN = 0.005


def draw(
    path: str | Path, name: str, parts_ps: dict[str, int], die: str | None, work: Sequence[Work]
) -> None:
    """Draw the parts of a request's response time, and the operations of the die that it waited for."""
    rows = [(name, _spans(parts_ps))]
    if die:
        rows.append((die, [(each.begin_ps, each.end_ps, each.kind) for each in work]))
    save(_figure(rows, sum(parts_ps.values())), path)


@styled
def _figure(rows: list[tuple[str, list[Span]]], response_ps: int) -> Figure:
    figure = new(2, 1.9)
    axes = figure.subplots()
    labels = list(dict.fromkeys(kind for _, spans in rows for _, _, kind in spans))
    for y, (_, spans) in enumerate(rows):
        _bars(axes, y, spans, labels)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set(xlim=(0, response_ps * 1e-9), xlabel="time since arrival (ms)")
    axes.invert_yaxis()
    legend_above(figure, axes, 2)
    return figure


def _spans(parts_ps: dict[str, int]) -> list[Span]:
    """Arrange the parts of a response time one after the other. Small parts are combined."""
    spans: list[Span] = []
    at, other = 0, 0
    for part, ps in parts_ps.items():
        if ps < _SHOWN * sum(parts_ps.values()):
            other += ps
            continue
        spans.append((at, at + ps, part.replace("_", " ")))
        at += ps
    return [*spans, (at, at + other, "other")] if other else spans


def _bars(axes: Axes, y: int, spans: list[Span], labels: list[str]) -> None:
    for i, label in enumerate(labels):
        of_label = [(begin * 1e-9, (end - begin) * 1e-9) for begin, end, kind in spans if kind == label]
        if of_label:
            axes.broken_barh(of_label, (y - 0.3, 0.6), label=label, **fill(i))
