"""Figures of a device, measured in the tests of data sheets and compared with published figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from .. import _core
from .._devices import Spec
from ..errors import Interrupted
from .watch import Task, run_all


@dataclass(frozen=True)
class Figure:
    """A figure: its key in the section `[published]` of the device file, and its values.

    The end of the key gives the unit of the values.
    """

    name: str
    measured: float
    #: Published value; None if nothing is published.
    published: float | None
    #: Published range for drives of this kind, or None.
    published_min: float | None
    published_max: float | None

    @property
    def deviation_percent(self) -> float | None:
        """Return the difference from the published value in percent; None if no value is published."""
        return None if self.published is None else (self.measured / self.published - 1) * 100

    @property
    def in_range(self) -> bool | None:
        """Whether the measured value is within the published range; None if there is no range."""
        if self.published_min is None and self.published_max is None:
            return None
        below = self.published_min is not None and self.measured < self.published_min
        above = self.published_max is not None and self.measured > self.published_max
        return not (below or above)

    @property
    def _range(self) -> str:
        if self.published_max is None:
            text = f"{self.published_min:g} or more"
        elif self.published_min is None:
            text = f"{self.published_max:g} or less"
        else:
            text = f"{self.published_min:g} to {self.published_max:g}"
        return text if self.in_range else f"{text}: outside"


@dataclass(frozen=True)
class Measurement:
    """All figures of a device, and the source of the published figures."""

    device: str
    source: str
    figures: list[Figure]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as `--json` prints them."""
        return {
            "device": self.device,
            "source": self.source,
            "figures": [
                {
                    "name": f.name,
                    "measured": f.measured,
                    "published": f.published,
                    "deviation_percent": f.deviation_percent,
                    "published_min": f.published_min,
                    "published_max": f.published_max,
                    "in_range": f.in_range,
                }
                for f in self.figures
            ],
        }

    def __str__(self) -> str:
        rows = [f"{'':<19} {'measured':>10} {'published':>10} {'deviation':>10}  range of such drives"]
        for f in self.figures:
            row = f"{f.name:<19} {f.measured:>10.1f}"
            if f.published is not None:
                row += f" {f.published:>10g} {f.deviation_percent:>+8.1f} %"
            if f.in_range is not None:
                row = f"{row:<52}  {f._range}"
            rows.append(row)
        if self.source:
            rows.append(f"published: {self.source}")
        return "\n".join(rows)


def measure(spec: Spec) -> Measurement:
    """Run the tests on a new device. This takes some seconds.

    Raises:
        FlashtwinError: the device is too small to be measured.
        Interrupted: on Ctrl-C.
    """
    source, figures = spec.published
    published = dict(figures)
    results, interrupted = run_all([_task(spec.measure)], 1, None)
    if interrupted or not results:
        raise Interrupted(None)
    measured = cast("list[tuple[str, float]]", results[0])
    rows = [
        Figure(name, value, *(published.get(f"{name}{bound}") for bound in ("", "_min", "_max")))
        for name, value in measured
    ]
    return Measurement(spec.name, source, rows)


def _task(work: Callable[[_core.Control], object]) -> Task:
    return Task("measure", work)
