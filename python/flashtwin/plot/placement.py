"""Figure of write amplification by placement scheme and victim rule, with the pages moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._placement import Waf
from .style import fill, legend_above, named_ticks, new, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

#: Closed forms that are drawn, with their line styles.
_LINES = {
    "uniform_greedy": ("uniform writes, closed form", ":"),
    "best_split": ("best split, closed form", "--"),
}


@styled
def placements(rows: Sequence[Waf], *, columns: int = 2) -> Figure:
    """Draw write amplification, one bar per row: pages of the host, and moved pages by owner and cause.

    An owner is a group of pages that fills units of its own. Both `h0, own` and `h0, others` are pages moved
    from units of owner h0 (host pages of class 0). The former were moved when class 0 needed room, the latter
    when another class needed it. Lines are closed forms.
    """
    figure = new(columns, 2.6 if columns == 2 else 4.2)
    axes = figure.subplots()
    parts = sorted({part for row in rows for part in _moves(row)})
    heights = [0.0] * len(rows)
    for i, part in enumerate(["host", *parts]):
        values = [1.0 if part == "host" else _moves(row).get(part, 0.0) for row in rows]
        axes.bar(range(len(rows)), values, 0.7, bottom=heights, label=part, **fill(i))
        heights = [height + value for height, value in zip(heights, values, strict=True)]
    for name, (label, dashes) in _LINES.items():
        for at, row in enumerate(rows):
            value = row.closed_forms().get(name)
            if value is not None:
                shown = label if at == 0 else "_"
                axes.plot([at - 0.45, at + 0.45], [value] * 2, dashes, color="black", label=shown)
    one = len({row.scheme for row in rows}) == 1
    names = [row.victim if one else f"{row.scheme}, {row.victim}" for row in rows]
    named_ticks(axes, names, columns)
    axes.set(ylabel="write amplification")
    axes.grid(axis="y", which="major")
    legend_above(figure, axes, columns)
    return figure


def _moves(row: Waf) -> dict[str, float]:
    """Return the moved pages per page that the host wrote, by owner of the units and cause of the move."""
    owners = [owner["name"] for owner in row.by_owner()]
    host = sum(owner["host_pages"] for owner in row.by_owner())
    found: dict[str, float] = {}
    for n, moved in enumerate(row.caused()):
        for name, pages in zip(owners, moved, strict=True):
            part = name if name == "s" else f"{name}, {'own' if name[1:] == str(n) else 'others'}"
            if pages:
                found[part] = found.get(part, 0.0) + pages / host
    return found
