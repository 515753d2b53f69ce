"""`flashtwin pts`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from .. import FlashtwinError
from .._pts import pts
from ..plot.style import require
from .commands import summary_of
from .common import ProgressBar, note
from .forms import Commands, new
from .grammar import add_device, add_json
from .options import TIME, add_set, overrides, seconds


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "pts",
        summary_of("pts"),
        """\
examples:
  flashtwin pts --device demo
  flashtwin pts --device nvme-tlc --tests iops,latency --round 100ms -o nvme-tlc.pts
  flashtwin pts --device my.toml --round 60s

The drive is purged and preconditioned for each test. A test runs until five rounds are steady, at most 25
rounds. In the standard, a round takes a minute per access; times are virtual.
""",
        command=command,
    )
    add_set(add_device(p))
    p.add_argument(
        "--tests",
        default="wsat,iops,throughput,latency",
        metavar="A,B,...",
        help="tests to run: wsat, iops, throughput, latency (default: all)",
    )
    p.add_argument("--round", default="1s", metavar="TIME", help="virtual time of each access (default: 1s)")
    p.add_argument(
        "--queue-depth",
        type=int,
        default=32,
        metavar="N",
        help="requests in flight (default: 32; the latency test always uses 1)",
    )
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the addresses (default: 1)")
    g = p.add_argument_group("output")
    add_json(g, "all results")
    g.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="directory for report.md, its figures and report.json (default: DEVICE.pts)",
    )


def command(args: argparse.Namespace) -> int:
    """Run the tests and write their report."""
    # Plots are written at the end, but a missing package for them is reported at the start.
    require()
    span = re.fullmatch(TIME, args.round.replace(" ", ""))
    if span is None:
        raise FlashtwinError(f"--round {args.round}: give a span of time, as in 60s or 100ms")
    with ProgressBar() as bar:
        results = pts(
            args.device,
            which=[name.strip() for name in args.tests.split(",") if name.strip()],
            round_s=seconds(span[1], span[2]),
            queue_depth=args.queue_depth,
            set=overrides(args),
            seed=args.seed,
            progress=bar,
            said=note,
        )
    path = results.write(args.output or Path(f"{results.device}.pts"))
    if args.json:
        print(results.to_json())
    else:
        print(results)
        print(f"report: {path}")
    return 0
