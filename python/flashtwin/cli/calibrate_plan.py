"""`flashtwin calibrate plan` and `flashtwin calibrate check`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .._devices import device
from .._support import terminal, words
from .._support.sizing import read as read_size
from ..calibrate import counter_plan, loads, plan
from ..calibrate.modelled import measure
from ..calibrate.results import read_results
from ..errors import FlashtwinError
from .forms import Commands, new
from .grammar import add_json

#: Default of --bound: the largest error in percent with which a figure passes.
BOUND_PERCENT = 20.0


def add(commands: Commands) -> None:
    """Add the commands."""
    p = new(
        commands,
        "plan",
        "Write the experiments on a drive: jobs of fio and a script that runs them.",
        """\
examples:
  flashtwin calibrate plan --target /dev/nvme0n1 -o plan
  flashtwin calibrate plan --target /dev/nvme0n1 --read-only -o plan
  flashtwin calibrate plan --target /mnt/disk/test.bin --size 4G -o plan
  flashtwin calibrate plan --target 'nbd+unix:///?socket=/tmp/nbd.sock' --size 1G --dilation 10 -o plan

The measurement is done by plan/run.sh. It confirms before it overwrites the target, rejects mounted or
partitioned devices, and resumes after an interruption. It needs fio, and root for a device. Pass
plan/results to `calibrate fit`.
""",
        command=run_plan,
    )
    p.add_argument(
        "--target", required=True, metavar="PATH", help="block device, a file on the drive, or an NBD URI"
    )
    p.add_argument("--size", metavar="BYTES", help="bytes of the target to use, such as 4G (default: all)")
    p.add_argument("-o", "--output", required=True, metavar="DIR", help="directory for the plan")
    p.add_argument(
        "--counters",
        action="store_true",
        help="only writes between readings of the drive's counters, for calibrate counters",
    )
    p.add_argument("--read-only", action="store_true", help="only experiments that destroy nothing")
    p.add_argument(
        "--dilation",
        type=float,
        default=1.0,
        metavar="X",
        help="dilation of a device that flashtwin serves (default: 1)",
    )
    length = p.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="few requests per experiment (default)")
    length.add_argument("--full", action="store_true", help="more requests, for smaller intervals")
    p = new(
        commands,
        "check",
        "Compare a device file with results of the experiments.",
        """\
examples:
  flashtwin calibrate check mydrive.toml plan/results
  flashtwin calibrate check nvme-tlc plan/results --bound 10

The device runs those experiments for which there are results. The exit code is 1 if the error of a figure
exceeds the bound.
""",
        command=run_check,
    )
    p.add_argument("device", metavar="DEVICE", help="name of a device, or a device file")
    p.add_argument("results", metavar="RESULTS", help="directory with the results of the experiments")
    p.add_argument(
        "--bound",
        type=float,
        default=BOUND_PERCENT,
        metavar="PERCENT",
        help=f"largest error of a figure that passes (default: {BOUND_PERCENT:g})",
    )
    p.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="seed of the loads, where the results name none (default: 1)",
    )
    add_json(p, "the comparison")


def run_plan(args: argparse.Namespace) -> int:
    """Write a plan."""
    size = None if args.size is None else read_size(args.size)
    where = plan.target(args.target, size)
    if not args.dilation > 0:
        raise FlashtwinError(f"--dilation {args.dilation:g}: give a number above 0")
    if args.counters:
        if args.read_only or args.full or args.dilation != 1.0:
            raise FlashtwinError("--counters: without --read-only, --full and --dilation")
        takes_s = counter_plan.write(args.output, where)
        all_bytes = words.size(where.capacity_bytes)
        print(f"overwrites {all_bytes} of {where.path}, about {round(takes_s / 60)} minutes")
        print(f"next: {Path(args.output) / counter_plan.SCRIPT}")
        return 0
    takes_s = plan.write(args.output, where, read_only=args.read_only, full=args.full, dilation=args.dilation)
    found = plan.experiments(where, read_only=args.read_only, full=args.full)
    what = (
        "reads only" if args.read_only else f"overwrites {words.size(where.capacity_bytes)} of {where.path}"
    )
    print(f"{len(found)} experiments, {what}, about {max(1, round(takes_s / 60))} minutes")
    print(f"next: {Path(args.output) / plan.SCRIPT}")
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Compare a device with results."""
    if not args.bound > 0:
        raise FlashtwinError(f"--bound {args.bound:g}: give a number of percent above 0")
    results = read_results(Path(args.results), loads.rates_only())
    measured = results.figures
    names = {figure.split("/")[0] for figure in measured}
    spec = device(args.device)
    every = loads.every(spec.exported_bytes)
    compared = [load.as_measured(results.requests) for load in every if load.name in names]
    seed = args.seed if results.seed is None else results.seed
    modelled = measure(spec, compared, seed, in_order=results.in_order)
    rows = [
        (figure, value, modelled[figure], (modelled[figure] / value - 1) * 100)
        for figure, value in measured.items()
        if figure in modelled and value > 0
    ]
    if not rows:
        raise FlashtwinError(f"{args.results}: no results of the experiments of a plan")
    beyond = [row for row in rows if abs(row[3]) > args.bound]
    if args.json:
        keys = ("figure", "measured", "modelled", "error_percent")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=1))
    else:
        heads = ["figure", "measured", "modelled", "error"]
        shown = [[row[0], words.digits(row[1]), words.digits(row[2]), f"{row[3]:+.1f} %"] for row in rows]
        console = terminal.console()
        for table in terminal.tables(heads, shown, 1, console.width):
            console.print(table)
        sizes = sorted(abs(row[3]) for row in rows)
        print(
            f"{len(rows)} figures, median error {sizes[len(sizes) // 2]:.1f} %, "
            f"{len(beyond)} beyond {args.bound:g} %"
        )
    return 1 if beyond else 0
