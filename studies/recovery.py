"""Recovery of hidden devices: drawn at random, measured, fitted unseen, compared on held-out loads.

Each device ends with a row of a table: its parts, held-out figures within their bounds, figures that four
further measurements of the device itself all have within them, figures beyond their bounds among the latter,
parameters identified, and those of them that are off by more than 10 %.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from pathlib import Path

from flashtwin.calibrate import loads
from flashtwin.calibrate.figures import Figures
from flashtwin.calibrate.fit import Calibration, fit
from flashtwin.calibrate.modelled import measure, save_results
from flashtwin.calibrate.parameters import Profile, Values
from flashtwin.calibrate.results import read_results
from flashtwin.devices import Spec

CAPACITY_BYTES = 1 << 30
MEASURED_SEED = 7
#: Of further measurements, which show how far the figures of one device vary.
REPEATED_SEEDS = (8, 9, 10, 11)
#: Bounds of the errors of held-out figures, by the ends of their names.
BOUNDS = {"mb_per_s": 0.05, "p50_us": 0.10, "p90_us": 0.10, "p95_us": 0.10, "p99_us": 0.10, "p99.9_us": 0.20}


def draw(rng: random.Random, level: int) -> Values:
    """Return the parameters of a hidden device."""

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    read, modes = between(30, 90), rng.uniform(1, 1.4)
    values: Values = {
        "channels": rng.choice((2, 4, 8)),
        "dies": rng.choice((1, 2, 4)),
        "planes": rng.choice((1, 2, 4)),
        "reserve": between(7, 35),
        "erase": between(2000, 10000),
        "program": between(300, 1500),
        "program_spread": rng.uniform(1.05, 1.8),
        "transfer": between(0.8, 2.5),
        "overhead": between(3, 30),
        "request": between(0.5, 3),
        "read_low": read / modes,
        "read_mid": read,
        "read_high": read * modes,
    }
    has_buffer, suspends, has_cache = (rng.random() < share for share in (0.8, 0.5, 0.5))
    buffer, suspend, cache, cache_program = (
        between(2 << 20, 16 << 20),
        between(8, 40),
        between(4, 20),
        between(100, 250),
    )
    if level >= 1 and has_buffer:
        values["buffer"] = buffer
    if level >= 2 and suspends:
        values["suspend"] = suspend
    if level >= 3 and has_cache:
        values |= {"slc": cache, "slc_program": min(cache_program, values["program"] / 2)}
    return values


def recover(seed: int, level: int, generations: int, threads: int) -> bool:
    """Recover a device and print how well; return whether all figures and identified parameters are right."""
    hidden = draw(random.Random(seed), level)
    spec = Profile(hidden, CAPACITY_BYTES).spec()
    every = loads.every(spec.exported_bytes)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        save_results(spec, every, Path(folder), seed=MEASURED_SEED, times=loads.TIMES, said=lambda _: None)
        results = read_results(Path(folder), loads.rates_only())
    found = fit(results, generations=generations, threads=threads)
    took_s = time.monotonic() - began
    again = repeated(spec)
    print(
        f"device {seed}: cost {found.refined.cost:.2f}, {found.refined.evaluations} evaluations, "
        f"{took_s:.0f} s"
    )
    known, wrong = print_parameters(hidden, found)
    outside = [name for name in checked(found) if off(found.measured[name], found.modelled[name], name)]
    steady = [
        name
        for name in checked(found)
        if not any(off(found.measured[name], figures[name], name) for figures in again)
    ]
    for name in outside:
        others = ", ".join(f"{figures[name]:.4g}" for figures in again)
        print(
            f"  beyond its bound: {name} {found.measured[name]:.4g}, modelled {found.modelled[name]:.4g}, "
            f"measured again {others}"
        )
    fitted = [name for name in found.measured if not name.startswith("other-")]
    worst = sorted(fitted, key=lambda name: -abs(found.relative_error(name)))[:6]
    print(
        "  worst fitted:",
        [(name, round(found.measured[name], 1), round(found.modelled[name], 1)) for name in worst],
    )
    parts = [part for part in ("buffer", "suspend", "slc") if part in hidden]
    count = len(checked(found))
    print(
        f"| {seed} | {', '.join(parts) or '-'} | {count - len(outside)} of {count} "
        f"| {len(steady)} of {count} | {', '.join(sorted({*outside} & {*steady})) or '-'} "
        f"| {known} | {', '.join(wrong) or '-'} |",
        flush=True,
    )
    return not outside and not wrong


def repeated(spec: Spec) -> list[Figures]:
    """Return the held-out figures of further measurements of a device."""
    held_out = [load.longer(loads.TIMES) for load in loads.held_out()]
    return [measure(spec, held_out, seed) for seed in REPEATED_SEEDS]


def checked(found: Calibration) -> list[str]:
    """Return the held-out figures that have bounds."""
    return [name for name in found.measured if name.startswith("other-") and bound(name)]


def bound(figure: str) -> float | None:
    """Return the largest error of a figure, as a share."""
    what = figure.split("/")[1]
    return BOUNDS.get(what.split(".", 1)[-1] if "." in what else what)


def off(measured: float, modelled: float, figure: str) -> bool:
    """Whether a figure is beyond its bound."""
    return abs(modelled / measured - 1) > (bound(figure) or math.inf)


def print_parameters(hidden: Values, found: Calibration) -> tuple[int, list[str]]:
    """Print the parameters; return how many are identified, and which of these are wrong."""
    values = found.profile.values
    identified = 0
    wrong = []
    for name in {**hidden, **values}:
        true, fitted = hidden.get(name), values.get(name)
        mark = ""
        if name not in values or found.identified(name):
            far = true is None or fitted is None or abs(math.log(fitted / true)) > 0.10
            mark = " identified" + (", WRONG" if far else "")
            identified += name in values
            wrong += [name] * far
        half = found.spread(name) if name in values else None
        shown = [
            format(value, ".4g") if value is not None else "-"
            for value in (true, found.first.get(name), fitted)
        ]
        print(
            f"  {name:<15} true {shown[0]:>9}  first {shown[1]:>9}  fitted {shown[2]:>9}"
            f"  +-{half or 0:.0%}{mark}"
        )
    return identified, wrong


def main() -> int:
    """Recover some devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--devices", type=int, default=20)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--generations", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.devices)
    good = [recover(seed, args.level, args.generations, args.threads) for seed in seeds]
    print(f"{sum(good)} of {len(good)} devices recovered")
    return 0


if __name__ == "__main__":
    sys.exit(main())
