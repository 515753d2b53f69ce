"""`flashtwin ctl`: commands to a server at work."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from ..control import ask
from .common import overrides

_New = Callable[[Any, str, str, str], argparse.ArgumentParser]


def add(
    commands: Any,  # noqa: ANN401 (argparse has no public name for it)
    new: _New,
) -> None:
    """Add the command."""
    p = new(
        commands,
        "ctl",
        "Give a command to a device being served: statistics, a power cut, a dead die, another policy.",
        """\
examples:
  flashtwin ctl /tmp/nbd.sock stats
  flashtwin ctl /tmp/nbd.sock power-cut --torn
  flashtwin ctl /tmp/nbd.sock fail 3
  flashtwin ctl /tmp/nbd.sock slow 3 --times 4
  flashtwin ctl /tmp/nbd.sock collect --die 0
  flashtwin ctl /tmp/nbd.sock kill-die 2
  flashtwin ctl /tmp/nbd.sock policy gcar-cflru --set buffer.window=0.1
  flashtwin ctl /tmp/nbd.sock disturb --latency-us 20000 --latency-share 0.01

Prints the answer as a line of JSON (docs/live.md).
""",
    )
    p.add_argument("socket", metavar="SOCKET", help="Unix socket that the device is served on")
    what = p.add_subparsers(metavar="COMMAND", dest="what", required=True)
    what.add_parser("stats", help="what the server says of itself at its end")
    cut = what.add_parser("power-cut", help="cut the power and give it back")
    cut.add_argument("--torn", action="store_true", help="pages may be lost in part")
    for name, does in (("fail", "a member of an array fails"), ("replace", "a new one takes its place")):
        what.add_parser(name, help=does).add_argument("member", type=int, metavar="N", help="from 0")
    slow = what.add_parser(
        "slow",
        help="answers of a member of an array come so many times as late",
        description="A member of an array answers late from now on: each answer comes X times as late as it "
        "would. Hedged reads, rebuilding and policies meet it as they would such a drive.",
    )
    slow.add_argument("member", type=int, metavar="N", help="from 0")
    slow.add_argument(
        "--times", type=float, required=True, metavar="X", help="from 1, as fast as it is, to 1000"
    )
    collect = what.add_parser(
        "collect",
        help="dies collect a block each, now",
        description="Each die that is told collects one block (each plane where planes collect for "
        "themselves), however many are free. What holds nothing stale stays.",
    )
    _add_where(collect)
    dead = what.add_parser(
        "kill-die",
        help="a die is dead from now on: what lies there cannot be read",
        description="What lies on the die cannot be read (EIO) until it is written again, which is on "
        "another die, or trimmed. Writes go on while there is room. Not in arrays: have a member fail.",
    )
    dead.add_argument("die", type=int, metavar="N", help="from 0")
    policy = what.add_parser(
        "policy",
        help="another policy governs the buffer from now on",
        description="The new policy begins with the pages that the old one held, in the order in which "
        "that would have evicted them. Dirty pages stay. Keys that are not set have their defaults.",
    )
    policy.add_argument("name", metavar="NAME", help="see flashtwin policy list")
    policy.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of it, as in buffer.window=0.1"
    )
    wrong = what.add_parser("disturb", help="let things go wrong from now on; without options nothing does")
    wrong.add_argument(
        "--latency-us",
        type=int,
        default=0,
        metavar="N",
        help="answers come so much later, in the device's time",
    )
    wrong.add_argument(
        "--latency-share", type=float, default=1.0, metavar="S", help="the share of answers that do (all)"
    )
    wrong.add_argument(
        "--read-error-share", type=float, default=0.0, metavar="S", help="the share of reads that fail (EIO)"
    )
    what.add_parser("stop", help="a clean stop")
    p.set_defaults(command=command)


def _add_where(p: argparse.ArgumentParser) -> None:
    p.add_argument("--member", type=int, metavar="N", help="of an array, that member, from 0 (all)")
    p.add_argument("--die", type=int, metavar="N", help="that die, from 0 (all)")


def command(args: argparse.Namespace) -> int:
    """Give the command and print the answer."""
    known = ("torn", "member", "times", "die", "name", "latency_us", "latency_share", "read_error_share")
    how = {key: getattr(args, key) for key in known if hasattr(args, key)}
    if args.what == "policy":
        how["set"] = overrides(args.set)
    print(json.dumps(ask(args.socket, args.what, **how)))
    return 0
