"""First estimates of the parameters in closed form, each from the experiments that isolate the parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile

from ..errors import FlashtwinError
from .figures import Figures, cost, errors
from .loads import RANGE_WARMUP, STRIDES
from .parameters import BLOCK_BYTES, BY_NAME, Values

#: Time in ns per byte on a PCI Express 3.0 link with four lanes, as in `base.toml`.
_LINK_NS_PER_BYTE = 1 / 3.938 * (256 + 24) / 256
#: Bytes on the pins of the flash per byte of data, including the spare bytes of `base.toml`.
_PINS_PER_BYTE = 1 + 64 / 512
_FLASH_PAGE_KIB = 16
#: Times in us of an access to buffer memory, and of the controller per request, which are assumed if no
#: experiment separates them from the overhead.
_BUFFER_US = 1.0
_REQUEST_US = 0.8
#: Time of an erase in us that is assumed if no experiment determines it.
_ERASE_US = 4500.0
#: Reads with some stride (distance of their addresses) are assumed to use all dies if their rate is above
#: this fraction of the highest rate of any stride.
_FULL = 0.75
#: Reads with some stride (distance of their addresses) are assumed to use a single die if their rate is below
#: this multiple of a die's rate.
_SINGLE = 1.2
#: A burst of writes filled the buffer if its rate is below this fraction of the fastest burst's rate.
_STALLED = 0.9
#: Fraction of a read's latency that its die is assumed to take, while the overhead is not yet known.
_OF_DIE = 0.8
#: Forced writes and flushes wait for the flash if they take at least this multiple of the time of other
#: writes.
_WAITS = 3
#: Reads come from the buffer if they take less than this fraction of the time of reads from the flash.
_HIT = 0.7
#: The buffer is assumed to be full after the warm-up if it then has less than this fraction of the pages that
#: the warm-up read.
_FULL_BUFFER = 0.9
#: Sequential writes to an empty drive are used from this multiple of the buffer's size on. Shorter ones
#: measure the buffer more than the flash.
_FILL_TO_BUFFER = 2
#: A drive has an SLC cache if its first writes after it was emptied are faster than later ones by this
#: factor.
_CACHED = 1.3
_HALVINGS = 6
#: Numbers of components (such as channels) cannot be distinguished if their costs are within this factor of
#: the lowest cost.
_NEAR = 1.2
_NEAR_COST = 0.05
#: Bits of a cell, as in `base.toml`.
_CELL_BITS = 3
_CHANNELS = (1, 2, 3, 4, 6, 8, 12, 16, 32)


@dataclass(frozen=True)
class Dies:
    """Size of a row (pages that a die programs at once) and number of dies."""

    row_kib: int
    dies: int


def dies_of(rates: Mapping[int, float], die_rate: float) -> Dies:
    """Return row size and number of dies, from the rates of reads with different strides.

    Addresses of such reads are multiples of the stride (in KiB). Sequential data are striped over the dies
    row by row (a row is the pages that a die programs at once). Therefore reads with a stride of one row use
    all dies, and reads with a stride of two rows use half of them. If the stride in rows is the number of
    dies, all reads use a single die.

    Args:
        rates: rates by stride, in ascending order of strides.
        die_rate: rate of a single die.
    """
    best = max(rates.values())
    row = max(_FLASH_PAGE_KIB, max(takewhile(lambda stride: rates[stride] >= _FULL * best, rates), default=0))
    # The smallest stride with one die's rate is used. Larger strides have few addresses, and a buffer may
    # hold all of them.
    narrow = next((stride for stride in rates if rates[stride] <= _SINGLE * die_rate), None)
    if narrow is not None:
        return Dies(row, max(1, narrow // row))
    slowest = min(rates, key=rates.__getitem__)
    return Dies(row, 1 << max(0, round(math.log2(rates[slowest] / die_rate * slowest / row))))


def estimate(figures: Figures, capacity_bytes: int, found: Dies | None = None) -> Values:
    """Return first estimates for a drive of the given capacity, from the figures of the experiments.

    Args:
        figures: figures of the experiments.
        capacity_bytes: capacity of the drive.
        found: row size and number of dies, if known.

    Raises:
        FlashtwinError: an indispensable experiment is missing.
    """
    get = _Given(figures)
    wait = get("write-depth1/write.p50_us")
    read_us = get("read-size-4k/read.p50_us")
    # A program of flash takes longer than a read. Therefore, if writes are faster than reads, they complete
    # in a buffer.
    is_buffered = wait < read_us
    die_us = read_us - wait if is_buffered else read_us * _OF_DIE
    strides = get.rates("read-stride-", "k", most=STRIDES[-1])
    found = found or dies_of(strides, (4 << 10) / die_us)
    row_bytes = found.row_kib << 10
    growth_ns = (get("read-size-16k/read.p50_us") - get("read-size-8k/read.p50_us")) * 1e3 / (8 << 10)
    transfer = BY_NAME["transfer"].clip((growth_ns - _LINK_NS_PER_BYTE) / _PINS_PER_BYTE)
    data_in_us = row_bytes * _PINS_PER_BYTE * transfer / 1e3
    buffer = (_cached_reads(get) or _buffer(get)) if is_buffered else 0.0
    fills = _fills(get, capacity_bytes, _FILL_TO_BUFFER * buffer)
    program = found.dies * row_bytes / fills.slow - data_in_us
    page_us = (4 << 10) * (_PINS_PER_BYTE * transfer + _LINK_NS_PER_BYTE) / 1e3
    values: Values = {
        "channels": 1,
        "dies": found.dies,
        "planes": found.row_kib // _FLASH_PAGE_KIB,
        "reserve": 15,
        "program": program,
        "program_spread": 1.3,
        "erase": _ERASE_US,
        "transfer": transfer,
    }
    again = figures.get("write-again/mb_per_s", fills.slow)
    # Sequential writes to an empty drive show the rate of the flash only if neither an SLC cache nor the link
    # hides it.
    shown = not fills.cache_bytes and fills.slow < _FULL * 1e3 / _LINK_NS_PER_BYTE
    if shown and again < fills.slow:
        values["erase"] = found.dies * BLOCK_BYTES * (1 / again - 1 / fills.slow)
    if fills.cache_bytes:
        raw = capacity_bytes / (1 - values["reserve"] / 100)
        values["slc"] = 100 * fills.cache_bytes * _CELL_BITS / raw
        values["slc_program"] = found.dies * row_bytes / fills.fast - data_in_us
    if buffer:
        # If many writes are in flight, their rate is limited by the controller or the link.
        interval_us = (4 << 10) / get("write-rate/mb_per_s")
        values["request"] = interval_us if interval_us > _LINK_NS_PER_BYTE * 4.1 * 1.1 else _REQUEST_US
        values["overhead"] = wait - _BUFFER_US - values["request"] - (4 << 10) * _LINK_NS_PER_BYTE / 1e3
        values["buffer"] = buffer
    else:
        values["request"] = _REQUEST_US
        # The overhead is the latency of a single read minus the time of its die. The latter is computed from
        # the rate of queued reads with the slowest stride, which may still use several dies.
        stride_kib = min(strides, key=strides.__getitem__)
        dies_in_use = max(1.0, found.dies * found.row_kib / stride_kib)
        single_us = dies_in_use * (4 << 10) / strides[stride_kib]
        values["overhead"] = (4 << 10) / get("read-size-4k/mb_per_s") - single_us - _REQUEST_US
    values["overhead"] = BY_NAME["overhead"].clip(values["overhead"])
    for name, end in (("read_low", "p20_us"), ("read_mid", "p50_us"), ("read_high", "p80_us")):
        values[name] = get(f"read-size-4k/read.{end}") - values["overhead"] - values["request"] - page_us
    return {name: BY_NAME[name].clip(value) for name, value in values.items()}


def choose_dies(
    figures: Figures,
    capacity_bytes: int,
    measure_strides: Callable[[Values], Figures],
    uncertain: Figures | None = None,
) -> Values:
    """Return the first estimates that fit the measured rates of reads with different strides best.

    Row size (the pages that a die programs at once) and number of dies are varied.

    Only numbers near the closed form are tried.
    """
    start = estimate(figures, capacity_bytes)
    tried = [
        estimate(figures, capacity_bytes, Dies(round(start["planes"] * times * _FLASH_PAGE_KIB), round(dies)))
        for times in (0.5, 1, 2)
        for dies in (start["dies"] / 2, start["dies"], start["dies"] * 2)
        if start["planes"] * times >= 1 and dies >= 1
    ]

    def error(each: Values) -> float:
        # Each die gets a channel of its own here, so that no channel limits the rates.
        apart = {**each, "channels": each["dies"], "dies": 1}
        return cost(errors(figures, measure_strides(apart), uncertain))

    return min(tried, key=error)


def choose_channels(
    values: Values,
    figures: Figures,
    measure_reads: Callable[[Values], Figures],
    uncertain: Figures | None = None,
) -> tuple[Values, bool]:
    """Return the parameters with the smallest number of channels that fits the measured reads.

    Also returns whether the measurements exclude all other numbers of channels. They do not if the link
    limits the rates, because then more channels change nothing.
    """
    dies = round(values["dies"])
    candidates = [
        {**values, "channels": channels, "dies": dies // channels}
        for channels in _CHANNELS
        if dies % channels == 0
    ]
    costs = [cost(errors(figures, measure_reads(each), uncertain)) for each in candidates]
    near = [each for each, found in zip(candidates, costs, strict=True) if is_near(found, min(costs))]
    return near[0], len(near) == 1


def is_near(found: float, best: float) -> bool:
    """Whether a cost is so close to the lowest cost that the two cannot be distinguished."""
    return found <= best * _NEAR + _NEAR_COST


def choose_reserve(values: Values, rate: float, measure_rate: Callable[[Values], float]) -> Values:
    """Return the parameters with the reserve that gives the measured rate of steady random writes.

    The rate grows with the reserve, because garbage collection moves fewer pages. The search is a bisection
    over the logarithm of the reserve.
    """
    low, high = math.log(BY_NAME["reserve"].low), math.log(BY_NAME["reserve"].high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if measure_rate({**values, "reserve": math.exp(middle)}) < rate:
            low = middle
        else:
            high = middle
    return {**values, "reserve": math.exp((low + high) / 2)}


class _Given:
    """Gives access to figures by name, and raises an error if a figure is missing."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def __call__(self, name: str) -> float:
        if name not in self._figures:
            experiment, figure = name.split("/")
            raise FlashtwinError(f"{experiment}: {figure} is missing from the results; run it again")
        return self._figures[name]

    def rates(self, start: str, end: str, most: int) -> dict[int, float]:
        """Return the bandwidths of a series of experiments whose names differ in a number, by that number."""
        found = {}
        for name, value in self._figures.items():
            experiment, figure = name.split("/")
            number = experiment.removeprefix(start).removesuffix(end)
            if figure == "mb_per_s" and experiment.startswith(start) and number.isdigit():
                found[int(number)] = value
        chosen = {number: found[number] for number in sorted(found) if number <= most}
        if not chosen:
            raise FlashtwinError(f"{start}*: no results; run these experiments")
        return chosen


@dataclass(frozen=True)
class Fills:
    """SLC cache and write rates, derived from sequential writes to an empty drive.

    Attributes:
        cache_bytes: amount of data that the SLC cache accepts; 0 if there is none.
        fast: rate in MB/s until the cache is full.
        slow: rate in MB/s when the cache is full.
    """

    cache_bytes: float
    fast: float
    slow: float


def _fills(get: _Given, capacity_bytes: int, least_bytes: float) -> Fills:
    """Return the SLC cache and the write rates, from the times that writing different amounts takes.

    For x more bytes, the time grows by x / fast until the cache is full, and by x / slow afterwards. Small
    amounts are omitted, because they may be in the buffer.
    """
    shares = get.rates("write-fill-", "", most=100)
    ends = [(capacity_bytes * percent / 100, rate) for percent, rate in shares.items()]
    times = [(x, x / rate) for x, rate in ends]
    times = [each for each in times[:-3] if each[0] >= least_bytes] + times[-3:]
    rates = [(x2 - x1) / (t2 - t1) for (x1, t1), (x2, t2) in pairwise(times)]
    slow, fast = rates[-1], max(rates)
    if fast < _CACHED * slow:
        return Fills(0.0, fast, slow)
    (first, began), (last, ended) = times[0], times[-1]
    beyond = (last - first - slow * (ended - began)) / (1 - slow / fast)
    return Fills(first + max(0.0, beyond), fast, slow)


def protected(figures: Figures) -> bool | None:
    """Whether a flush completes when the data are in the buffer; None if no experiment shows it."""
    usual_us = figures.get("write-depth1/write.p50_us")
    forced = (figures.get(name) for name in ("fua-depth1/write.p50_us", "flush-depth1/flush.p90_us"))
    forced_us = max((us for us in forced if us is not None), default=None)
    return None if usual_us is None or forced_us is None else forced_us < _WAITS * usual_us


def caches_reads(figures: Figures) -> bool:
    """Whether the drive serves repeated reads of a small range from its buffer."""
    miss_us, parts = _in_parts(_Given(figures))
    return min(parts.values()) <= _HIT * miss_us


def _in_parts(get: _Given) -> tuple[float, dict[int, float]]:
    """Return mean latencies in us: of reads from the whole drive, and of reads from parts, by size in MiB."""
    parts = get.rates("read-range-", "m", most=1 << 20)
    return (4 << 10) / get("read-size-4k/mb_per_s"), {mib: (4 << 10) / rate for mib, rate in parts.items()}


def _cached_reads(get: _Given) -> float:
    """Return the buffer's size in bytes, from reads within parts of the drive; 0 if they do not show it.

    The hit ratio of such reads is the size of the buffer divided by the size of the part. This holds only if
    the warm-up reads have filled the buffer. If the buffer has room for all pages that they read, these reads
    do not show its size.
    """
    miss_us, parts = _in_parts(get)
    hit_us = min(parts.values())
    if hit_us > _HIT * miss_us:
        return 0.0
    shares = {mib: (miss_us - us) / (miss_us - hit_us) for mib, us in parts.items()}
    shares = {mib: share for mib, share in shares.items() if share < _FULL_BUFFER * _read_before(mib)}
    if not shares:
        return 0.0
    # The part with a hit ratio nearest to 0.5 is used, because near 0 the error exceeds the ratio.
    mib = min(shares, key=lambda each: abs(shares[each] - 0.5))
    return max(float(1 << 18), mib * shares[mib] * (1 << 20))


def _read_before(mib: int) -> float:
    """Return the fraction of the pages of a part that the warm-up of its experiment reads."""
    return 1 - math.exp(-RANGE_WARMUP / (mib << 8))


def _buffer(get: _Given) -> float:
    """Return the size of the buffer in bytes, from the rates of bursts of writes.

    If a burst is larger than the buffer, its duration is (size of the burst - size of the buffer) / rate of
    the flash. The two shortest bursts of this kind determine the size of the buffer and the rate.
    """
    bursts = get.rates("write-burst-", "m", most=1 << 20)
    top = max(bursts.values())
    at_top = next(mib for mib, rate in bursts.items() if rate == top)
    full = [mib for mib, rate in bursts.items() if mib > at_top and rate < _STALLED * top]
    if len(full) < 2:
        return float(max(bursts) << 20)
    n1, n2 = (mib << 20 for mib in full[:2])
    t1, t2 = (n / bursts[mib] for n, mib in zip((n1, n2), full[:2], strict=True))
    return max(float(1 << 20), n1 - (n2 - n1) / (t2 - t1) * t1)
