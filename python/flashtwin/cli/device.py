"""`flashtwin device list`, `show`, `check` and `import`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import flashtwin

from .._support.files import write_text
from ..errors import FlashtwinError
from .commands import summary_of
from .common import ProgressBar
from .forms import Commands, family, new
from .grammar import add_json
from .options import add_set, overrides


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "device", summary_of("device"))
    p = new(inner, "list", "List the devices that come with flashtwin.", command=list_all)
    add_json(p, "them")
    p = new(
        inner,
        "show",
        "Print a device as TOML, ready to be saved and changed.",
        """\
examples:
  flashtwin device show demo > my.toml
  flashtwin device show demo --set buffer.policy=cflru
""",
        command=show,
    )
    p.add_argument("device", metavar="NAME|FILE")
    add_set(p)
    p = new(
        inner,
        "check",
        "Check device files, and compare devices with the published figures of their drives.",
        """\
examples:
  flashtwin device check my.toml
  flashtwin device check nvme-tlc
  flashtwin device check demo --measure --json
  flashtwin device check fit-pe8110 --against latency_under_load.csv --rows '*/latency/50'
  flashtwin device check fit-pe8110 --against latency_under_load.csv --report errors.html

--against runs the loads of a table of measurements on the device, and compares the figures (docs/drives.md).
""",
        command=check,
    )
    p.add_argument("devices", metavar="NAME|FILE", nargs="+")
    how = p.add_mutually_exclusive_group()
    how.add_argument(
        "--quick",
        action="store_true",
        help="check the files without measuring; with --against, shorter runs, whose errors are larger",
    )
    how.add_argument(
        "--measure", action="store_true", help="measure devices without published figures as well"
    )
    add_json(p, "what was measured")
    _add_against(p)
    p = new(
        inner,
        "import",
        "Turn a parameter file of DiskSim or MQSim into a device file, or a workload of MQSim into commands.",
        """\
examples:
  flashtwin device import ssd.parv -o mine.toml
  flashtwin device import ssdconfig.xml -o mine.toml
  flashtwin device import workload.xml --ssd ssdconfig.xml

A comment at each key names the original parameter. Parameters without a counterpart are listed on
standard error and at the end of the device file.
""",
        command=import_parameters,
    )
    p.add_argument("file", metavar="FILE", help="DiskSim .parv, or MQSim ssdconfig.xml or workload.xml")
    p.add_argument(
        "--ssd",
        metavar="FILE",
        help="ssdconfig.xml that a workload of MQSim runs on: commands start from its initial state",
    )
    p.add_argument("-o", "--output", metavar="FILE", help="file to write instead of standard output")


def _add_against(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("tables of measurements")
    g.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="TABLE",
        help="CSV file with measurements of drives; may be repeated",
    )
    g.add_argument(
        "--rows", metavar="A;B", help='rows to run, as patterns such as "*/latency/*" (default: all)'
    )
    g.add_argument(
        "--drive",
        metavar="KEY",
        help="rows of this drive, as their names begin (default: the drive that the device is fitted to)",
    )
    g.add_argument("--seed", type=int, default=1, metavar="N", help="seed of state and loads (default: 1)")
    g.add_argument("--threads", type=int, default=1, metavar="N", help="rows to run at a time (default: 1)")
    g.add_argument("-o", "--output", metavar="FILE", help="table of the figures: .parquet or .csv")
    g.add_argument(
        "--report",
        metavar="FILE",
        help="HTML page with errors, curves and commands; the figures are written as .parquet beside it",
    )
    add_set(p)


def _facts(spec: flashtwin.Spec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "backend": spec.backend,
        "members": spec.members,
        "chips": spec.chips,
        "exported_bytes": spec.exported_bytes,
        "raw_bytes": spec.raw_bytes,
        "buffer_bytes": spec.buffer_bytes,
        "policy": spec.policy,
        "description": spec.description,
    }


def list_all(args: argparse.Namespace) -> int:
    """List the devices that come with flashtwin."""
    specs = [flashtwin.device(name) for name in flashtwin.devices()]
    if args.json:
        print(json.dumps([_facts(spec) for spec in specs], indent=2))
        return 0
    for spec in specs:
        print(f"{spec.name:<15} {spec.description}\n{'':<15} {spec.in_words}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print a device as TOML."""
    spec = flashtwin.device(args.device, overrides(args))
    print(f"# {spec.in_words}\n{spec.to_toml()}", end="")
    return 0


def check(args: argparse.Namespace) -> int:
    """Check device files, up to the first wrong one. Measure devices that have published figures."""
    if args.against:
        return _check_against(args)
    from .._support.measurement import measure

    specs = [(name, flashtwin.device(name, overrides(args))) for name in args.devices]
    found = []
    for name, spec in specs:
        if not args.json:
            print(f"{name}: good: {spec.in_words}", flush=True)
        if spec.members:
            # What is published is of single drives.
            continue
        if args.measure or (spec.published[1] and not args.quick):
            found.append(measure(spec))
            if not args.json:
                print(found[-1])
    if args.json:
        print(json.dumps([measurement.as_dict() for measurement in found], indent=2))
    return 0


def _check_against(args: argparse.Namespace) -> int:
    """Run the loads of tables on a device."""
    if len(args.devices) != 1 or args.measure:
        raise FlashtwinError("--against compares one device with tables, without --measure")
    from .._drives import check_device

    with ProgressBar() as bar:
        found = check_device(
            args.devices[0],
            args.against,
            set=overrides(args),
            drive=args.drive,
            rows=args.rows,
            quick=args.quick,
            seed=args.seed,
            threads=args.threads,
            progress=bar,
        )
    print(found.to_json() if args.json else found)
    if args.output:
        found.write(args.output)
    if args.report:
        from .._drives.page import write_html

        write_html(found.cells, args.report, f"{found.device}: errors beside measured drives")
    return 0


def import_parameters(args: argparse.Namespace) -> int:
    """Convert a parameter file of another simulator to a device, or to the commands that run its loads."""
    from ..importing import import_file

    imported = import_file(args.file, args.ssd)
    if args.output:
        write_text(Path(args.output), imported.text, f"the imported {imported.kind}")
    else:
        print(imported.text, end="")
    for left_out in imported.left_out:
        print(f"without a counterpart: {left_out}", file=sys.stderr)
    return 0
