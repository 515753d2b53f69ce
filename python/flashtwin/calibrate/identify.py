"""Overhead, reserve, free blocks and victim rule of a drive from its counters alone, with intervals.

- *Overhead*: bytes written to the flash per byte of the host in sequential passes, in which no page is moved.
- *Reserve*: a closed form (docs/placement.md) converts the write amplification of uniform writes, without the
  overhead, to the fraction of live pages. The used capacity divided by this fraction is the flash in use. The
  form depends on the victim rule. A rule is right if measurements with different used capacities give the
  same amount of flash.
- *Free blocks*: only of drives that count free blocks. After sequential passes, the share of free blocks
  gives the amount of flash in another way. At the end of random writes, this share is the watermark.
- *Victim rule*: skewed writes run on a model with the identified reserve, under each rule. Moved pages are
  placed either in units of their own or together with host pages. The combinations are ordered by their
  errors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .. import _core
from ..errors import FlashtwinError

#: Model on which skewed writes run: number of units, pages per unit, and number of free units at which it
#: collects.
_UNITS = 512
_UNIT_PAGES = 2048
_LOW = 2
#: Number of open and free units of this model. They are not part of the flash in use.
_APART = 4
#: Measurements with different used capacities (fills) should give the same amount of flash. A victim rule is
#: named only if under any other rule, the fills disagree more, by at least this factor.
_CLEARLY = 2.0
#: Names of the closed forms for uniform writes, by victim rule.
RULES = {"greedy": "uniform_greedy", "fifo": "uniform_fifo"}
GIB = 2**30


@dataclass(frozen=True)
class Interval:
    """A value with its bounds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.5g} ({self.low:.5g} to {self.high:.5g})"


@dataclass(frozen=True)
class Point:
    """Write amplification of a load, measured by counters.

    Attributes:
        name: name of the experiment.
        used_bytes: size of the part of the drive that is written.
        pattern: "sequential", "uniform", or another generated load.
        waf: bytes written to the flash per byte of the host, with bounds.
        overwrites: number of overwrites of the part up to the end of the measurement.
        free_percent: free blocks at the end, in whole percent; None if the drive does not count them.
        shuffled: whether the drive was filled in random order before the writes.
    """

    name: str
    used_bytes: float
    pattern: str
    waf: Interval
    overwrites: float = 1.0
    free_percent: float | None = None
    shuffled: bool = False


@dataclass(frozen=True)
class Candidate:
    """A victim rule and a placement of moved pages, with the largest error of both under skewed loads."""

    rule: str
    survivors: str
    error_percent: float


@dataclass(frozen=True)
class Identified:
    """Parameters of a drive.

    Attributes:
        overhead_percent: parity and metadata, as in nand.media_overhead_percent.
        flash_bytes: flash in use, by victim rule.
        reserve_percent: percentage of the flash in use that the host cannot access, by victim rule.
        rule: rule under which measurements with different used capacities (fills) give clearly the most
            similar amounts of flash; None if there is no such rule or only one fill was measured.
        disagreement_percent: by rule, the largest difference between the amounts of flash computed for the
            fills.
        watermark_percent: free blocks after random writes; None if the drive does not count them.
        flash_by_free_bytes: flash computed from the free blocks after sequential passes; None if the drive
            does not count them.
        candidates: rules in ascending order of their error under skewed loads; empty without such loads.
        notes: descriptions of disagreements.
    """

    overhead_percent: Interval
    flash_bytes: dict[str, Interval]
    reserve_percent: dict[str, Interval]
    rule: str | None
    disagreement_percent: dict[str, float]
    watermark_percent: Interval | None
    flash_by_free_bytes: Interval | None
    candidates: list[Candidate]
    notes: list[str]

    def to_json(self) -> str:
        """Return all values as JSON."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        """Return a line for each parameter."""
        lines = [f"overhead of the medium: {self.overhead_percent} %"]
        for rule, reserve in self.reserve_percent.items():
            flash = self.flash_bytes[rule]
            in_gib = Interval(*(value / GIB for value in (flash.value, flash.low, flash.high)))
            text = f"reserve, if the rule is {rule}: {reserve} % of {in_gib} GiB in use"
            if len(self.disagreement_percent):
                text += f"; fills disagree by {self.disagreement_percent[rule]:.2g} %"
            lines.append(text)
        if self.rule:
            lines.append(f"rule by the fills: {self.rule}")
        if self.flash_by_free_bytes:
            flash = self.flash_by_free_bytes
            in_gib = Interval(*(value / GIB for value in (flash.value, flash.low, flash.high)))
            lines.append(f"flash by the free blocks after sequential passes: {in_gib} GiB")
        if self.watermark_percent:
            lines.append(f"watermark, free blocks after random writes: {self.watermark_percent} %")
        for candidate in self.candidates:
            lines.append(
                f"skewed writes, {candidate.rule}, survivors {candidate.survivors}: "
                f"largest error {candidate.error_percent:.1f} %"
            )
        return "\n".join(lines + self.notes)


def identify(points: Sequence[Point], capacity_bytes: float, seed: int = 1) -> Identified:
    """Identify the parameters of a drive from counters.

    Args:
        points: experiments; at least one sequential pass, and one of uniform writes with collections.
        capacity_bytes: capacity of the drive.
        seed: seed of modelled loads.

    Raises:
        FlashtwinError: one of these two experiments is missing.
    """
    notes: list[str] = []
    passes = [point for point in points if point.pattern == "sequential"]
    if not passes:
        raise FlashtwinError("no sequential pass over an empty drive: the overhead is not identified")
    overhead = _hull([point.waf for point in passes])
    uniform = [point for point in points if point.pattern == "uniform" and not point.shuffled]
    flash: dict[str, list[Interval]] = {rule: [] for rule in RULES}
    full: dict[str, list[Interval]] = {rule: [] for rule in RULES}
    for point in uniform:
        if point.waf.low / overhead.high <= 1.02:
            notes.append(f"{point.name}: collection moves too little to identify the reserve")
            continue
        for rule in RULES:
            found = _flash(point, overhead, rule)
            flash[rule].append(found)
            if point.used_bytes >= 0.99 * capacity_bytes:
                full[rule].append(found)
    if not flash["greedy"]:
        raise FlashtwinError("no uniform writes with write amplification: the reserve is not identified")
    # The fuller the drive, the narrower the interval.
    together = {rule: _narrowest(full[rule] or flash[rule]) for rule in RULES}
    fills = {round(point.used_bytes / capacity_bytes, 2) for point in uniform}
    several = len(fills) > 1 and len(flash["greedy"]) > 1
    disagreement = {rule: _disagreement(flash[rule]) for rule in RULES} if several else {}
    best = _best(disagreement, notes)
    by_free, watermark = _by_free(points, notes)
    chosen = together[best or "greedy"]
    if by_free and (by_free.high < chosen.low or chosen.high < by_free.low):
        notes.append(
            "the free blocks and the write amplification give different flash: the counter of free blocks "
            "counts otherwise, or the drive does better than the closed form"
        )
    skewed = [point for point in points if point.pattern not in ("sequential", "uniform")]
    return Identified(
        Interval(*((value - 1) * 100 for value in (overhead.value, overhead.low, overhead.high))),
        together,
        {rule: _reserve(found, capacity_bytes) for rule, found in together.items()},
        best,
        disagreement,
        watermark,
        by_free,
        _candidates(skewed, overhead, chosen, seed) if skewed else [],
        notes,
    )


def _flash(point: Point, overhead: Interval, rule: str) -> Interval:
    """Return the flash in use for which the closed form gives the measured write amplification."""
    used = point.used_bytes
    fills = [
        _fill(waf / over, rule)
        for waf, over in (
            (point.waf.value, overhead.value),
            (point.waf.high, overhead.low),
            (max(point.waf.low, overhead.high * 1.0001), overhead.high),
        )
    ]
    return Interval(*(used / fill for fill in fills))


def _fill(waf: float, rule: str) -> float:
    """Return the fraction of live pages for which the closed form gives a write amplification."""
    low, high = 1e-6, 1 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        if _core.placement_theory(middle, _UNIT_PAGES)[RULES[rule]] < waf:
            low = middle
        else:
            high = middle
    return low


def _reserve(flash: Interval, capacity_bytes: float) -> Interval:
    return Interval(*((1 - capacity_bytes / value) * 100 for value in (flash.value, flash.low, flash.high)))


def _hull(intervals: Sequence[Interval]) -> Interval:
    values = sorted(interval.value for interval in intervals)
    return Interval(
        values[len(values) // 2],
        min(interval.low for interval in intervals),
        max(interval.high for interval in intervals),
    )


def _narrowest(intervals: Sequence[Interval]) -> Interval:
    """Return the intersection of the intervals; if it is empty, the interval that contains them all."""
    low, high = max(each.low for each in intervals), min(each.high for each in intervals)
    if low > high:
        return _hull(intervals)
    middle = sum(each.value for each in intervals) / len(intervals)
    return Interval(min(max(middle, low), high), low, high)


def _best(disagreement: dict[str, float], notes: list[str]) -> str | None:
    """Return the victim rule with clearly the least disagreement between the fills; None if there is none.

    Fills are measurements with different used capacities.
    """
    if not disagreement:
        return None
    least, *others = sorted(disagreement, key=lambda rule: disagreement[rule])
    if all(disagreement[least] < disagreement[other] / _CLEARLY for other in others):
        return least
    notes.append("uniform writes at these fills do not distinguish the victim rules")
    return None


def _disagreement(intervals: Sequence[Interval]) -> float:
    values = [interval.value for interval in intervals]
    return (max(values) / min(values) - 1) * 100


def _by_free(points: Sequence[Point], notes: list[str]) -> tuple[Interval | None, Interval | None]:
    """Return the flash in use and the watermark, both from the free blocks.

    The flash is computed from free blocks after sequential passes. The watermark is the share of free blocks
    after random writes. Each is None if there is no such experiment, or if the drive does not count free
    blocks.
    """
    flash = [
        # The counter may have been rounded down or to the nearest whole percent.
        Interval(
            point.used_bytes / (1 - point.free_percent / 100),
            point.used_bytes / (1 - (point.free_percent - 0.5) / 100),
            point.used_bytes / (1 - (point.free_percent + 1) / 100),
        )
        for point in points
        if point.pattern == "sequential" and point.free_percent is not None
    ]
    free = [
        point.free_percent
        for point in points
        if point.pattern != "sequential" and point.free_percent is not None and point.waf.low > 1.15
    ]
    found = _narrowest(flash) if flash else None
    if flash and max(each.low for each in flash) > min(each.high for each in flash):
        notes.append("free blocks after sequential passes contradict each other")
    watermark = Interval(sorted(free)[len(free) // 2], min(free), max(free) + 1) if free else None
    return found, watermark


def _candidates(skewed: Sequence[Point], overhead: Interval, flash: Interval, seed: int) -> list[Candidate]:
    """Run skewed loads on a model with this amount of flash. Return the rules with their largest errors."""
    found = []
    for rule in ("greedy", "fifo", "d-choices"):
        for survivors, scheme in (("together", "none"), ("apart", "gc")):
            errors = [
                abs(_modelled(point, flash, rule, scheme, seed) * overhead.value / point.waf.value - 1) * 100
                for point in skewed
            ]
            found.append(Candidate(rule, survivors, max(errors)))
    return sorted(found, key=lambda candidate: candidate.error_percent)


def _modelled(point: Point, flash: Interval, rule: str, scheme: str, seed: int) -> float:
    """Return the write amplification of a load on the model, without the overhead."""
    pages = math.floor(point.used_bytes / flash.value * (_UNITS - _APART) * _UNIT_PAGES)
    words = {
        "units": _UNITS,
        "unit_pages": _UNIT_PAGES,
        "logical_pages": pages,
        "low": _LOW,
        "scheme": scheme,
        "victim": rule,
    }
    raw = _core.run_placement(
        [(word, str(value)) for word, value in words.items()],
        _core.Workload.generated(point.pattern, pages * 4096, seed),
        _core.Workload.fill(None, pages * 4096, 4096, seed),
        page_bytes=4096,
        warm=point.overwrites * 0.75,
        capacities=point.overwrites * 0.25,
        points=1,
        control=_core.Control(),
    )
    host = raw["after"]["host_pages"] - raw["before"]["host_pages"]
    moved = raw["after"]["moves"] - raw["before"]["moves"]
    return 1.0 + float(moved) / float(host)
