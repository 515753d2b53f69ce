"""The figure of a study. Each row shows a claim or a situation of users.

A row has a mark at the measured value, with its interval, and a mark at the paper's value if there is one.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill
from typing import Any, Final, NamedTuple

from ..errors import FlashtwinError
from ..plot.style import legend_above, new, save, styled

_PRINTED: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)(?: %)?")
#: Largest change that is drawn to scale, in percent. A larger one is drawn at the edge, and its value is
#: added to the name of the row.
_MOST_PERCENT: Final = 150.0
#: Number of letters of a name per line.
_NAME_WIDTH: Final = 46


class Mark(NamedTuple):
    """A row of the figure, in percent.

    `printed` is None if the paper has no number for the row, as for most situations of users.
    """

    name: str
    printed: float | None
    value: float
    low: float
    high: float


def marks(outcome: dict[str, Any]) -> list[Mark]:
    """Return the rows: first main measures of claims for which the paper prints a change, then situations."""
    found = []
    for claim in outcome["claims"]:
        for measure in claim["measures"][:1]:
            printed = _change(measure)
            if printed is not None and claim["same_as"] is None and _is_drawn(measure):
                found.append(_mark(claim["id"], printed, measure))
    cases = [case["measure"] for case in outcome["cases"]]
    return found + [_mark(case["name"], _change(case), case) for case in cases if _is_drawn(case)]


def _change(measure: dict[str, Any]) -> float | None:
    printed = _PRINTED.fullmatch(measure["printed"].strip())
    return None if printed is None else float(printed[1])


def _is_drawn(measure: dict[str, Any]) -> bool:
    return measure["value"] is not None and measure["unit"] in ("change", "percent")


def _mark(name: str, printed: float | None, measure: dict[str, Any]) -> Mark:
    value = measure["value"]
    low, high = (value if measure[end] is None else measure[end] for end in ("low", "high"))
    if _inside(value) != value:
        name = f"{name} ({value:+.0f} %)"
    return Mark(fill(name, _NAME_WIDTH), printed, *map(_inside, (value, low, high)))


def _inside(percent: float) -> float:
    return max(-_MOST_PERCENT, min(_MOST_PERCENT, percent))


@styled
def draw(outcome: dict[str, Any], path: str | Path) -> None:
    """Write the figure in the file type of its name.

    Raises:
        FlashtwinError: there is nothing to draw, or the file cannot be written.
    """
    rows = marks(outcome)
    if not rows:
        raise FlashtwinError(f"{outcome['study']}: no claim has a printed number to draw")
    lines = sum(row.name.count("\n") + 1 for row in rows)
    figure = new(2, 0.7 + 0.17 * lines + 0.06 * len(rows))
    axes = figure.subplots()
    axes.axvline(0, color="0.7", linewidth=0.6)
    for is_case, face, label in ((False, "black", "here, 95 % interval"), (True, "white", "a user's case")):
        chosen = [(place, row) for place, row in enumerate(rows) if (row.printed is None) == is_case]
        if chosen:
            axes.errorbar(
                [row.value for _, row in chosen],
                [place for place, _ in chosen],
                xerr=[
                    [row.value - row.low for _, row in chosen],
                    [row.high - row.value for _, row in chosen],
                ],
                fmt="o",
                color="black",
                markerfacecolor=face,
                markersize=3.5,
                capsize=2,
                linewidth=0.8,
                label=label,
            )
    printed = [(place, row.printed) for place, row in enumerate(rows) if row.printed is not None]
    if printed:
        axes.plot(
            [value for _, value in printed],
            [place for place, _ in printed],
            linestyle="none",
            marker="D",
            markersize=6,
            markerfacecolor="none",
            markeredgecolor="0.35",
            label="printed",
        )
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("change, %")
    axes.grid(axis="x", linewidth=0.3, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(figure, axes, 2)
    save(figure, path)
