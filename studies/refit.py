"""Refits the profile of a commercial drive to its published figures, beside the profile made by hand.

    python studies/refit.py --device nvme-tlc --generations 40

CMA-ES starts from the profile of the package and searches for one that is worse in no published figure.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import cma

import flashtwin
from flashtwin import _core
from flashtwin.errors import FlashtwinError

#: Keys that are refitted, with the number of values of each.
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
#: Errors up to this share are as good as none.
FLOOR = 0.002
#: Spread of the search: logarithms of all values.
SIGMA = 0.002


def overrides(start: list[float], x: list[float]) -> dict[str, str]:
    """Return the keys at a point of the search."""
    values = iter(value * math.exp(step) for value, step in zip(start, x, strict=True))
    keys = {}
    for key, count in KEYS.items():
        some = [f"{next(values):.5g}" for _ in range(count)]
        keys[key] = f"[{', '.join(some)}]" if count > 1 else some[0]
    keys["buffer.background_depth"] = str(round(float(keys["buffer.background_depth"])))
    return keys


def errors(device: str, keys: dict[str, str], published: dict[str, float]) -> dict[str, float]:
    """Return the error of each published figure as a share of it; nothing for an invalid device."""
    try:
        found = dict(flashtwin.device(device, keys).measure(_core.Control()) or [])
    except FlashtwinError:
        return {}
    return {name: found[name] / value - 1 for name, value in published.items() if name in found}


def main() -> int:
    """Refit a profile and print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="nvme-tlc")
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
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

    def cost(x: list[float]) -> float:
        found = errors(args.device, overrides(start, x), published)
        if not found:
            return 1e9
        ratios = [abs(found[name]) / max(FLOOR, abs(hand[name])) for name in hand]
        return math.fsum(max(0.0, ratio - 1) ** 2 for ratio in ratios) + 0.01 * math.fsum(ratios)

    search = cma.CMAEvolutionStrategy(
        [0.0] * len(start), SIGMA, {"seed": args.seed, "verbose": -9, "maxiter": args.generations}
    )
    with ThreadPoolExecutor(args.threads) as pool:
        while not search.stop():
            points = search.ask()
            search.tell(points, list(pool.map(cost, points)))
            print(f"generation {search.countiter}: {search.best.f:.3f}", file=sys.stderr, flush=True)
    best = list(search.best.x) if search.best.f < cost([0.0] * len(start)) else [0.0] * len(start)
    keys = overrides(start, best)
    found = errors(args.device, keys, published)
    for key, value in keys.items():
        print(f"{key} = {value}")
    worse = 0
    print(f"{'':<20} {'published':>10} {'by hand':>9} {'refitted':>9}")
    for name in hand:
        worse += abs(found[name]) > max(FLOOR, abs(hand[name]))
        print(f"{name:<20} {published[name]:>10g} {hand[name]:>+9.1%} {found[name]:>+9.1%}")
    print(f"worse in {worse} of {len(hand)} figures")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
