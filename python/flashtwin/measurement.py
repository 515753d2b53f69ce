"""What a device reaches in the tests that drives are sold by, beside what is published of the drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from . import _core
from .devices import Spec
from .errors import Interrupted
from .watch import Task, run_all


@dataclass(frozen=True)
class Figure:
    """A figure by its name in `[published]`, in the unit at the end of the name."""

    name: str
    measured: float
    #: None where nothing is published.
    published: float | None

    @property
    def deviation_percent(self) -> float | None:
        """How far what was measured is above what is published."""
        return None if self.published is None else (self.measured / self.published - 1) * 100


@dataclass(frozen=True)
class Measurement:
    """All figures of a device, and where the published ones stand."""

    device: str
    source: str
    figures: list[Figure]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "device": self.device,
            "source": self.source,
            "figures": [
                {
                    "name": f.name,
                    "measured": f.measured,
                    "published": f.published,
                    "deviation_percent": f.deviation_percent,
                }
                for f in self.figures
            ],
        }

    def __str__(self) -> str:
        rows = [f"{'':<18} {'measured':>12} {'published':>12} {'deviation':>10}"]
        for f in self.figures:
            row = f"{f.name:<18} {f.measured:>12.1f}"
            if f.published is not None:
                row += f" {f.published:>12g} {f.deviation_percent:>+8.1f} %"
            rows.append(row)
        if self.source:
            rows.append(f"published: {self.source}")
        return "\n".join(rows)


def measure(spec: Spec) -> Measurement:
    """Run the tests on a new device: some seconds.

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
    rows = [Figure(name, value, published.get(name)) for name, value in measured]
    return Measurement(spec.name, source, rows)


def _task(work: Callable[[_core.Control], object]) -> Task:
    return Task("measure", work)
