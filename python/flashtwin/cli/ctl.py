"""`flashtwin ctl`: commands for a running server."""

from __future__ import annotations

import argparse
import json

from ..control import ask
from ..errors import FlashtwinError
from ..live_report import LiveReport
from .commands import summary_of
from .forms import Commands, new
from .options import overrides, pairs


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "ctl",
        summary_of("ctl"),
        """\
examples:
  flashtwin ctl /tmp/nbd.sock stats
  flashtwin ctl /tmp/nbd.sock power-cut --torn
  flashtwin ctl /tmp/nbd.sock fail 3
  flashtwin ctl /tmp/nbd.sock slow 3 --times 4
  flashtwin ctl /tmp/nbd.sock collect --die 0
  flashtwin ctl /tmp/nbd.sock kill-die 2
  flashtwin ctl /tmp/nbd.sock policy gcar-cflru --set buffer.window=0.1
  flashtwin ctl /tmp/nbd.sock set buffer.window=0.2
  flashtwin ctl /tmp/nbd.sock set gc.low_percent=5 gc.preemptible=true
  flashtwin ctl /tmp/nbd.sock placement status
  flashtwin ctl /tmp/nbd.sock disturb --latency-us 20000 --latency-share 0.01

Prints the response as a line of JSON, except for stats without --json (docs/live.md).
""",
        command=command,
    )
    p.add_argument("socket", metavar="SOCKET", help="Unix socket that the device is served on")
    what = p.add_subparsers(metavar="COMMAND", dest="what", required=True)
    stats = what.add_parser("stats", help="print the report so far")
    stats.add_argument("--json", action="store_true", help="print it as a line of JSON")
    cut = what.add_parser("power-cut", help="power loss, then power on")
    cut.add_argument("--torn", action="store_true", help="pages may be lost in part (default: whole pages)")
    _add_members(what)
    _add_dies(what)
    _add_policy(what)
    _add_disturb(what)
    _add_placement(what)
    what.add_parser("stop", help="stop the server cleanly")


def _add_members(what: Commands) -> None:
    for name, does in (
        ("fail", "fail a member of an array"),
        ("replace", "replace a failed member of an array"),
    ):
        what.add_parser(name, help=does).add_argument("member", type=int, metavar="N", help="number from 0")
    slow = what.add_parser(
        "slow",
        help="multiply the response times of a member of an array",
        description="Multiply the response times of one member by X. Hedged reads, rebuilds and policies see "
        "them as they would those of a slow drive.",
    )
    slow.add_argument("member", type=int, metavar="N", help="number from 0")
    slow.add_argument(
        "--times", type=float, required=True, metavar="X", help="factor from 1 (normal speed) to 1000"
    )


def _add_dies(what: Commands) -> None:
    collect = what.add_parser(
        "collect",
        help="collect one block on each die now",
        description="Each selected die collects one block (each plane where planes are collected "
        "separately), regardless of free blocks. Blocks without invalid pages are skipped.",
    )
    collect.add_argument("--member", type=int, metavar="N", help="member of an array, from 0 (default: all)")
    collect.add_argument("--die", type=int, metavar="N", help="die, from 0 (default: all)")
    dead = what.add_parser(
        "kill-die",
        help="make a die fail permanently: its pages cannot be read",
        description="Pages on the die cannot be read (EIO) until they are trimmed or written again, to "
        "another die. Writes continue while there is room. Not for arrays: use fail instead.",
    )
    dead.add_argument("die", type=int, metavar="N", help="number from 0")


def _add_policy(what: Commands) -> None:
    policy = what.add_parser(
        "policy",
        help="replace the buffer policy",
        description="The new policy starts with the buffered pages in the old policy's eviction order. "
        "Dirty pages stay in the buffer. Keys that are not set have their defaults.",
    )
    policy.add_argument("name", metavar="NAME", help="see flashtwin policy list")
    policy.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="key of the policy, such as buffer.window=0.1",
    )
    keys = what.add_parser(
        "set",
        help="change keys of the buffer policy and of garbage collection",
        description="Keys of the present policy, gc.low_percent, gc.idle_percent and gc.preemptible; all "
        "other keys need a restart. A new policy with these keys replaces the old one, as by policy: its "
        "ghosts and counters begin anew. Keys that are not given keep their values.",
    )
    keys.add_argument(
        "set", nargs="+", metavar="KEY=VALUE", help="as in buffer.window=0.2 or gc.preemptible=true"
    )


def _add_placement(what: Commands) -> None:
    placement = what.add_parser(
        "placement",
        help="placement handles of a device that writes by units",
        description="status: id, handle and bytes left in the unit of each placement handle. log: log "
        "pages 20h to 23h. update ID...: close the units of these ids as they are.",
    )
    placement.add_argument("action", choices=["status", "log", "update"], help="status, log or update")
    placement.add_argument("ids", nargs="*", type=int, metavar="ID", help="placement ids of an update")


def _add_disturb(what: Commands) -> None:
    wrong = what.add_parser("disturb", help="inject latency and read errors; without options, none")
    wrong.add_argument(
        "--latency-us",
        type=int,
        default=0,
        metavar="N",
        help="extra latency per request (us, device time; default: 0)",
    )
    wrong.add_argument(
        "--latency-share",
        type=float,
        default=1.0,
        metavar="S",
        help="fraction of requests delayed (default: 1.0)",
    )
    wrong.add_argument(
        "--read-error-share",
        type=float,
        default=0.0,
        metavar="S",
        help="fraction of reads that fail with EIO (default: 0.0)",
    )


def command(args: argparse.Namespace) -> int:
    """Send the command and print the response."""
    known = ("torn", "member", "times", "die", "name", "latency_us", "latency_share", "read_error_share")
    how = {key: getattr(args, key) for key in known if hasattr(args, key)}
    if args.what == "policy":
        how["set"] = overrides(args)
    elif args.what == "set":
        how["keys"] = pairs("set", "KEY=VALUE, as in buffer.window=0.2", args.set)
    what = args.what
    if what == "placement":
        what = f"placement-{args.action}"
        if (args.action == "update") != bool(args.ids):
            raise FlashtwinError("placement: update takes placement ids, status and log none")
        if args.ids:
            how["ids"] = args.ids
    answer = json.dumps(ask(args.socket, what, **how))
    if args.what == "stats" and not args.json:
        report = LiveReport.read(answer)
        print(f"{report}\n{'now':<9}{report.waiting} requests in flight, {report.dirty_pages} dirty pages")
    else:
        print(answer)
    return 0
