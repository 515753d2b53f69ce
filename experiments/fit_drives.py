"""Fits the times of a profile to a table of percentiles under load, by CMA-ES.

    python experiments/fit_drives.py fit-pe8110 --tables DIR [--evaluations 80] [--write]

The profile `devices/NAME.toml` has a structure (dies, planes, reserve), which is not changed. Each of the
parameters below is multiplied by a factor. The cost is a weighted mean over the figures of fitted rows
(`_drives/fits.toml`) of

    ln(1 + e^2),  e = ln(modelled / measured) / tolerance

The tolerance is 5 % for rates, 10 % for p50 and p99, and 20 % for p99.9. Rates have weight 6. Because of the
logarithm, figures that the model cannot meet do not dominate the other figures. Held-out rows are never run.
With --write, the new values replace those in the file. The same seed gives the same values.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cma

from flashtwin import _core
from flashtwin import device as read_device
from flashtwin._drives.fits import fit_of
from flashtwin._drives.loads import ProbeBesideWrites
from flashtwin._drives.tables import Row, read_table
from flashtwin._drives.timed import Lengths, Timed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
LENGTHS = Lengths(0.6, 1.0)
RATE_WEIGHT = 6.0
TOLERANCE = {"kiops": 0.05, "p50": 0.1, "p99": 0.1, "p99.9": 0.2}
#: Keys whose values are multiplied. Each has the largest factor in either direction, and whether its values
#: are whole numbers.
PARAMETERS: dict[str, tuple[float, bool]] = {
    "timing.read_us": (2.0, False),
    "timing.program_us": (3.0, False),
    "timing.erase_us": (4.0, False),
    "timing.transfer_ns_per_byte": (3.0, False),
    "nand.suspend_us": (4.0, False),
    "nand.suspend_rest_us": (4.0, False),
    "link.command_overhead_us": (2.0, False),
    "controller.request_us": (4.0, False),
    "buffer.background_depth": (4.0, True),
    "buffer.latency_us": (3.0, False),
}


def tolerance(figure: str) -> float:
    """Return the tolerance of a figure by its name."""
    parts = figure.removesuffix("_us").split("_")
    return TOLERANCE[parts[-1]]


def penalty(e: float) -> float:
    """Return the cost of an error `e`, which is given in units of the tolerance."""
    return math.log(1 + e * e)


class Search:
    """The cost of factors applied to the parameters of a profile."""

    def __init__(self, path: Path, rows: list[Row], seed: int) -> None:
        self.text = path.read_text()
        self.path = path
        self.table = tomllib.loads(self.text)
        self.rows = rows
        self.seed = seed
        self.keys: list[tuple[str, int | None]] = []
        for key in PARAMETERS:
            value = self._value(key)
            if isinstance(value, list):
                self.keys += [(key, i) for i in range(len(value))]
            elif value is not None:
                self.keys.append((key, None))
        self.base: _core.Device | None = None

    def _value(self, key: str) -> Any:  # noqa: ANN401 - any value of TOML
        section, name = key.split(".")
        return self.table.get(section, {}).get(name)

    def values(self, factors: Sequence[float]) -> dict[str, Any]:
        """Return the values of the keys.

        `factors` are logarithms, in units of the logarithm of the largest factor.
        """
        found: dict[str, Any] = {}
        for (key, i), x in zip(self.keys, factors, strict=True):
            most, whole = PARAMETERS[key]
            factor = math.exp(max(-1.0, min(1.0, x)) * math.log(most))
            if i is not None:
                found.setdefault(key, []).append(_rounded(self._value(key)[i] * factor))
            else:
                scaled = self._value(key) * factor
                found[key] = max(1, round(scaled)) if whole else _rounded(scaled)
        return found

    def cost(self, factors: Sequence[float], show: bool = False) -> float:
        """Return the cost of some factors."""
        values = self.values(factors)
        spec = read_device(self.path, values)
        timed = Timed(spec, self.seed, LENGTHS)
        control = _core.Control()
        if self.base is None:
            self.base = _core.Device(spec)
            self.base.precondition("random:3", self.seed, control)
        timed._written = self.base  # Times do not change the state.
        costs, weights = 0.0, 0.0
        for row in self.rows:
            assert isinstance(row.load, ProbeBesideWrites)
            found = timed.beside_writes(row.load, control)
            for figure, measured in row.figures.items():
                e = math.log(found[figure].value / measured) / tolerance(figure)
                weight = RATE_WEIGHT if figure == "kiops" else 1.0
                costs += weight * penalty(e)
                weights += weight
                if show:
                    print(
                        f"{row.name:<24} {figure:<15} {measured:>9.5g} {found[figure].value:>9.5g}",
                        flush=True,
                    )
        return costs / weights

    def write(self, factors: Sequence[float]) -> None:
        """Replace the values in the file."""
        text = self.text
        for key, value in self.values(factors).items():
            name = key.split(".")[1]
            text, n = re.subn(rf"(?m)^{name} = (\[[^\]]*\]|[^\s#]+)", f"{name} = {value}", text, count=1)
            assert n == 1, key
        self.path.write_text(text)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> None:
    """Fit a profile."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("profile")
    p.add_argument("--tables", type=Path, required=True)
    p.add_argument("--evaluations", type=int, default=80)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--sigma", type=float, default=0.25)
    p.add_argument("--write", action="store_true")
    args = p.parse_args()
    fit = fit_of(args.profile)
    assert fit is not None, "the profile is not in fits.toml"
    rows = [
        row
        for row in read_table(args.tables / "latency_under_load.csv")
        if row.name.partition("/")[0] in fit.keys and fit.role(row.name, "kiops") == "fitted"
    ]
    search = Search(ROOT / "devices" / f"{args.profile}.toml", rows, args.seed)
    start = [0.0] * len(search.keys)
    print(f"{args.profile}: cost {search.cost(start, show=True):.3f}", flush=True)
    options = {
        "maxfevals": args.evaluations,
        "seed": args.seed,
        "bounds": [-1, 1],
        "verbose": -9,
    }
    best, found = cma.fmin2(search.cost, start, args.sigma, options)
    del found
    print(f"best: cost {search.cost(list(best), show=True):.3f}")
    for key, value in search.values(list(best)).items():
        print(f"  {key} = {value}")
    if args.write:
        search.write(list(best))


if __name__ == "__main__":
    main()
