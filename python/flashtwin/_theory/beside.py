"""Comparison of closed forms with the values that a run measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .._devices import Spec
from .._support import words
from .conditions import Case
from .forms import theory_of

#: Difference between a measured value and its closed form above which a run warns.
WARN = 0.1
#: Least amount of writes, in capacities of the device, from which write amplification is compared.
_DRIVE_WRITES_MIN = 1.0
#: Least number of random overwrites before a run that bring a device near its steady state.
_OVERWRITES_MIN = 4.0
#: Least number of accesses for each page of the buffer, from which hit ratios are compared.
_ACCESSES_A_PAGE = 64


@dataclass(frozen=True)
class Beside:
    """A measured value and its closed form.

    Attributes:
        name: the quantity, as in "GC WA".
        measured: value of the run.
        expected: value of the closed form.
        case: rule or policy, and load, in words.
    """

    name: str
    measured: float
    expected: float
    case: str

    @property
    def difference(self) -> float:
        """Return the difference as a share of the closed form."""
        return self.measured / self.expected - 1

    def __str__(self) -> str:
        form = words.percent if self.name == "hit ratio" else _two_digits
        return f"{self.name} {form(self.measured)} (closed form {form(self.expected)}: {self.case})"

    def warning(self) -> str | None:
        """Return a warning if the two differ by more than a tenth."""
        if abs(self.difference) <= WARN:
            return None
        return (
            f"{self.name} differs from its closed form by {self.difference:+.0%}: an assumption does not "
            "hold (`flashtwin theory` lists them)"
        )


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def beside_run(summary: dict[str, Any], spec: Spec, load: str) -> list[Beside]:
    """Compare a run of a generated load with the closed forms whose assumptions hold.

    Args:
        summary: summary of the run.
        spec: its device.
        load: its load.
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
    # Other loads approach their steady state from that of uniform writes, which takes many capacities.
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
