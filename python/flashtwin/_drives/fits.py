"""Profiles that are fitted to tables of measurements: their drives, and the rows that the fits used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Ways in which figures are held out from a fit.
SPLITS = {
    "rate": "rates that were not fitted, on a drive of which four rates were fitted",
    "drive": "all rates of the second drive of a model, of which no rate was fitted",
    "pattern": "patterns of writes and used capacities that were not fitted",
    "depth": "numbers of reads in flight that were not fitted",
}


@dataclass(frozen=True)
class Fit:
    """The fit of a profile.

    Attributes:
        keys: first parts of the names of the drive's rows, such as "h0".
        usable_gib: capacity of the drive.
        fitted: patterns of the rows that the fit used.
        soc_bytes: by trace that CacheLib replayed, the fitted share of bytes of small objects.
    """

    keys: tuple[str, ...]
    usable_gib: float
    fitted: tuple[str, ...]
    soc_bytes: Mapping[str, float] = field(default_factory=dict)

    def role(self, row: str, figure: str) -> str:
        """Return the role of a row's figure: "fitted" if the fit used it, otherwise "held out"."""
        name = f"{row}:{figure}"
        return "fitted" if any(fnmatchcase(name, pattern) for pattern in self.fitted) else "held out"

    def split(self, row: str, figure: str) -> str:
        """Return in which way a row's figure is held out from the fit (a key of `SPLITS`), or "fitted"."""
        if self.role(row, figure) == "fitted":
            return "fitted"
        key, kind = row.split("/")[:2]
        if kind == "latency":
            return "rate" if any(each.startswith(f"{key}/latency/") for each in self.fitted) else "drive"
        return "depth" if kind == "reads" else "pattern"


@cache
def fits() -> Mapping[str, Fit]:
    """Return the fits of all fitted profiles, by name of the profile."""
    text = Path(__file__).with_name("fits.toml").read_text(encoding="utf-8")
    return {
        name: Fit(tuple(fit["keys"]), fit["usable_gib"], tuple(fit["fitted"]), fit.get("soc_bytes", {}))
        for name, fit in tomllib.loads(text).items()
    }


def fit_of(device: str) -> Fit | None:
    """Return the fit of a profile; None if the profile is not fitted to a table."""
    return fits().get(device)
