"""The noise of one run, by the method of batch means (D-185)."""

from __future__ import annotations

import math
from typing import Any

from .estimates import student_t

#: Batches that the windows of a run are put together to.
_BATCHES = 10
_CONFIDENCE = 0.95

#: The column of a run's history for a measure, by the last key of the measure's path in a summary.
_IN_HISTORY = {
    "mean_us": "mean_us",
    "p99_us": "p99_us",
    "ratio": "hit_ratio",
    "gc_write_amplification": "gc_write_amplification",
    "gc_share_mean": "gc_share_by_chip",
}


def relative_noise(history: list[dict[str, Any]], path: tuple[str, ...]) -> float | None:
    """Half of the interval of a measure, as a share of its value.

    None where the windows do not hold the measure, or are too few: then nothing is known of its noise.
    """
    key = _IN_HISTORY.get(path[-1])
    if key is None or path[0] in ("read", "write") or "parts_us" in path:
        return None
    batches = [b for b in (_batch(windows, key) for windows in _cut(history)) if b[0] > 0]
    if len(batches) < _BATCHES:
        return None
    weights = math.fsum(weight for weight, _ in batches)
    mean = math.fsum(total for _, total in batches) / weights
    if mean <= 0:
        return None
    squares = math.fsum((total - mean * weight) ** 2 for weight, total in batches)
    n = len(batches)
    error = math.sqrt(squares * n / (n - 1)) / weights
    return student_t(_CONFIDENCE, n - 1) * error / mean


def _cut(history: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Cut the windows into batches of the same number of consecutive ones."""
    n = len(history)
    return [history[n * i // _BATCHES : n * (i + 1) // _BATCHES] for i in range(_BATCHES)]


def _batch(windows: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """Weight of a batch and weighted sum of its values.

    A share of time is weighted by time, all else by requests.
    """
    weight_sum = total = 0.0
    for window in windows:
        value = window[key]
        weight = window["length_s"]
        if key == "gc_share_by_chip":
            value = math.fsum(value) / len(value) if value else None
        else:
            weight *= window["iops"]
        if value is not None:
            weight_sum += weight
            total += weight * value
    return weight_sum, total
