"""`flashtwin lifetime`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flashtwin

from .._support.files import write_text
from ..errors import FlashtwinError
from ..options import WorkloadOptions
from .commands import summary_of
from .common import ProgressBar, note, run_arguments
from .forms import Commands, new
from .grammar import add_json, add_options, add_workload


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "lifetime",
        summary_of("lifetime"),
        """\
examples:
  flashtwin lifetime trace.csv.gz --device nvme-tlc
  flashtwin lifetime trace.csv.gz --device nvme-tlc --size 1T --over-provisioning 7%,28%
  flashtwin lifetime trace.csv.gz --device qlc --repeat 20 --repeat-shift 1G
  flashtwin lifetime --workload zipf:theta=0.9,write=1,requests=1e6 --device sata-tlc

The workload is repeated until write amplification no longer changes from pass to pass, for at least 1 and at
most 10 drive writes. Over-provisioning is in percent of the exported capacity, as in data sheets. The rated
erases are those of the device (wear.rated_erases).
""",
        command=command,
    )
    add_workload(p)
    add_options(p, WorkloadOptions, of_recordings=True)
    p.add_argument("--policy", metavar="NAME", help="buffer policy, such as cflru or cflru:window=0.5")
    p.add_argument(
        "--over-provisioning",
        default="",
        metavar="A%,B%,...",
        help="reserves to compare, such as 7%%,28%% (default: that of the device)",
    )
    g = p.add_argument_group("output")
    add_json(g, "the lifetimes")
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for the lifetimes")


def command(args: argparse.Namespace) -> int:
    """Measure how long a drive lasts under a workload."""
    arguments = run_arguments(args, WorkloadOptions)
    reserves = [_percent(text) for text in args.over_provisioning.split(",") if text.strip()]
    with ProgressBar() as bar:
        found = flashtwin.lifetime(
            **arguments, over_provisioning=reserves, policy=args.policy, begin=note, progress=bar
        )
    print(found.to_json() if args.json else found)
    if args.output:
        write_text(Path(args.output), found.to_json() + "\n", "the lifetimes")
    return 0


def _percent(text: str) -> float:
    try:
        return float(text.strip().removesuffix("%"))
    except ValueError:
        message = f"--over-provisioning: found {text.strip()!r}; must be percent, as in 7%,28%"
        raise FlashtwinError(message) from None
