"""Confidence intervals of ratios between two runs of the same requests, by paired batch means (D-185)."""

from __future__ import annotations

import math
from typing import Any

from .estimates import ratio_of, student_t

_CONFIDENCE = 0.95
#: Percentiles that batches have.
_PERCENTILES = ("p99_us", "p999_us", "p9999_us")

#: Lower and upper end of an interval. Both are above 0, because they are computed from logarithms.
Interval = tuple[float, float]
#: Batches of a run, each with the sums over some consecutive requests, as in `Record.batches`.
Batches = list[dict[str, Any]]


def ratio_interval(ours: Batches, base: Batches, path: tuple[str, ...]) -> Interval | None:
    """Return the confidence interval of the ratio of a measure to its value in the base run.

    `path` is the path of the measure in a summary. The interval is None in three cases: batches do not have
    the measure, the two runs did not complete the same requests in each batch, or a batch has too few
    requests.
    """
    if not ours or [_requests(batch) for batch in ours] != [_requests(batch) for batch in base]:
        return None
    if path[-1] in _PERCENTILES:
        name = path[-1]
        pairs = [(a[name], b[name]) for a, b in zip(ours, base, strict=True)]
        if any(a is None or b is None for a, b in pairs):
            return None
        found = ratio_of(pairs, _CONFIDENCE)
        return None if found.low is None or found.high is None else (found.low, found.high)
    values = [[_quotient(batch, path) for batch in batches] for batches in (ours, base)]
    if any(value is None for run in values for value in run):
        return None
    above, below = ([_column(run, i) for run in values] for i in (0, 1))
    return _of_sums([above[0], below[1]], [above[1], below[0]])


def _of_sums(above: list[list[float]], below: list[list[float]]) -> Interval | None:
    """Return the confidence interval of a quotient: the product of `above` over the product of `below`.

    Each factor is the sum of one value per batch. The logarithm of the quotient is linearised: if a sum
    changes by a small amount d, the logarithm changes by d / sum. A batch contributes its d / sum of all
    factors. The standard error of the logarithm follows from these contributions of the batches. The result
    is None if a sum is 0, or if an end of the interval would overflow.
    """
    sums = [[math.fsum(column) for column in columns] for columns in (above, below)]
    if any(total <= 0 for totals in sums for total in totals):
        return None
    n = len(above[0])
    shares = [
        math.fsum(column[i] / total for column, total in zip(above, sums[0], strict=True))
        - math.fsum(column[i] / total for column, total in zip(below, sums[1], strict=True))
        for i in range(n)
    ]
    ratio = math.prod(sums[0]) / math.prod(sums[1])
    half = student_t(_CONFIDENCE, n - 1) * math.sqrt(math.fsum(s * s for s in shares) * n / (n - 1))
    # Beyond this limit, an end of the interval would overflow.
    return None if half > 700 else (ratio * math.exp(-half), ratio * math.exp(half))


def _column(values: list[tuple[float, float] | None], i: int) -> list[float]:
    return [value[i] for value in values if value is not None]


def _requests(batch: dict[str, Any]) -> tuple[int, int]:
    return batch["reads"], batch["writes"]


#: Dividend and divisor of a measure, both sums of a batch, by the path of the measure in a summary. Without a
#: second sum, the divisor is the number of requests. It is equal in both runs, so it has no influence on the
#: ratio.
_SUMS = {
    ("hits", "ratio"): ("hits",),
    ("health", "device_write_amplification"): ("media_pages",),
    ("flash", "gc_write_amplification"): ("programs", "host_programs"),
    ("flash", "erases"): ("erases",),
    ("flash", "pages_moved"): ("pages_moved",),
    ("flash", "gc_share_mean"): ("gc_us", "span_us"),
}


def _quotient(batch: dict[str, Any], path: tuple[str, ...]) -> tuple[float, float] | None:
    """Return the dividend and the divisor of a measure in a batch; None if it is not a quotient of sums."""
    match path:
        case ("all", "mean_us"):
            return batch["read_us"] + batch["write_us"], 1
        case ("read" | "write" as kind, "mean_us"):
            return batch[f"{kind}_us"], 1
        case ("all", "parts_us", part):
            return batch["parts_us"][part], 1
        case _ if path in _SUMS:
            above, *below = _SUMS[path]
            return batch[above], batch[below[0]] if below else 1
        case _:
            return None
