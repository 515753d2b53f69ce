"""Comparison of closed forms with the values that a run measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .._devices import Spec
from .._support import words
from .conditions import Case
from .forms import theory_of

#: A run prints a warning if a measured value differs from its closed form by more than this fraction.
WARN = 0.1
#: Write amplification is compared only if the host wrote at least this multiple of the capacity.
_DRIVE_WRITES_MIN = 1.0
#: Values are compared only if preconditioning wrote at least this multiple of the capacity at random (the N
#: of `random:N`). With less, a run does not start near the steady state.
_OVERWRITES_MIN = 4.0
#: Hit ratios are compared only if there were at least this many accesses per page of the buffer.
_ACCESSES_A_PAGE = 64


@dataclass(frozen=True)
class Beside:
    """A measured value, and the closed form of the same quantity.

    Attributes:
        name: the quantity, such as "GC WA".
        measured: value measured in the run.
        expected: value of the closed form.
        case: description of the rule or policy, and of the load.
    """

    name: str
    measured: float
    expected: float
    case: str

    @property
    def difference(self) -> float:
        """Return the measured value minus the closed form, as a fraction of the closed form."""
        return self.measured / self.expected - 1

    def __str__(self) -> str:
        form = words.percent if self.name == "hit ratio" else _two_digits
        return f"{self.name} {form(self.measured)} (closed form {form(self.expected)}: {self.case})"

    def warning(self) -> str | None:
        """Return a warning if the two values differ by more than a tenth; otherwise None."""
        if abs(self.difference) <= WARN:
            return None
        return (
            f"{self.name} differs from its closed form by {self.difference:+.0%}: an assumption does not "
            "hold (`flashtwin theory` lists them)"
        )


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def beside_run(summary: dict[str, Any], spec: Spec, load: str) -> list[Beside]:
    """Return pairs of measured value and closed form, for closed forms whose assumptions hold in a run.

    Args:
        summary: summary of the run.
        spec: device of the run.
        load: load of the run.
    """
    if summary["interrupted"] or not _is_steady(summary["precondition"]):
        return []
    case = Case(spec, load)
    if case.popularity is None:
        return []
    found: list[Beside] = []
    theory = theory_of(case)
    waf = theory.own("gc_write_amplification")
    measured = summary["flash"]["gc_write_amplification"]
    # Write amplification is compared only under uniform writes. A device is preconditioned by uniform writes.
    # Under another load, it reaches the steady state only after many capacities.
    long = summary["health"]["drive_writes"] >= _DRIVE_WRITES_MIN
    if waf is not None and waf.value is not None and measured is not None and long and case.is_uniform:
        found.append(Beside("GC WA", measured, waf.value, f"{waf.name}, uniform"))
    hits = theory.own("hit_ratio")
    counts = summary["hits"]
    accesses = sum(summary["counts"][kind]["requests"] for kind in ("reads", "writes"))
    enough = accesses >= _ACCESSES_A_PAGE * case.buffer_pages
    if hits is not None and hits.value and enough:
        found.append(Beside("hit ratio", counts["ratio"], hits.value, f"{hits.name}, independent"))
    return found


def _is_steady(precondition: str) -> bool:
    overwrites = re.fullmatch(r"random:([\d.]+)", precondition)
    return precondition == "steady" or (overwrites is not None and float(overwrites[1]) >= _OVERWRITES_MIN)
