"""The steady state of SNIA's specification: five rounds in which a figure has a small range and slope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Number of rounds in a window, and number of rounds after which a test ends even without a steady state.
WINDOW = 5
ROUNDS_MAX = 25
#: Limits of a steady state: largest range of the values, and largest rise or fall of the fitted line across
#: the window, in percent of the average.
RANGE_PERCENT = 20.0
SLOPE_PERCENT = 10.0


@dataclass(frozen=True)
class Window:
    """Five consecutive rounds of the tracked figure.

    Attributes:
        first: number of the first round, from 1.
        values: the figure in each round.
        average: average of the values.
        slope: change per round of the line that is fitted by least squares.
        intercept: value of the fitted line at round 0.
    """

    first: int
    values: tuple[float, ...]
    average: float
    slope: float
    intercept: float

    @property
    def last(self) -> int:
        """Number of the last round."""
        return self.first + len(self.values) - 1

    @property
    def range_percent(self) -> float:
        """Return the range of the values, in percent of their average."""
        return 100 * (max(self.values) - min(self.values)) / self.average if self.average else 0.0

    @property
    def slope_percent(self) -> float:
        """Return the rise or fall of the fitted line across the window, in percent of the average."""
        across = abs(self.slope) * (len(self.values) - 1)
        return 100 * across / self.average if self.average else 0.0

    @property
    def steady(self) -> bool:
        """Whether the window meets the criterion of a steady state."""
        enough = len(self.values) == WINDOW and self.average > 0
        return enough and self.range_percent <= RANGE_PERCENT and self.slope_percent <= SLOPE_PERCENT

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rounds": [self.first, self.last],
            "values": list(self.values),
            "average": self.average,
            "slope": self.slope,
            "intercept": self.intercept,
            "range_percent": self.range_percent,
            "slope_percent": self.slope_percent,
            "steady": self.steady,
        }


def window_of(values: Sequence[float]) -> Window:
    """Return the window of the last five rounds, or of all rounds if there are fewer."""
    last = tuple(values[-WINDOW:])
    first = len(values) - len(last) + 1
    rounds = range(first, first + len(last))
    average = sum(last) / len(last)
    middle = sum(rounds) / len(last)
    spread = sum((at - middle) ** 2 for at in rounds)
    rise = sum((at - middle) * value for at, value in zip(rounds, last, strict=True))
    slope = rise / spread if spread else 0.0
    return Window(first, last, average, slope, average - slope * middle)
