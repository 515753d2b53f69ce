"""fio's histogram of latencies (FIO_IO_U_PLAT_* of its stat.h): 64 bins to an octave, in nanoseconds.

Our histograms have 1024 buckets to an octave and 2048 exact ones at their start, so that each bucket lies in
one of fio's bins: the counts are those that fio would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core import Histogram

_BITS = 6
_PER_OCTAVE = 1 << _BITS
#: fio's last bin, which takes all longer latencies.
_LAST = _PER_OCTAVE * 29 - 1
#: Percentiles that fio reports by default.
PERCENTILES = (1, 5, *range(10, 100, 10), 95, 99, 99.5, 99.9, 99.95, 99.99)


def index_of(ns: int) -> int:
    """Return the number of the bin that a latency falls into."""
    bits = ns.bit_length() - 1 - _BITS
    if bits <= 0:
        return ns
    return min(((bits + 1) << _BITS) + ((ns >> bits) & (_PER_OCTAVE - 1)), _LAST)


def middle_of(index: int) -> int:
    """Return the latency that stands for a bin: the middle of it."""
    if index < 2 * _PER_OCTAVE:
        return index
    bits = (index >> _BITS) - 1
    return (1 << (bits + _BITS)) + (((2 * (index & (_PER_OCTAVE - 1)) + 1) << bits) >> 1)


def bins_of(histogram: Histogram) -> dict[int, int]:
    """Count latencies by the middle of their bin, in order."""
    counts: dict[int, int] = {}
    for ns, count in histogram:
        middle = middle_of(index_of(ns))
        counts[middle] = counts.get(middle, 0) + count
    return counts


def percentiles_of(bins: dict[int, int]) -> list[tuple[float, int]]:
    """Return percentiles as fio finds them: the first bin up to whose end that share of latencies lies."""
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
    """Return the lower end of the first bucket: at most a thousandth below the shortest latency."""
    ns = histogram[0][0]
    return ns if ns < 2048 else ns - (1 << (ns.bit_length() - 11)) + 1


#: Upper limits of fio's distribution in ns, us and ms.
_LIMITS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)


def distribution_of(histogram: Histogram) -> dict[str, dict[str, float]]:
    """Return the share in percent of latencies below each limit and not below the one before, by unit.

    A bucket that a limit lies in counts as above it: shares are those of latencies up to a thousandth apart.
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
