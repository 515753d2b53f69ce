"""Figures of experiments, measured or modelled: how they are compared and weighted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeAlias

#: Figures by name: the experiment, a slash, and what was measured, as in "read-depth-16/read.p99_us".
Figures: TypeAlias = "dict[str, float]"

#: Percentiles that are figures: of those that fio prints by default, all that a fit can use.
PERCENTILES = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9)
#: Requests that move no data, and the percentile of theirs that is a figure. fio flushes after each write, a
#: load of the model at random: half of its flushes find nothing to do, but no more than half.
OTHERS = ("flush", "trim")
OTHERS_PERCENT = 90
#: Fewest requests beyond a percentile that make it a figure.
BEYOND_MIN = 5
#: Logarithmic errors that count as one, by what is in a figure's name; the first that fits. A percentile
#: far out depends on few requests, and writes wait for collections, of which there are few: both vary by
#: more from one run to the next. Bandwidths vary least, and near saturation their small errors are large
#: ones of latencies.
TOLERANCES = (
    ("mb_per_s", 0.002),
    ("p99.9_us", 0.02),
    ("write.p", 0.015),
    ("", 0.01),
)
#: Weight of a latency beside that of a bandwidth: an experiment has a dozen latencies and one bandwidth.
LATENCY_WEIGHT = 0.25
#: Share of the requests beyond a percentile whose change counts as one.
_SHARE_TOLERANCE = 0.04
#: Errors beyond so many tolerances count in proportion, not squared: one figure that the model
#: cannot meet must not bend all others.
LINEAR_FROM = 3.0
#: Cost of a device that gives no figures.
_NO_COST = 1e9


def tolerance(figure: str) -> float:
    """Return the logarithmic error of a figure that counts as one."""
    return next(value for part, value in TOLERANCES if part in figure)


def weight(figure: str) -> float:
    """Return how much a figure counts."""
    return LATENCY_WEIGHT if figure.endswith("_us") else 1.0


def allowed(figure: str, noise: Mapping[str, float]) -> float:
    """Return the logarithmic error of a figure that counts as one, where chance alone makes some."""
    return math.hypot(tolerance(figure), noise.get(figure, 0.0))


def errors(
    target: Mapping[str, float], modelled: Mapping[str, float], noise: Mapping[str, float] | None = None
) -> Figures:
    """Return the errors, in tolerances, of the figures that both have.

    Of a percentile it is the smaller of two: of its latency, and of the share of requests up to its latency.
    Where latencies jump, as between reads that wait for a program and those that do not, the latency of a
    percentile may change by a factor while nearly as many requests wait as before.

    Args:
        noise: standard deviations of logarithms of figures between runs of one device.
    """
    noise = noise or {}
    both = [name for name, value in target.items() if value > 0 and modelled.get(name, 0) > 0]
    found = {name: math.log(modelled[name] / target[name]) / allowed(name, noise) for name in both}
    curves: dict[str, list[tuple[float, float]]] = {}
    for name in both:
        group, percent = _percentile(name)
        if percent is not None:
            curves.setdefault(group, []).append((percent, math.log(modelled[name])))
    for name in both:
        group, percent = _percentile(name)
        if percent is not None and abs(found[name]) > 1:
            curve, wanted = sorted(curves[group]), math.log(target[name])
            low, high = (_percent_at(curve, wanted + sign * allowed(name, noise)) for sign in (-1, 1))
            beside = max(low - percent, percent - high, 0)
            share = 1 + beside / (_SHARE_TOLERANCE * (100 - percent))
            found[name] = math.copysign(min(abs(found[name]), share), found[name])
    return found


def _percentile(figure: str) -> tuple[str, float | None]:
    """Split "x/read.p99_us" into "x/read" and 99; other figures have None."""
    group, found, percent = figure.partition(".p")
    return (group, float(percent.removesuffix("_us"))) if found else (figure, None)


def _percent_at(curve: list[tuple[float, float]], value: float) -> float:
    """Return the percentile of a curve at which its value is reached, with lines between its points."""
    if value < curve[0][1]:
        return 0
    for (low, from_), (high, to) in pairwise(curve):
        if from_ <= value < to:
            return low + (high - low) * (value - from_) / (to - from_)
    return 100


def cost(found: Mapping[str, float]) -> float:
    """Return the weighted mean of squared errors, the large ones linear."""
    if not found:
        return _NO_COST
    total = 0.0
    for name, error in found.items():
        size = abs(error)
        square = size * size if size < LINEAR_FROM else LINEAR_FROM * (2 * size - LINEAR_FROM)
        total += weight(name) * square
    return total / math.fsum(weight(name) for name in found)
