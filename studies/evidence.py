"""The evidence of docs/validation.md at a glance: how much of each kind agrees, as a figure.

    python studies/evidence.py validation.svg

Replays the reference cases, measures every profile that has published figures, and reads the verdicts of the
reproduced papers and the counts of docs/mutants.md. Run it at the root of the project.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import flashtwin
from flashtwin.devices import read_device
from flashtwin.measurement import measure
from flashtwin.plot.style import fill, legend_above, new, save, styled
from flashtwin.study import outcome
from flashtwin.study.definition import names
from flashtwin.study.measuring import VERDICTS

ROOT = Path(__file__).resolve().parents[1]
#: Of a published figure, in percent.
BOUND = 10
PARTS = ("agrees", "in part", "disagrees", "cannot be tested")
#: The fills of the parts: dark, light and hatched, grey, white.
FILLS = (0, 3, 6, 2)


def cases(directory: str) -> tuple[int, ...]:
    """Compared operations of the reference."""
    reports = flashtwin.validate(ROOT / "tests" / "data" / directory)
    return sum(report.matched for report in reports), 0, sum(report.mismatched for report in reports), 0


def drives() -> tuple[int, ...]:
    """Published figures and ranges of all profiles."""
    within = beyond = 0
    for name in flashtwin.devices():
        spec = read_device(name)
        if spec.members or not spec.published[1]:
            continue
        for figure in measure(spec).figures:
            if figure.published is None and figure.in_range is None:
                continue
            near = figure.published is None or abs(figure.deviation_percent) <= BOUND
            good = near and figure.in_range is not False
            within, beyond = within + good, beyond + (not good)
    return within, 0, beyond, 0


def claims() -> tuple[int, ...]:
    """Claims of the reproduced papers by verdict."""
    found = [claim["verdict"] for name in names() for claim in outcome(name)["claims"]]
    return tuple(found.count(verdict) for verdict in VERDICTS[: len(PARTS)])


def mutants() -> tuple[int, ...]:
    """Viable mutants that a test catches; those without a difference are said to be untestable."""
    text = (ROOT / "docs" / "mutants.md").read_text()
    caught, missed, equivalent = (
        int(re.search(rf"\| {name} \| (\d+) \|", text)[1]) for name in ("caught", "missed", "equivalent")
    )
    return caught, 0, missed, equivalent


@styled
def draw(rows: dict[str, tuple[int, ...]], path: str) -> None:
    """Draw a bar for each row, and how many of how many agree."""
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
        f"figures of drives (within {BOUND} %)": drives(),
        "mutants of the model": mutants(),
        "claims of five papers": claims(),
    }
    for name, counts in rows.items():
        print(f"{name:34} " + ", ".join(f"{n} {part}" for n, part in zip(counts, PARTS, strict=True) if n))
    draw(rows, sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
