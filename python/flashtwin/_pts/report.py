"""The report of the tests: a Markdown page with plots, and a JSON file with all results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from .._support import words
from .._support.files import write_texts
from ..errors import FlashtwinError
from ..plot import save
from . import figures
from .drive import SIZES, Access
from .steady import RANGE_PERCENT, ROUNDS_MAX, SLOPE_PERCENT, WINDOW
from .tests import (
    IOPS_BLOCKS,
    IOPS_MIXES,
    LATENCY_BLOCKS,
    LATENCY_MIXES,
    PRECONDITION_TIMES,
    SATURATION_TIMES,
    Rounds,
    Saturation,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Deviations from the standard that do not depend on the settings.
_OTHERWISE = (
    "The drive is a model, and its host adds nothing: there are no threads, so their number times the depth "
    "is one queue depth.",
    "A purge makes the drive one that was never written.",
    "Between two accesses of a round the drive completes all pending work, including work in idle time.",
    "Each access of a sequential test begins at the start of the drive in every round.",
    "Write saturation does not end at a steady state: a new drive is steady, too, until it is full.",
)


@dataclass
class PtsResults:
    """Results of the tests. Print them for a summary; `write` the report.

    Attributes:
        device: name of the drive under test.
        settings: settings of the tests.
        saturation: result of the write saturation test, if it was run.
        rounds: results of the other tests, in the order in which they were run.
    """

    device: str
    settings: dict[str, Any]
    saturation: Saturation | None
    rounds: list[Rounds]

    def to_json(self) -> str:
        """Return all results as JSON. Equal drives, settings and seeds give equal bytes."""
        tests = [self.saturation.to_dict()] if self.saturation else []
        tests += [test.to_dict() for test in self.rounds]
        found = {"flashtwin_version": _core.__version__, "device": self.device, "settings": self.settings}
        return json.dumps({**found, "tests": tests}, indent=2)

    def write(self, directory: str | Path) -> Path:
        """Write `report.md`, its figures and `report.json` into a directory.

        The directory is created if necessary.

        Returns:
            the path of `report.md`.

        Raises:
            FlashtwinError: the directory or a file cannot be written.
        """
        place = Path(directory)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise FlashtwinError(f"{place}: cannot make this directory: {e.strerror}") from e

        def draw(name: str, figure: Figure) -> str:
            save(figure, place / f"{name}.svg")
            return f"{name}.svg"

        page = place / "report.md"
        texts = {page: "\n".join(self._lines(draw)) + "\n", place / "report.json": self.to_json() + "\n"}
        write_texts(texts, "the report")
        return page

    def __repr__(self) -> str:
        lines = [f"{self.device}: SNIA PTS"]
        if self.saturation:
            last = self.saturation.window.average
            lines.append(f"write saturation   {words.digits(last)} IOPS in the last {WINDOW} intervals")
        for test in self.rounds:
            window = test.window
            state = "steady" if window.steady else "NOT STEADY"
            what = f"{test.tracked.size} {test.tracked.mix}"
            lines.append(
                f"{test.name:<22} {what:<16} {words.digits(window.average)} {test.unit}, {state}, rounds "
                f"{window.first}-{window.last}"
            )
        return "\n".join(lines)

    def _lines(self, draw: Callable[[str, Figure], str]) -> Iterator[str]:
        yield f"# {self.device}: SNIA Solid State Storage Performance Test Specification (Enterprise)"
        yield ""
        given = [[name.replace("_", " "), str(value)] for name, value in self.settings.items()]
        yield from _table(["", ""], given)
        yield "What differs from the standard:"
        yield ""
        span = self.settings["round_s"]
        if span != 60:
            yield (
                f"- Rounds and intervals are {span:g} s of virtual time, not one minute: five see less of a "
                "slow drift."
            )
        yield from (f"- {text}" for text in _OTHERWISE)
        yield ""
        if self.saturation:
            yield from self._saturated(self.saturation, draw)
        for test in self.rounds:
            yield from _tested(test, draw)

    def _saturated(self, test: Saturation, draw: Callable[[str, Figure], str]) -> Iterator[str]:
        yield "## Write saturation"
        yield ""
        yield (
            f"Random writes of 4 KiB to the purged drive, {SATURATION_TIMES} times its capacity: "
            f"{test.written_gb:.4g} GB in {len(test.iops)} intervals of {test.interval_s:g} s."
        )
        yield ""
        rows = [
            ["first interval", words.digits(test.iops[0])],
            ["most", words.digits(max(test.iops))],
            [f"mean of the last {WINDOW}", words.digits(test.window.average)],
            ["range of the last, % of the average", f"{test.window.range_percent:.1f}"],
            ["slope of the last, % of the average", f"{test.window.slope_percent:.1f}"],
        ]
        yield from _table(["", "IOPS"], rows)
        yield f"![IOPS, response times and write amplification]({draw('wsat', figures.saturation(test))})"
        yield ""


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _tested(test: Rounds, draw: Callable[[str, Figure], str]) -> Iterator[str]:
    window = test.window
    yield f"## {test.name}"
    yield ""
    fill = test.tracked.size if test.tracked.sequential else "128 KiB"
    state = "Steady state" if window.steady else f"**No steady state in {ROUNDS_MAX} rounds**"
    yield (
        f"Purged, written sequentially {PRECONDITION_TIMES} times in blocks of {fill}, then rounds of all "
        f"accesses. {state}: rounds {window.first} to {window.last}, by {test.tracked.size} "
        f"{test.tracked.mix} ({test.unit})."
    )
    yield ""
    rows = [
        ["average", words.digits(window.average), ""],
        ["range of the data, % of the average", f"{window.range_percent:.2f}", f"{RANGE_PERCENT:g}"],
        ["slope across the window, % of the average", f"{window.slope_percent:.2f}", f"{SLOPE_PERCENT:g}"],
        ["fitted line", f"{window.slope:.5g} x round + {window.intercept:.6g}", ""],
    ]
    yield from _table(["steady state", "found", "at most"], rows)
    yield from _found(test)
    stem = test.name.lower().replace(",", "").replace(" ", "-")
    for name, figure in figures.of_rounds(test).items():
        yield f"![{test.name}: {name.replace('-', ' ')}]({draw(f'{stem}-{name}', figure)})"
        yield ""


def _found(test: Rounds) -> Iterator[str]:
    """Return the tables of measured figures. Each figure is a mean over the window of the steady state."""

    def rows(blocks: tuple[int, ...], mixes: tuple[int, ...], figure: str) -> list[list[str]]:
        sequential = test.tracked.sequential
        return [
            [
                SIZES[block],
                *(words.digits(test.average(Access(block, reads, sequential), figure)) for reads in mixes),
            ]
            for block in blocks
        ]

    if test.figure == "iops":
        head = ["IOPS, block size", *(f"{reads}/{100 - reads}" for reads in IOPS_MIXES)]
        yield from _table(head, rows(IOPS_BLOCKS, IOPS_MIXES, "iops"))
    elif test.figure == "mb_per_s":
        blocks = (test.tracked.block_bytes,)
        yield from _table(["MB/s", "read", "write"], rows(blocks, (100, 0), "mb_per_s"))
    else:
        for figure, title in (("mean_us", "mean"), ("five_nines_us", "99.999 %"), ("max_us", "longest")):
            head = [f"{title} response time, us", *(f"{reads}/{100 - reads}" for reads in LATENCY_MIXES)]
            yield from _table(head, rows(LATENCY_BLOCKS, LATENCY_MIXES, figure))
