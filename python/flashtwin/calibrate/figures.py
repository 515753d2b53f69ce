"""Figures of experiments, measured or modelled, and how a fit compares and weights them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeAlias

#: Values of figures by name. A name is the experiment, a slash, and the measure: "read-depth-16/read.p99_us".
Figures: TypeAlias = "dict[str, float]"

#: Percentiles that are figures: those that fio prints by default and a fit can use.
PERCENTILES = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9)
#: Kinds of requests that move no data. The constant below is the only percentile that is a figure for them.
#: Lower percentiles are not comparable: fio flushes after each write, but the model's load flushes at random
#: times, and up to half of its flushes find nothing to write.
OTHERS = ("flush", "trim")
OTHERS_PERCENT = 90
#: Minimum number of requests that must be beyond a percentile for it to be a figure.
BEYOND_MIN = 5
#: Logarithmic errors that count as one tolerance, by a text in the figure's name; the first match applies.
#: Two kinds of figures vary more from run to run: high percentiles depend on few requests, and writes wait
#: for collections, which are rare. Bandwidths vary least, and near saturation a small error of a bandwidth
#: means a large error of latencies.
TOLERANCES = (
    ("mb_per_s", 0.002),
    ("p99.9_us", 0.02),
    ("write.p", 0.015),
    ("", 0.01),
)
#: Weight of a latency, relative to a bandwidth. An experiment has about a dozen latencies and one bandwidth.
LATENCY_WEIGHT = 0.25
#: Relative change of the number of requests beyond a percentile that counts as one tolerance.
_SHARE_TOLERANCE = 0.04
#: Number of tolerances above which errors count linearly instead of squared. Thus a single figure that the
#: model cannot meet does not distort all others.
LINEAR_FROM = 3.0
#: Cost of a device that yields no figures.
_NO_COST = 1e9


def tolerance(figure: str) -> float:
    """Return the logarithmic error of a figure that counts as one tolerance."""
    return next(value for part, value in TOLERANCES if part in figure)


def weight(figure: str) -> float:
    """Return the weight of a figure in the cost."""
    return LATENCY_WEIGHT if figure.endswith("_us") else 1.0


def allowed(figure: str, noise: Mapping[str, float]) -> float:
    """Return the logarithmic error of a figure that counts as one tolerance, including its noise."""
    return math.hypot(tolerance(figure), noise.get(figure, 0.0))


def errors(
    target: Mapping[str, float], modelled: Mapping[str, float], noise: Mapping[str, float] | None = None
) -> Figures:
    """Return the errors, in tolerances, of the figures that both the drive and the model have.

    If the latency of a percentile differs by more than one tolerance, its error is limited by a second error:
    that of the share of requests up to the latency. Latencies may jump, for example between reads that wait
    for a program and reads that do not. Near such a jump, the latency of a percentile may change by a factor
    although the share of waiting requests hardly changes.

    Args:
        noise: standard deviation of the logarithm of each figure between runs of the same device.
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
    """Split a name such as "x/read.p99_us" into "x/read" and 99.

    For other figures, the second value is None.
    """
    group, found, percent = figure.partition(".p")
    return (group, float(percent.removesuffix("_us"))) if found else (figure, None)


def _percent_at(curve: list[tuple[float, float]], value: float) -> float:
    """Return the percentile at which a curve reaches a value. Between points it is interpolated linearly."""
    if value < curve[0][1]:
        return 0
    for (low, from_), (high, to) in pairwise(curve):
        if from_ <= value < to:
            return low + (high - low) * (value - from_) / (to - from_)
    return 100


def cost(found: Mapping[str, float]) -> float:
    """Return the weighted mean of squared errors. Large errors count linearly."""
    if not found:
        return _NO_COST
    total = 0.0
    for name, error in found.items():
        size = abs(error)
        square = size * size if size < LINEAR_FROM else LINEAR_FROM * (2 * size - LINEAR_FROM)
        total += weight(name) * square
    return total / math.fsum(weight(name) for name in found)
