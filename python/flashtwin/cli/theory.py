"""`flashtwin theory`."""

from __future__ import annotations

import argparse

from .._theory import theory
from .commands import summary_of
from .forms import Commands, new
from .grammar import add_device, add_json
from .options import add_set, overrides


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "theory",
        summary_of("theory"),
        """\
examples:
  flashtwin theory --device demo --load uniform:write=1
  flashtwin theory --device nvme-tlc --load zipf:theta=0.9,write=0.5 --set gc.victim=fifo
  flashtwin theory --device demo --load uniform:rate=2000 --set buffer.capacity=1MiB
  flashtwin theory --device demo --load uniform:write=1 --fill 0.9

Prints closed forms of write amplification by victim rule, of the buffer's hit ratios, of the lifetime, and a
bound of the response time of reads. Each form that applies is printed with its assumptions, each other one
with the reason why it does not apply. `flashtwin run` prints measured values beside the forms that apply to
the run (docs/theory.md).
""",
        command=command,
    )
    add_device(p)
    p.add_argument("--load", required=True, metavar="SPEC", help="generated load, such as uniform:write=1")
    p.add_argument(
        "--fill",
        type=float,
        metavar="SHARE",
        help="live share of the blocks in use (default: that of the device)",
    )
    add_set(p)
    add_json(p, "the forms")


def command(args: argparse.Namespace) -> int:
    """Print the closed forms of write amplification, hit ratio, response time and lifetime."""
    found = theory(args.load, args.device, set=overrides(args), fill=args.fill)
    print(found.to_json() if args.json else repr(found))
    return 0
