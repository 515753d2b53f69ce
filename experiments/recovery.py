"""Recovery of hidden devices: drawn at random, measured, fitted blindly, compared on held-out loads.

    python experiments/recovery.py --first 101

Each device adds a row to a table. The row has

- the parts of the device;
- the number of held-out figures within their bounds if the hidden and the fitted device run the same requests
  (each figure from several runs together);
- the number of held-out figures within their bounds if the two devices run different requests (each figure
  from half of the runs);
- the number of undecided figures, the errors of which more runs might move across their bounds;
- the number of identified parameters (those that the measurements determine), and the wrong ones: the error
  exceeds 10 %, or only one of the two devices has the parameter.

The results of each device are kept in the results folder, so that an interrupted run continues.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import flashtwin
from flashtwin._devices import Spec
from flashtwin.calibrate import loads
from flashtwin.calibrate.device_file import write_device
from flashtwin.calibrate.figures import Figures
from flashtwin.calibrate.fit import Calibration, fit
from flashtwin.calibrate.modelled import Bench, percentiles, save_results
from flashtwin.calibrate.parameters import Profile, Values
from flashtwin.calibrate.results import read_results

CAPACITY_BYTES = 1 << 30
MEASURED_SEED = 7
#: First seed of the runs of held-out loads. Each run begins on a newly preconditioned device. If one device
#: ran all loads in succession, the collections of its dies could synchronise for millions of requests. Single
#: runs would then differ by more than the bounds.
HELD_OUT_SEED = 7
#: Numbers of runs of a load, which are tried in order. The next number is tried if the error of a figure
#: differs from its bound by only a few standard errors. Standard errors from few runs are unreliable.
#: Therefore, with fewer than SURE_RUNS, the next number is also tried if the standard error of the hidden
#: device alone exceeds a third of the bound.
RUNS = (4, 8, 16, 64, 256)
DECIDED = 2.0
SURE_RUNS = 64
#: Largest number of groups of runs. The standard error is computed from the differences between groups.
GROUPS = 8
#: Length of held-out experiments, as a multiple of their length in a quick plan. With it, p99.9 is known
#: within 20 %.
HELD_OUT_TIMES = 8
#: Bounds of the errors of held-out figures, by the ends of their names.
BOUNDS = {"mb_per_s": 0.05, "p50_us": 0.10, "p90_us": 0.10, "p95_us": 0.10, "p99_us": 0.10, "p99.9_us": 0.20}
ROW = "| device | parts | within bounds | other requests | undecided | identified | wrong |"


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


def recover(seed: int, level: int, device: Path, *, length: int, generations: int, threads: int) -> str:
    """Recover a device, write it as a device file, and return the results for its parameters.

    The measurement is `length` times as long as that of a quick plan.
    The last line of the results has the number of identified parameters, and those of them that are wrong.
    """
    hidden = draw(random.Random(seed), level)
    spec = Profile(hidden, CAPACITY_BYTES).spec()
    fitted_loads = [*loads.reads(), *loads.writes(spec.exported_bytes)]
    began, used = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        save_results(spec, fitted_loads, Path(folder), seed=MEASURED_SEED, times=length, said=lambda _: None)
        results = read_results(Path(folder), loads.rates_only())
    found = fit(results, generations=generations, threads=threads)
    lines = [
        f"device {seed}: cost {found.refined.cost:.2f}, {found.refined.evaluations} evaluations, "
        f"{time.monotonic() - began:.0f} s, {time.process_time() - used:.0f} s of processor time"
    ]
    lines += parameters(hidden, found)
    worst = sorted(found.measured, key=lambda name: -abs(found.relative_error(name)))[:6]
    lines += [
        f"  worst fitted: {name} {found.measured[name]:.4g}, modelled {found.modelled[name]:.4g}"
        for name in worst
    ]
    known, wrong = standing(hidden, found)
    write_device(found, device)
    return "\n".join([*lines, f"{known} | {', '.join(wrong) or '-'}"]) + "\n"


def judge(seed: int, level: int, device: Path, parameters: str, threads: int) -> tuple[list[str], bool]:
    """Compare a hidden device with its fitted one.

    Returns:
        Lines, the last of which is a row of the table; and whether all figures are within their bounds.
    """
    hidden = draw(random.Random(seed), level)
    spec = Profile(hidden, CAPACITY_BYTES).spec()
    lines = []
    within = apart = total = 0
    open_ = 0
    for load in loads.held_out():
        longer = load.longer(HELD_OUT_TIMES)
        true: list[Run] = []
        fitted: list[Run] = []
        for count in RUNS:
            true += runs(spec, longer, range(len(true), count), threads)
            fitted += runs(flashtwin.device(device), longer, range(len(fitted), count), threads)
            found = compared(true, fitted)
            undecided = [name for name, each in found.items() if each.is_undecided]
            is_vague = any(each.hidden_error > (bound(name) or 0) / 3 for name, each in found.items())
            if not undecided and (count >= SURE_RUNS or not is_vague):
                break
        half = len(true) // 2
        outside = [each for each in found.values() if each.is_beyond]
        for each in outside:
            mark = ", undecided" if each.is_undecided else ""
            lines.append(
                f"  beyond its bound{mark}: {each.name} {each.hidden:.4g}, modelled {each.fitted:.4g}, "
                f"{each.error:+.1%} +-{each.standard_error:.1%}, {len(true)} runs"
            )
        total += len(found)
        within += len(found) - len(outside)
        halves = compared(true[:half], fitted[half:])
        apart += len(halves) - sum(each.is_beyond for each in halves.values())
        open_ += len(undecided)
    parts = [part for part in ("buffer", "suspend", "slc") if part in hidden]
    cells = [
        str(seed),
        ", ".join(parts) or "-",
        f"{within} of {total}",
        f"{apart} of {total}",
        str(open_),
    ]
    lines.append(f"| {' | '.join([*cells, parameters])} |")
    return lines, within == total and parameters.endswith("| -")


@dataclass(frozen=True)
class Run:
    """A run of a load: its bandwidth, and the number of requests for each latency in ns."""

    experiment: str
    mb_per_s: float
    histograms: dict[str, Counter[int]]


def runs(spec: Spec, load: loads.Load, which: range, threads: int) -> list[Run]:
    """Return some runs of a load."""

    def run(number: int) -> Run:
        summary, histograms = Bench(spec, HELD_OUT_SEED + number).run(load)
        kinds = {kind: Counter(dict(histograms[kind])) for kind in ("read", "write")}
        return Run(load.name, summary["throughput"]["mb_per_s"], kinds)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, which))


def together(runs: list[Run]) -> Figures:
    """Return the mean bandwidth of several runs, and the percentiles of all their requests."""
    experiment = runs[0].experiment
    figures = {f"{experiment}/mb_per_s": statistics.fmean(run.mb_per_s for run in runs)}
    for kind in runs[0].histograms:
        every: Counter[int] = Counter()
        for run in runs:
            every.update(run.histograms[kind])
        for what, us in percentiles(sorted(every.items())).items():
            figures[f"{experiment}/{kind}.{what}"] = us
    return figures


@dataclass(frozen=True)
class Compared:
    """A figure of a hidden device, and the same figure of the fitted device.

    Attributes:
        name: name of the figure.
        hidden: value of the hidden device.
        fitted: value of the fitted device.
        hidden_error: standard error of the hidden device's value, as a fraction of the value.
        standard_error: standard error of the ratio of the two values.
    """

    name: str
    hidden: float
    fitted: float
    hidden_error: float
    standard_error: float

    @property
    def error(self) -> float:
        """Return the error as a fraction."""
        return self.fitted / self.hidden - 1

    @property
    def is_beyond(self) -> bool:
        """Whether the error exceeds its bound."""
        return off(self.hidden, self.fitted, self.name)

    @property
    def is_undecided(self) -> bool:
        """Whether more runs might move the error across its bound."""
        return abs(abs(self.error) - (bound(self.name) or 0)) < DECIDED * self.standard_error


def compared(true: list[Run], fitted: list[Run]) -> dict[str, Compared]:
    """Return the figures that have bounds, by name. Standard errors are computed from groups of runs."""
    count = min(GROUPS, len(true))
    groups = [(together(true[first::count]), together(fitted[first::count])) for first in range(count)]
    every, modelled = together(true), together(fitted)
    found = {}
    for name in (name for name in every if bound(name)):
        hidden = [ours[name] for ours, _ in groups]
        ratios = [theirs[name] / ours[name] for ours, theirs in groups]
        own, both = (statistics.stdev(each) / math.sqrt(count) for each in (hidden, ratios))
        found[name] = Compared(name, every[name], modelled[name], own / statistics.fmean(hidden), both)
    return found


def bound(figure: str) -> float | None:
    """Return the largest permitted error of a figure, as a fraction; None if it has no bound."""
    what = figure.split("/")[1]
    return BOUNDS.get(what.split(".", 1)[-1] if "." in what else what)


def off(measured: float, modelled: float, figure: str) -> bool:
    """Whether the error of a figure exceeds its bound."""
    return abs(modelled / measured - 1) > (bound(figure) or math.inf)


def with_whole_blocks(values: Values, capacity_bytes: int) -> Values:
    """Return parameters whose reserve and SLC cache are rounded to whole blocks, as in a device."""
    keys = Profile(values, capacity_bytes).overrides()
    return values | {
        name: float(str(keys[key]))
        for name, key in (("reserve", "geometry.reserve_percent"), ("slc", "nand.pslc_percent"))
        if name in values
    }


def standing(hidden: Values, found: Calibration) -> tuple[int, list[str]]:
    """Return the number of identified parameters, and the names of those among them that are wrong."""
    capacity_bytes = found.profile.capacity_bytes
    true, fitted = (with_whole_blocks(each, capacity_bytes) for each in (hidden, found.profile.values))
    identified = [name for name in fitted if found.identified(name)]
    wrong = [
        name for name in identified if name not in true or abs(math.log(fitted[name] / true[name])) > 0.10
    ]
    # A parameter is also wrong if the fitted device lacks the part that it describes.
    wrong += [name for name in true if name not in fitted]
    return len(identified), wrong


def parameters(hidden: Values, found: Calibration) -> list[str]:
    """Return a line for each parameter."""
    capacity_bytes = found.profile.capacity_bytes
    true, fitted = (with_whole_blocks(each, capacity_bytes) for each in (hidden, found.profile.values))
    _, wrong = standing(hidden, found)
    lines = []
    for name in {**true, **fitted}:
        shown = [
            format(values[name], ".4g") if name in values else "-" for values in (true, found.first, fitted)
        ]
        half = found.spread(name) if name in fitted else None
        mark = " identified" if name in fitted and found.identified(name) else ""
        lines.append(
            f"  {name:<15} true {shown[0]:>9}  first {shown[1]:>9}  fitted {shown[2]:>9}"
            f"  +-{half or 0:.0%}{mark}{', WRONG' if name in wrong else ''}"
        )
    return lines


def main() -> int:
    """Recover some devices."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--devices", type=int, default=20)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument(
        "--length", type=int, default=2, help="length of the measurement, as a multiple of a quick plan"
    )
    parser.add_argument("--generations", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("out/recovery"), help="what is there is kept")
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    good = 0
    rows = []
    for seed in range(args.first, args.first + args.devices):
        device, place, row = (args.results / f"{seed}.{end}" for end in ("toml", "txt", "row"))
        if not place.exists():
            text = recover(
                seed,
                args.level,
                device,
                length=args.length,
                generations=args.generations,
                threads=args.threads,
            )
            place.write_text(text, encoding="utf-8")
        print(place.read_text(encoding="utf-8"), end="", flush=True)
        if not row.exists():
            known = place.read_text(encoding="utf-8").splitlines()[-1]
            lines, is_good = judge(seed, args.level, device, known, args.threads)
            text = "\n".join([*lines, "recovered" if is_good else "not recovered"]) + "\n"
            row.write_text(text, encoding="utf-8")
        print(row.read_text(encoding="utf-8"), end="", flush=True)
        lines = row.read_text(encoding="utf-8").splitlines()
        good += lines[-1] == "recovered"
        rows.append(lines[-2])
    print("\n".join([ROW, *rows]))
    print(f"{good} of {args.devices} devices recovered")
    return 0


if __name__ == "__main__":
    sys.exit(main())
