"""`flashtwin calibrate fit` and `flashtwin calibrate measure`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import FlashtwinError
from .._devices import device
from .._support.files import write_text
from ..calibrate import loads
from ..calibrate.device_file import write_device
from ..calibrate.fit import Calibration, fit
from ..calibrate.host import latency_us, with_host
from ..calibrate.modelled import save_results
from ..calibrate.page import write_report
from ..calibrate.results import read_results
from .common import ProgressBar, ProgressLines, note
from .forms import Commands, new
from .grammar import add_device
from .options import add_set, overrides

#: Defaults of the options.
_STEPS = 12
_EVALUATIONS = 200
#: Options that apply only to RESULTS, and options that apply only to --table.
_OF_RESULTS = ("steps", "generations", "host")
_OF_TABLE = ("device", "set", "drive", "rows", "evaluations", "repeats")


def add(commands: Commands) -> None:
    """Add the commands."""
    p = new(
        commands,
        "fit",
        "Fit a device file to the results of the experiments, or to a table of measurements.",
        """\
examples:
  flashtwin calibrate fit results -o mydrive.toml --report fit.html
  flashtwin calibrate fit results -o mydrive.toml --generations 20 --threads 4
  flashtwin calibrate fit --table latency_under_load.csv --drive h0 --device fit-pe8110 \\
    --rows 'h0/latency/10;h0/latency/70;h0/latency/130' --repeats 4 -o mydrive.toml

With RESULTS, parameters are first estimated in closed form and then refined together. An interrupted fit
continues when it is started again.

With --table, the times of --device are multiplied by factors until its response times and rates under
the loads of the rows are those of the table. The structure of the device is not changed. All other rows of
the drive are held out and compared at the end. Both forms need the extra packages: pip install
'flashtwin[calibrate]'.
""",
        command=run_fit,
    )
    p.add_argument(
        "results", nargs="?", metavar="RESULTS", help="directory with the results of the experiments"
    )
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="device file to write")
    p.add_argument("--report", metavar="FILE", help="HTML page with measured and modelled figures")
    p.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help=f"maximum number of linear steps; 0 keeps the closed-form estimates (default: {_STEPS})",
    )
    p.add_argument(
        "--generations",
        type=int,
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
    g = p.add_argument_group("fit to a table")
    g.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="FILE",
        help="CSV file of `device check --against` with response times; may be repeated",
    )
    g.add_argument("--device", metavar="DEVICE", help="device to begin with, a name or a TOML file")
    add_set(g)
    g.add_argument(
        "--drive",
        metavar="KEY",
        help="drive, as the names of its rows begin (default: the drive that the device is fitted to)",
    )
    g.add_argument(
        "--rows",
        metavar="A;B",
        help='rows to fit, as patterns such as "*/latency/50"; the others are held out '
        "(default: those that the device is fitted to, or all)",
    )
    g.add_argument(
        "--evaluations",
        type=int,
        metavar="N",
        help=f"devices that a fit simulates (default: {_EVALUATIONS})",
    )
    g.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help="number of fits, each with another seed; values that a further fit would find again within "
        "10 %% are called identified (default: 1)",
    )
    p = new(
        commands,
        "measure",
        "Run the experiments on a device of flashtwin, in virtual time.",
        """\
examples:
  flashtwin calibrate measure --device my.toml -o results

Results have the form of fio's, so that `calibrate fit` can be tried without a drive.
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
    """Fit a device file to results or to a table."""
    if (args.results is None) == (not args.table):
        raise FlashtwinError("give either RESULTS or --table FILE")
    ignored = _OF_RESULTS if args.table else _OF_TABLE
    for option in ignored:
        if getattr(args, option) not in (None, []):
            kind = "RESULTS" if args.table else "--table"
            raise FlashtwinError(f"--{option} has an effect only with {kind}")
    if min(args.steps or 0, args.generations or 0, args.seed - 1, args.threads - 1) < 0:
        raise FlashtwinError(
            "--generations, --seed, --threads: give 0 or more generations, 1 or more of the others"
        )
    return _fit_table(args) if args.table else _fit_results(args)


def _fit_table(args: argparse.Namespace) -> int:
    """Fit the times of a device to rows of tables of measurements. Then compare all rows of the drive."""
    from .._drives import check_device
    from .._drives.fit_times import TIMED_ROWS, fit_times
    from .._drives.page import write_html

    if args.device is None:
        raise FlashtwinError("--table needs --device, the device whose times are fitted")
    evaluations, repeats = args.evaluations or _EVALUATIONS, args.repeats or 1
    if min(evaluations, repeats) < 1:
        raise FlashtwinError("--evaluations, --repeats: give 1 or more")
    lines = ProgressLines()
    found = fit_times(
        args.device,
        args.table,
        set=overrides(args),
        drive=args.drive,
        rows=args.rows,
        evaluations=evaluations,
        seeds=range(args.seed, args.seed + repeats),
        threads=args.threads,
        on_evaluated=lambda done, of, cost: lines.say(lambda: f"{done} of {of} devices: cost {cost:.3f}"),
    )
    output = Path(args.output)
    write_text(output, found.to_toml(output.stem), "the device file")
    if found.interrupted:
        note("interrupted: the device file has the best values so far")
    for key, values in found.values.items():
        print(f"{key:<28} {', '.join(f'{value:g}' for value in values):<24} {found.standing(key)}")
    print(f"cost: {found.start_cost:.3f} before, {found.cost:.3f} after")
    print(f"device file: {output}")
    if found.interrupted:
        return 130
    with ProgressBar() as bar:
        check = check_device(
            output, args.table, rows=TIMED_ROWS, threads=args.threads, progress=bar, fit=found.fit
        )
    print(check)
    if args.report:
        write_html(check.cells, args.report, f"{check.device}: errors beside measured drives")
        print(f"report: {args.report}")
    return 0


def _fit_results(args: argparse.Namespace) -> int:
    """Fit a device file to the results of the experiments."""
    folder = Path(args.results)
    results, host_us = read_results(folder, loads.rates_only()), 0.0
    if args.host is not None:
        host = read_results(Path(args.host), loads.rates_only()).figures
        host_us = latency_us(host, args.host)
        results = with_host(results, host)
    lines = ProgressLines()
    found = fit(
        results,
        steps=_STEPS if args.steps is None else args.steps,
        generations=args.generations or 0,
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
