"""`flashtwin calibrate fit` and `flashtwin calibrate measure`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import FlashtwinError
from .._devices import device
from ..calibrate import loads
from ..calibrate.device_file import write_device
from ..calibrate.fit import Calibration, fit
from ..calibrate.host import latency_us, with_host
from ..calibrate.modelled import save_results
from ..calibrate.page import write_report
from ..calibrate.results import read_results
from .common import ProgressLines, note
from .forms import Commands, new
from .grammar import add_device
from .options import add_set, overrides


def add(commands: Commands) -> None:
    """Add the commands."""
    p = new(
        commands,
        "fit",
        "Fit a device file to the results of the experiments.",
        """\
examples:
  flashtwin calibrate fit results -o mydrive.toml --report fit.html
  flashtwin calibrate fit results -o mydrive.toml --generations 20 --threads 4

Closed-form estimates are followed by a joint refinement. An interrupted fit continues when it is
started again. Needs the extra packages: pip install 'flashtwin[calibrate]'.
""",
        command=run_fit,
    )
    p.add_argument("results", metavar="RESULTS", help="directory with the results of the experiments")
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="device file to write")
    p.add_argument("--report", metavar="FILE", help="HTML page with measured and modelled figures")
    p.add_argument(
        "--steps",
        type=int,
        default=12,
        metavar="N",
        help="maximum number of linear steps; 0 keeps the closed-form estimates (default: 12)",
    )
    p.add_argument(
        "--generations",
        type=int,
        default=0,
        metavar="N",
        help="generations of CMA-ES after the linear steps (default: 0)",
    )
    p.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="seed of the search, and of loads without a seed in the results (default: 1)",
    )
    p.add_argument(
        "--threads", type=int, default=1, metavar="N", help="devices to evaluate at a time (default: 1)"
    )
    p.add_argument(
        "--host",
        metavar="RESULTS",
        help="results of the device `instant`, whose latency of a 4 KiB read is subtracted",
    )
    p = new(
        commands,
        "measure",
        "Run the experiments on a device of flashtwin, in virtual time.",
        """\
examples:
  flashtwin calibrate measure --device my.toml -o results

The results are in the form of fio's, so that a fit can be tried without a drive.
""",
        command=run_measure,
    )
    add_set(add_device(p))
    p.add_argument("-o", "--output", required=True, metavar="DIR", help="directory for the results")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the loads (default: 1)")
    p.add_argument(
        "--length",
        type=int,
        default=loads.TIMES,
        metavar="N",
        help=f"requests for each one of a quick plan (default: {loads.TIMES})",
    )


def run_measure(args: argparse.Namespace) -> int:
    """Run the experiments."""
    spec = device(args.device, overrides(args))
    every = loads.every(spec.exported_bytes)
    save_results(spec, every, Path(args.output), seed=args.seed, times=args.length, said=note)
    print(f"{len(every)} experiments: {args.output}")
    return 0


def run_fit(args: argparse.Namespace) -> int:
    """Fit a device file."""
    if min(args.steps, args.generations, args.seed - 1, args.threads - 1) < 0:
        raise FlashtwinError(
            "--generations, --seed, --threads: give 0 or more generations, 1 or more of the others"
        )
    folder = Path(args.results)
    results, host_us = read_results(folder, loads.rates_only()), 0.0
    if args.host is not None:
        host = read_results(Path(args.host), loads.rates_only()).figures
        host_us = latency_us(host, args.host)
        results = with_host(results, host)
    lines = ProgressLines()
    found = fit(
        results,
        steps=args.steps,
        generations=args.generations,
        seed=args.seed,
        threads=args.threads,
        host_us=host_us,
        journal=folder / "fit.journal",
        on_progress=lambda phase, cost: lines.say(lambda: f"{phase}: cost {cost:.3f}"),
    )
    write_device(found, Path(args.output))
    if args.report:
        write_report(found, Path(args.output).stem, args.report)
    _print(found)
    print(f"device file: {args.output}")
    if args.report:
        print(f"report: {args.report}")
    return 0


def _print(found: Calibration) -> None:
    """Print the parameters and the errors."""
    for name, value in found.refined.values.items():
        spread = found.spread(name)
        interval = "" if spread is None else f", +-{spread:.1%}"
        print(f"{name:<15} {value:>12.5g}  {found.standing(name)}{interval}")
    kinds = {load.name: "held out" for load in loads.held_out()}
    kinds |= {load.name: "measured only" for load in loads.measured_only(found.profile.capacity_bytes)}
    for title in ("fitted", *dict.fromkeys(kinds.values())):
        sizes = sorted(
            abs(found.relative_error(name))
            for name in found.measured
            if kinds.get(name.split("/")[0], "fitted") == title
        )
        if sizes:
            median, far = sizes[len(sizes) // 2], sizes[len(sizes) * 9 // 10]
            print(f"{title}: {len(sizes)} figures, median error {median:.1%}, 90 % of them within {far:.1%}")
