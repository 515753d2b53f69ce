"""Intervals of ratios between runs of the same requests, by paired batch means (D-185)."""

from __future__ import annotations

import math
from typing import Any

from .estimates import ratio_of, student_t

_CONFIDENCE = 0.95
#: Percentiles that batches have.
_PERCENTILES = ("p99_us", "p999_us", "p9999_us")

#: Ends of an interval. They are computed from logarithms, so they are above 0.
Interval = tuple[float, float]
#: Number of batches of consecutive requests of a run, as in `Record.batches`.
Batches = list[dict[str, Any]]


def ratio_interval(ours: Batches, base: Batches, path: tuple[str, ...]) -> Interval | None:
    """Return the interval of the ratio of a measure (its path in a summary) to that of the base.

    The interval is None if it cannot be determined: if the measure is not a sum over requests, if the runs
    did not complete the same requests in all batches, or if a batch has too few requests.
    """
    if not ours or [_requests(batch) for batch in ours] != [_requests(batch) for batch in base]:
        return None
    pairs = [(_value(a, path), _value(b, path)) for a, b in zip(ours, base, strict=True)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if len(known) < len(pairs):
        return None
    if path[-1] in _PERCENTILES:
        found = ratio_of(known, _CONFIDENCE)
        return None if found.low is None or found.high is None else (found.low, found.high)
    return _of_sums(known)


def _of_sums(pairs: list[tuple[float, float]]) -> Interval | None:
    """Return the interval of the ratio of two sums, from the deviations of the batches (logarithms)."""
    ours, base = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
    if ours <= 0 or base <= 0:
        return None
    ratio, n = ours / base, len(pairs)
    squares = math.fsum((a - ratio * b) ** 2 for a, b in pairs)
    half = student_t(_CONFIDENCE, n - 1) * math.sqrt(squares * n / (n - 1)) / ours
    # Beyond that an end would be no number.
    return None if half > 700 else (ratio * math.exp(-half), ratio * math.exp(half))


def _requests(batch: dict[str, Any]) -> tuple[int, int]:
    return batch["reads"], batch["writes"]


def _value(batch: dict[str, Any], path: tuple[str, ...]) -> float | None:
    """Return the sum or percentile of a batch; None if it has no such measure."""
    match path:
        case ("all", "mean_us"):
            return float(batch["read_us"] + batch["write_us"])
        case ("read" | "write" as kind, "mean_us"):
            return float(batch[f"{kind}_us"])
        case ("all", "parts_us", part):
            return float(batch["parts_us"][part])
        case ("hits", "ratio"):
            return float(batch["hits"])
        case ("all", name) if name in _PERCENTILES:
            return None if batch[name] is None else float(batch[name])
        case _:
            return None
