"""Draws the evidence of docs/validation.md as one figure: how many logged operations and claims agree.

    python experiments/evidence.py validation.svg

Replays the logs of DiskSim, and reads the verdicts on the claims of the reproduced papers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import flashtwin
from flashtwin.plot.style import fill, legend_above, new, save, styled
from flashtwin.study import outcome
from flashtwin.study.definition import names
from flashtwin.study.verdicts import CONDITIONAL, NOT_REPRODUCED, REPRODUCED, counts_of

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("agrees", "agrees under a condition", "disagrees", "open or not tested")
#: Fills of the parts of a bar, in order: dark; light and hatched; grey; white and hatched.
FILLS = (0, 1, 6, 8)


def cases(directory: str) -> tuple[int, ...]:
    """Return the numbers of DiskSim's operations that agree and disagree, in the order of `PARTS`."""
    reports = flashtwin.validate(ROOT / "tests" / "data" / directory)
    return sum(report.matched for report in reports), 0, sum(report.mismatched for report in reports), 0


def claims(*studies: str) -> tuple[int, ...]:
    """Return the numbers of claims of the given studies, or of all, in the order of `PARTS`."""
    found = counts_of([claim for name in studies or names() for claim in outcome(name)["claims"]])
    first = [found.pop(verdict) for verdict in (REPRODUCED, CONDITIONAL, NOT_REPRODUCED)]
    return *first, sum(found.values())


@styled
def draw(rows: dict[str, tuple[int, ...]], path: str) -> None:
    """Draw a bar for each row, with the number of agreeing items and of all items."""
    figure = new(2, 0.5 + 0.3 * len(rows))
    axes = figure.subplots()
    starts = [0.0] * len(rows)
    for part, name in enumerate(PARTS):
        shares = [100 * counts[part] / sum(counts) for counts in rows.values()]
        axes.barh(range(len(rows)), shares, left=starts, height=0.62, label=name, **fill(FILLS[part]))
        starts = [start + share for start, share in zip(starts, shares, strict=True)]
    for place, counts in enumerate(rows.values()):
        text = f"{counts[0]:,} of {sum(counts):,}".replace(",", " ")
        axes.text(101, place, text, va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(0, 124)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("share, %")
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(figure, axes, 2)
    save(figure, path)


def main() -> int:
    """Collect the rows and write the figure."""
    rows = {
        "logged operations of DiskSim": cases("msr"),
        "instants of DiskSim's replays": cases("replay"),
        "claims of five papers": claims(),
        **{f"claims of {name}": claims(name) for name in names()},
    }
    for name, counts in rows.items():
        print(f"{name:34} " + ", ".join(f"{n} {part}" for n, part in zip(counts, PARTS, strict=True) if n))
    draw(rows, sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
