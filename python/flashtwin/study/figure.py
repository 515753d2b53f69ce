"""The figure of a study: for each claim the printed value as a mark and the measured one as an interval."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from ..errors import FlashtwinError
from ..plot.style import legend_above, new, save, styled

_PRINTED: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)(?: %)?")
#: Changes beyond it leave the figure, with an arrow at its edge.
_MOST_PERCENT: Final = 200.0


def marks(outcome: dict[str, Any]) -> list[tuple[str, float, float, float, float]]:
    """Return of each claim with a printed change its id, the printed value, ours and the interval, in %."""
    found = []
    for claim in outcome["claims"]:
        for measure in claim["measures"][:1]:
            printed = _PRINTED.fullmatch(measure["printed"].strip())
            value = measure["value"]
            if printed is None or value is None or claim["same_as"] is not None:
                continue
            if measure["unit"] not in ("change", "percent"):
                continue
            low, high = (value if measure[end] is None else measure[end] for end in ("low", "high"))
            found.append((claim["id"], float(printed[1]), value, low, high))
    return found


@styled
def draw(outcome: dict[str, Any], path: str | Path) -> None:
    """Write the figure, as the file's name asks for.

    Raises:
        FlashtwinError: no claim has a printed number, or the file cannot be written.
    """
    rows = marks(outcome)
    if not rows:
        raise FlashtwinError(f"{outcome['study']}: no claim has a printed number to draw")
    figure = new(2, 0.6 + 0.22 * len(rows))
    axes = figure.subplots()
    places = range(len(rows))
    inside = [max(-_MOST_PERCENT, min(_MOST_PERCENT, row[2])) for row in rows]
    errors = [
        [
            max(0.0, value - max(low, -_MOST_PERCENT))
            for value, (_, _, _, low, _) in zip(inside, rows, strict=True)
        ],
        [
            max(0.0, min(high, _MOST_PERCENT) - value)
            for value, (_, _, _, _, high) in zip(inside, rows, strict=True)
        ],
    ]
    axes.axvline(0, color="0.7", linewidth=0.6)
    axes.errorbar(
        inside,
        places,
        xerr=errors,
        fmt="o",
        color="black",
        markersize=3,
        capsize=2,
        label="here, 95 % interval",
    )
    axes.plot(
        [row[1] for row in rows],
        places,
        linestyle="none",
        marker="D",
        markersize=6,
        markerfacecolor="none",
        markeredgecolor="0.35",
        label="printed",
    )
    axes.set_yticks(places, [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("%")
    axes.grid(axis="x", linewidth=0.3, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(figure, axes, 2)
    save(figure, path)
