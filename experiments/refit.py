"""Refits the profile of a commercial drive to its published figures; compares it with the hand-made profile.

    python experiments/refit.py --device nvme-tlc

A pattern search starts at the package's profile of the drive and reduces the mean error. It rejects each step
after which the error of any published figure would be larger than with that profile. Therefore no figure is
worse in the result.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import flashtwin
from flashtwin import _core
from flashtwin.errors import FlashtwinError

#: Keys that are refitted, each with the number of its values.
KEYS = {
    "timing.read_us": 3,
    "timing.program_us": 3,
    "timing.transfer_ns_per_byte": 1,
    "link.command_overhead_us": 1,
    "nand.suspend_us": 1,
    "nand.suspend_rest_us": 1,
    "geometry.reserve_percent": 1,
    "buffer.latency_us": 1,
    "buffer.background_depth": 1,
}
#: Step sizes of the search, tried one after the other: changes of the logarithm of a value. A step size is
#: used as long as it reduces the error.
STEPS = (0.02, 0.01, 0.005, 0.0025)


def overrides(start: list[float], x: list[float]) -> dict[str, str]:
    """Return the settings at a point of the search: `x` has the logarithmic changes of `start`."""
    values = iter(value * math.exp(step) for value, step in zip(start, x, strict=True))
    keys = {}
    for key, count in KEYS.items():
        some = [f"{next(values):.5g}" for _ in range(count)]
        keys[key] = f"[{', '.join(some)}]" if count > 1 else some[0]
    keys["buffer.background_depth"] = str(round(float(keys["buffer.background_depth"])))
    return keys


def errors(device: str, keys: dict[str, str], published: dict[str, float]) -> dict[str, float]:
    """Return the relative error of each published figure; empty for an invalid device."""
    try:
        found = dict(flashtwin.device(device, keys).measure(_core.Control()) or [])
    except FlashtwinError:
        return {}
    return {name: found[name] / value - 1 for name, value in published.items() if name in found}


def mean_error(found: dict[str, float], hand: dict[str, float]) -> float:
    """Return the mean absolute error.

    It is infinite if any figure is missing or has a larger error than in the hand-made profile.
    """
    if any(abs(found.get(name, math.inf)) > abs(error) for name, error in hand.items()):
        return math.inf
    return math.fsum(map(abs, found.values())) / len(found)


def search(
    measure: Callable[[list[float]], dict[str, float]], count: int, rounds: int, threads: int
) -> list[float]:
    """Return, of all tried logarithmic changes of `count` values, those with the least mean error."""
    at = [0.0] * count
    hand = measure(at)
    best = mean_error(hand, hand)
    with ThreadPoolExecutor(threads) as pool:
        for step in STEPS:
            for _ in range(rounds):
                before = best
                for column in range(count):
                    points = [[x + sign * step * (k == column) for k, x in enumerate(at)] for sign in (-1, 1)]
                    costs = [mean_error(found, hand) for found in pool.map(measure, points)]
                    if min(costs) < best:
                        best, at = min(costs), points[costs.index(min(costs))]
                print(f"step {step}: mean error {best:.3%}", file=sys.stderr, flush=True)
                if best == before:
                    break
    return at


def main() -> int:
    """Refit a profile and print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="nvme-tlc")
    parser.add_argument("--rounds", type=int, default=4, help="most passes over all values with a step")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    spec = flashtwin.device(args.device)
    measured = dict(spec.measure(_core.Control()) or [])
    published = {name: value for name, value in spec.published[1] if name in measured}
    start: list[float] = []
    for key in KEYS:
        text = re.search(rf"^{key.partition('.')[2]} = ([^#\n]*)", spec.to_toml(), re.MULTILINE)
        if text is None:
            parser.error(f"{args.device} has no {key}")
        value = ast.literal_eval(text[1].strip())
        start += value if isinstance(value, list) else [value]
    hand = errors(args.device, {}, published)
    best = search(
        lambda x: errors(args.device, overrides(start, x), published), len(start), args.rounds, args.threads
    )
    keys = overrides(start, best)
    found = errors(args.device, keys, published)
    for key, value in keys.items():
        print(f"{key} = {value}")
    print(f"{'':<20} {'published':>10} {'by hand':>9} {'refitted':>9}")
    for name in hand:
        print(f"{name:<20} {published[name]:>10g} {hand[name]:>+9.2%} {found[name]:>+9.2%}")
    worse = sum(abs(found[name]) > abs(hand[name]) for name in hand)
    better = sum(abs(found[name]) < abs(hand[name]) for name in hand)
    print(f"of {len(hand)} figures {better} are better and {worse} worse")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
