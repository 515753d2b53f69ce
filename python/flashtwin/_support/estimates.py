"""Means and ratios with Student's t intervals, from few repetitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval. The value or an end is None if the data are too few for it."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def named(self, name: str) -> dict[str, float | None]:
        """Return the estimate as columns: the value, and the ends of the interval."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def mean_of(values: list[float], confidence: float) -> Estimate:
    """Return the mean. With at least two values, it has a t interval."""
    n = len(values)
    if not n:
        return Estimate(None)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = student_t(confidence, n - 1) * deviation / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half)


def ratio_of(pairs: list[tuple[float, float]], confidence: float) -> Estimate:
    """Return the geometric mean of the ratios of pairs, with the t interval of their logarithms."""
    if not pairs or any(a <= 0 or b <= 0 for a, b in pairs):
        return Estimate(None)
    logs = mean_of([math.log(a / b) for a, b in pairs], confidence)
    ends = [None if end is None else math.exp(end) for end in (logs.value, logs.low, logs.high)]
    return Estimate(*ends)


@cache
def student_t(confidence: float, freedom: int) -> float:
    """Return the bound t such that Student's t is between -t and t with the given probability.

    The bound is found by bisection. For a whole number of degrees of freedom, the distribution is a finite
    sum (Abramowitz and Stegun 26.7.3 and 26.7.4).
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
        if high > 1e300:
            return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability that Student's t is between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine_2 = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for i in range((freedom - odd) // 2):
        total += term
        term *= cosine_2 * ((2 * i + 2) / (2 * i + 3) if odd else (2 * i + 1) / (2 * i + 2))
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
