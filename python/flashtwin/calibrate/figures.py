"""Figures of experiments, measured or modelled; and the errors, tolerances and weights of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeAlias

#: Values of figures by name. A name has the experiment, a slash and the measure: "read-depth-16/read.p99_us".
Figures: TypeAlias = "dict[str, float]"

#: Percentiles that a fit uses as figures. All of them are printed by fio by default.
PERCENTILES = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9)
#: Kinds of requests that move no data. Only one of their percentiles, the next constant, is a figure. Lower
#: percentiles of drive and model cannot be compared: fio flushes after each write, but the model's load
#: flushes at random times, so that up to half of its flushes find nothing to write.
OTHERS = ("flush", "trim")
OTHERS_PERCENT = 90
#: Minimum number of requests that must be beyond a percentile for it to be a figure.
BEYOND_MIN = 5
#: Tolerances: errors of a figure's logarithm that count as 1, by a text in the figure's name. The first match
#: applies. Two kinds of figures vary more from run to run: high percentiles, which depend on few requests,
#: and latencies of writes, which wait for rare collections. Bandwidths vary least, and near saturation, a
#: small error of a bandwidth causes a large error of latencies.
TOLERANCES = (
    ("mb_per_s", 0.002),
    ("p99.9_us", 0.02),
    ("write.p", 0.015),
    ("", 0.01),
)
#: Weight of a latency, relative to a bandwidth. An experiment has about a dozen latencies and one bandwidth.
LATENCY_WEIGHT = 0.25
#: Tolerance of the second error of a percentile (see `errors`): relative change of the number of requests
#: beyond the percentile.
_SHARE_TOLERANCE = 0.04
#: Errors of more than this multiple of the tolerance count linearly instead of squared, so that a single
#: figure that the model cannot meet does not distort the fit of all others.
LINEAR_FROM = 3.0
#: Cost of a device that yields no figures.
_NO_COST = 1e9


def tolerance(figure: str) -> float:
    """Return the tolerance of a figure: the error of its logarithm that counts as 1 in the cost."""
    return next(value for part, value in TOLERANCES if part in figure)


def weight(figure: str) -> float:
    """Return the weight of a figure in the cost."""
    return LATENCY_WEIGHT if figure.endswith("_us") else 1.0


def allowed(figure: str, noise: Mapping[str, float]) -> float:
    """Return the tolerance of a figure, increased by the noise of the figure."""
    return math.hypot(tolerance(figure), noise.get(figure, 0.0))


def errors(
    target: Mapping[str, float], modelled: Mapping[str, float], noise: Mapping[str, float] | None = None
) -> Figures:
    """Return the errors, in multiples of the tolerance, of the figures that drive and model both have.

    A percentile that differs by more than one tolerance may be near a jump of the latencies, for example
    between reads that wait for a program and reads that do not. There, the latency of the percentile may
    change by a factor although the share of waiting requests hardly changes. Therefore a second error is
    computed: how much the share of requests up to this latency differs. The smaller of the two errors counts.

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
    """Return the percentile at which a curve reaches a value, by linear interpolation between its points."""
    if value < curve[0][1]:
        return 0
    for (low, from_), (high, to) in pairwise(curve):
        if from_ <= value < to:
            return low + (high - low) * (value - from_) / (to - from_)
    return 100


def cost(found: Mapping[str, float]) -> float:
    """Return the weighted mean of the squared errors. Errors from `LINEAR_FROM` on count linearly."""
    if not found:
        return _NO_COST
    total = 0.0
    for name, error in found.items():
        size = abs(error)
        square = size * size if size < LINEAR_FROM else LINEAR_FROM * (2 * size - LINEAR_FROM)
        total += weight(name) * square
    return total / math.fsum(weight(name) for name in found)
