"""fio's histogram of latencies in ns, with 64 bins per octave (FIO_IO_U_PLAT_* in fio's stat.h).

Histograms of flashtwin have 1024 buckets per octave, and 2048 exact buckets at their start. Each bucket lies
within one of fio's bins, so the counts equal fio's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core import Histogram

_BITS = 6
_PER_OCTAVE = 1 << _BITS
#: fio's last bin, which counts all latencies above the range.
_LAST = _PER_OCTAVE * 29 - 1
#: Percentiles that fio reports by default.
PERCENTILES = (1, 5, *range(10, 100, 10), 95, 99, 99.5, 99.9, 99.95, 99.99)


def index_of(ns: int) -> int:
    """Return the number of the bin of a latency."""
    bits = ns.bit_length() - 1 - _BITS
    if bits <= 0:
        return ns
    return min(((bits + 1) << _BITS) + ((ns >> bits) & (_PER_OCTAVE - 1)), _LAST)


def middle_of(index: int) -> int:
    """Return the middle of a bin, which represents all latencies in it."""
    if index < 2 * _PER_OCTAVE:
        return index
    bits = (index >> _BITS) - 1
    return (1 << (bits + _BITS)) + (((2 * (index & (_PER_OCTAVE - 1)) + 1) << bits) >> 1)


def bins_of(histogram: Histogram) -> dict[int, int]:
    """Return the number of latencies in each bin, by the middle of the bin, in ascending order."""
    counts: dict[int, int] = {}
    for ns, count in histogram:
        middle = middle_of(index_of(ns))
        counts[middle] = counts.get(middle, 0) + count
    return counts


def percentiles_of(bins: dict[int, int]) -> list[tuple[float, int]]:
    """Return percentages, each with the latency that fio would give as this percentile.

    The latency is the middle of a bin: the first one such that this bin and all lower ones together have at
    least the percentage of the latencies.
    """
    total = sum(bins.values())
    wanted = iter(PERCENTILES)
    found: list[tuple[float, int]] = []
    percent = next(wanted, None)
    seen = 0
    for middle, count in bins.items():
        seen += count
        while percent is not None and seen >= percent / 100 * total:
            found.append((percent, middle))
            percent = next(wanted, None)
    return found


def least_of(histogram: Histogram) -> int:
    """Return the lower end of the first bucket, which is at most 0.1 % below the shortest latency."""
    ns = histogram[0][0]
    return ns if ns < 2048 else ns - (1 << (ns.bit_length() - 11)) + 1


#: Upper limits of fio's distribution in ns, us and ms.
_LIMITS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)


def distribution_of(histogram: Histogram) -> dict[str, dict[str, float]]:
    """Return, by unit and limit, the percentage of latencies between this limit and the previous one.

    If a bucket contains a limit, all its latencies count as above the limit. Therefore limits are exact to
    0.1 %.
    """
    total = sum(count for _, count in histogram) or 1
    shares = {unit: {str(limit): 0.0 for limit in _LIMITS} for unit in ("ns", "us", "ms")}
    shares["ms"] |= {"2000": 0.0, ">=2000": 0.0}
    for ns, count in histogram:
        unit, value = ("ns", ns) if ns < 1000 else ("us", ns // 1000) if ns < 10**6 else ("ms", ns // 10**6)
        limits = (*_LIMITS, 2000) if unit == "ms" else _LIMITS
        name = next((str(limit) for limit in limits if value < limit), ">=2000")
        shares[unit][name] += count / total * 100
    return shares
