"""Parts of the grammar that several commands share.

Help texts explain by examples. Values of options are checked by the library, not by the grammar.
"""

from __future__ import annotations

import argparse

from .. import _core
from .._devices import DEFAULT_DEVICE
from . import options


def add_workload(p: argparse.ArgumentParser) -> None:
    """Add the argument for a trace or a generated load."""
    p.add_argument(
        "trace",
        nargs="?",
        metavar="TRACE",
        help="trace file, or - for standard input; plain, .gz or .zst, Parquet or Arrow",
    )
    p.add_argument(
        "--workload",
        metavar="SPEC",
        help="generated load instead of a trace, such as uniform:write=0.8,requests=1e6",
    )
    add_trace_options(p)


def add_trace_options(p: argparse.ArgumentParser) -> None:
    """Add the options of the trace readers."""
    g = p.add_argument_group("trace format (default: detected from the file)")
    g.add_argument("--format", metavar="NAME", help=f"trace format: {', '.join(_core.trace_formats())}")
    g.add_argument(
        "--columns",
        metavar="KEY=COLUMN[:UNIT],...",
        help="columns of a table (text, Parquet, Arrow), such as "
        "time=ts:us,offset=lba:sectors,size=len:bytes,op=type; codes of op: op=flag:write=2a|8a:trim=42",
    )
    g.add_argument("--time-unit", metavar="UNIT", help="unit of the time column: s, ms, us, filetime, ns, ps")
    g.add_argument(
        "--address-unit",
        metavar="UNIT",
        help="unit of the address column: bytes, sectors (512), pages (4096), or a number of bytes",
    )
    g.add_argument(
        "--event", metavar="D|Q", help="blktrace events: issued to the driver (D, default) or queued (Q)"
    )
    g.add_argument(
        "--volumes", metavar="HOW", help="layout of several disks: end-to-end (default), overlay, only:NAME"
    )
    g.add_argument(
        "--addresses",
        metavar="HOW",
        help="as-is (default), or compact: remove untouched parts of the address space",
    )
    g.add_argument(
        "--max-bad-lines", type=int, metavar="N", help="number of unreadable lines to skip (default: 0)"
    )
    g.add_argument("--reorder-window", type=int, metavar="N", help="reorder window, in requests")


def add_device(p: argparse.ArgumentParser, *, of_recordings: bool = False) -> argparse._ActionsContainer:
    """Add `--device` in a group, and return the group.

    If `of_recordings` is true, there is no default device, because a recording determines the device.
    """
    g = p.add_argument_group("device")
    own = "; of a recording, its own with its state" if of_recordings else ""
    g.add_argument(
        "--device",
        default=None if of_recordings else DEFAULT_DEVICE,
        metavar="NAME|FILE",
        help=f"device name or file, see flashtwin device list (default: {DEFAULT_DEVICE}{own})",
    )
    return g


def add_workers(p: argparse.ArgumentParser) -> None:
    """Add `--threads` and `--dask`."""
    who = p.add_mutually_exclusive_group()
    who.add_argument("--threads", type=int, metavar="N", help="runs at a time (default: number of cores)")
    who.add_argument(
        "--dask",
        metavar="WHERE",
        help="run on Dask: an address, local:WORKERS, ssh:HOST,HOST or slurm:JOBS",
    )


def add_options(p: argparse.ArgumentParser, kind: type, *, of_recordings: bool = False) -> None:
    """Add the device and the options of `kind`."""
    options.add(p, kind, {"device": add_device(p, of_recordings=of_recordings)})


def add_json(p: argparse._ActionsContainer, what: str) -> None:
    """Add `--json`."""
    p.add_argument("--json", action="store_true", help=f"print only {what} on standard output, as JSON")
