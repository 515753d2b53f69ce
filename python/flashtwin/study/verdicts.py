"""The words for verdicts on measures, pins and claims (docs/studies.md#verdicts)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .._support.estimates import Estimate
from .definition import Claim, Measure

#: Results of a measure.
AS_PRINTED, SAME_SIGN, NO_EFFECT = "as printed", "same sign", "no effect"
OPPOSITE, OTHER_SIZE, UNDECIDED, UNMEASURED = "opposite", "other size", "undecided", "not measured"
RESULTS: Final = (AS_PRINTED, SAME_SIGN, NO_EFFECT, OPPOSITE, OTHER_SIZE, UNDECIDED, UNMEASURED)
#: Results that support a claim, and results that contradict it.
_FOR: Final = (AS_PRINTED, SAME_SIGN)
_AGAINST: Final = (NO_EFFECT, OPPOSITE, OTHER_SIZE)

#: Verdicts on a claim.
REPRODUCED, CONDITIONAL, NOT_REPRODUCED = "reproduced", "reproduced if", "not reproduced"
OPEN, CONTRADICTORY, UNTESTED = "open", "contradictory", "not tested"
VERDICTS: Final = (REPRODUCED, CONDITIONAL, NOT_REPRODUCED, OPEN, CONTRADICTORY, UNTESTED)

#: Verdicts on a pin and on a check.
MET, MISSED, EXCLUDED = "met", "missed", "excluded by the paper"

#: Footings (bases of a verdict) that follow from the results of a claim's readings (interpretations of the
#: paper). All other footings are given in the study's file.
ROBUST, DEPENDS = "robust", "depends on"

#: A change counts as no effect if it differs from "no change" by at most this amount, by unit.
_NO_EFFECT: Final = {"change": 3.0, "ratio": 0.03}


@dataclass(frozen=True)
class Reading:
    """A registered interpretation of the paper: its name, and the result of the claim's measure under it."""

    name: str
    result: str


@dataclass(frozen=True)
class Verdict:
    """Verdict on a claim, its footing (basis), and the condition under which the claim is reproduced.

    The condition is None if there is none.
    """

    verdict: str
    footing: str
    condition: str | None


def result_of(measure: Measure, estimate: Estimate) -> str:
    """Judge an estimate: compare first the sign of the effect with the paper's, then the size."""
    if estimate.value is None:
        return UNMEASURED
    low, high = _ends(measure, estimate)
    inside = measure.holds is None or measure.holds[0] <= estimate.value <= measure.holds[1]
    if measure.below is None and measure.above is None:
        return _without_sign(measure, low, high, inside)
    if (measure.below is None or high < measure.below) and (measure.above is None or low > measure.above):
        if inside:
            return AS_PRINTED
        return NO_EFFECT if _is_small(measure, low, high) else SAME_SIGN
    if _is_small(measure, low, high):
        return NO_EFFECT
    wrong = (measure.below is not None and low >= measure.below) or (
        measure.above is not None and high <= measure.above
    )
    return OPPOSITE if wrong else UNDECIDED


def _without_sign(measure: Measure, low: float, high: float, inside: bool) -> str:
    if measure.holds is None:
        return AS_PRINTED
    least, most = measure.holds
    width = most - least
    if inside:
        return AS_PRINTED if least - width <= low and high <= most + width else UNDECIDED
    return UNDECIDED if low <= most and high >= least else OTHER_SIZE


def _ends(measure: Measure, estimate: Estimate) -> tuple[float, float]:
    """Return the ends of the interval of an estimate.

    An estimate from a single seed has no interval. If the measure has a sign (`below` or `above`), the ends
    are then infinite, so that the sign is undecided. Otherwise, both ends are the estimated value.
    """
    assert estimate.value is not None
    if estimate.low is not None and estimate.high is not None:
        return estimate.low, estimate.high
    if measure.below is None and measure.above is None:
        return estimate.value, estimate.value
    return -math.inf, math.inf


def _is_small(measure: Measure, low: float, high: float) -> bool:
    none = measure.below if measure.below is not None else measure.above
    half = _NO_EFFECT.get(measure.unit)
    return half is not None and none is not None and none - half <= low and high <= none + half


def pin_of(measure: Measure, estimate: Estimate, contradicts: str | None) -> str:
    """Judge a pin (a figure of the baseline that the paper prints or implies).

    A pin is met if the estimate is within its tolerance.
    """
    if estimate.value is None:
        return UNMEASURED
    assert measure.holds is not None
    if measure.holds[0] <= estimate.value <= measure.holds[1]:
        return MET
    return MISSED if contradicts is None else EXCLUDED


def verdict_of(claim: Claim, result: str, readings: Sequence[Reading], missed: Sequence[str]) -> Verdict:
    """Judge a claim.

    Args:
        claim: the claim.
        result: result of the claim's main measure.
        readings: the registered interpretations of the paper, with their results.
        missed: ids of missed pins of the main measure's matrix.
    """
    if claim.cannot_be_tested is not None or claim.footing == "vacuous":
        return Verdict(UNTESTED, claim.footing, None)
    if claim.footing == "self-contradictory":
        return Verdict(CONTRADICTORY, claim.footing, None)
    agree = "; ".join(each.name for each in readings if each.result in _FOR)
    others = "; ".join(each.name for each in readings if each.result in _AGAINST)
    if result in _FOR:
        is_robust = bool(readings) and all(each.result in _FOR for each in readings)
        return _supported(claim, others, is_robust, missed)
    if agree:
        return Verdict(CONDITIONAL, f"{DEPENDS} {agree}", agree)
    all_against = result in _AGAINST and all(each.result in _AGAINST for each in readings)
    if not all_against or missed or claim.footing == "stand-in":
        return Verdict(OPEN, claim.footing, None)
    return Verdict(NOT_REPRODUCED, ROBUST if readings else claim.footing, None)


def _supported(claim: Claim, others: str, is_robust: bool, missed: Sequence[str]) -> Verdict:
    conditions = [
        f"the drive may differ from the paper's (missed: {', '.join(missed)})" if missed else None,
        claim.condition,
        f"not under: {others}" if others else None,
    ]
    condition = "; ".join(each for each in conditions if each is not None)
    footing = f"{DEPENDS} {others}" if others else (ROBUST if is_robust else claim.footing)
    return Verdict(CONDITIONAL if condition else REPRODUCED, footing, condition or None)


def counts_of(claims: Sequence[dict[str, object]]) -> dict[str, int]:
    """Count the verdicts. A number that the paper prints several times counts only once."""
    counted = [claim["verdict"] for claim in claims if claim["same_as"] is None]
    return {verdict: counted.count(verdict) for verdict in VERDICTS}
