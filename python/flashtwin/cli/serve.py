"""`flashtwin serve`: its grammar and behaviour."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import signal
from types import FrameType

import flashtwin

from .._support import words
from ..options import StateOptions
from .commands import summary_of
from .common import ProgressBar, note
from .forms import Commands, new
from .grammar import add_options
from .options import add_one, read

#: Number of files that an idle server has open, and number of files per connection. If the limit of open
#: files permits fewer than `_FEW` connections, a warning is printed.
_OWN_FILES, _FILES, _FEW = 32, 3, 300


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "serve",
        summary_of("serve"),
        """\
examples:
  flashtwin serve --device nvme-tlc --size 16G
  flashtwin serve --device sata-tlc --size 16G --store disk.img --socket /tmp/nbd.sock
  flashtwin serve --device nvme-tlc --dilation 10 --policy gcar-lru
  flashtwin serve --device nvme-fdp --size 16G --placement mine.py:BySize --victim greedy@noisy

Serves until Ctrl-C or SIGTERM, then reports response times and lateness. Needs nbdkit (docs/live.md).
""",
        command=command,
    )
    add_options(p, StateOptions)
    p.add_argument(
        "--policy",
        metavar="NAME",
        help="buffer policy of flashtwin, such as cflru or cflru:window=0.5 (see flashtwin policy list); a "
        "class of your own cannot be served (default: that of the device)",
    )
    for name in ("placement", "victim"):
        add_one(p, name)
    g = p.add_argument_group("block device")
    g.add_argument(
        "--size", metavar="SIZE", help="size that clients see, such as 16G (default: the whole device)"
    )
    g.add_argument(
        "--store",
        default="memory",
        metavar="memory|none|FILE",
        help="data store; a file keeps the flash state as well (default: memory)",
    )
    where = g.add_mutually_exclusive_group()
    where.add_argument(
        "--socket", metavar="PATH", help="Unix socket to listen on (default: in a new directory)"
    )
    where.add_argument(
        "--tcp", type=int, metavar="PORT", help="TCP port on loopback; on all interfaces with TLS"
    )
    g.add_argument("--tls-certificates", metavar="DIR", help="require TLS, see nbdkit-tls(1)")
    g.add_argument("--tls-psk", metavar="FILE", help="require TLS with these keys, see nbdkit-tls(1)")
    g.add_argument(
        "--dilation",
        type=float,
        default=1.0,
        metavar="X",
        help="slow device time down by a factor of X (default: 1)",
    )
    g.add_argument("--record", metavar="FILE", help="record client requests as a CSV trace for flashtwin run")
    g.add_argument(
        "--metrics",
        type=int,
        metavar="PORT",
        help="port for the live page and Prometheus metrics, on loopback; 0: any free port",
    )
    g.add_argument(
        "--json",
        action="store_true",
        help="print address and final report as one line of JSON each",
    )


def command(args: argparse.Namespace) -> int:
    """Serve until a stop is requested."""
    signals = _Signals()
    signal.signal(signal.SIGTERM, signals)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signals)
    server = None
    try:
        with ProgressBar() as bar:
            server = flashtwin.serve(
                args.device,
                size=args.size,
                policy=args.policy,
                placement=args.placement,
                victim=args.victim,
                **read(args, StateOptions),
                store=args.store,
                socket=args.socket,
                tcp=args.tcp,
                tls_certificates=args.tls_certificates,
                tls_psk=args.tls_psk,
                dilation=args.dilation,
                record=args.record,
                metrics=args.metrics,
                progress=bar,
            )
        signals.server = server
        _warn_of_few_connections()
        _introduce(server, args.json)
        # `flashtwin ctl stop` ends the server as well.
        while not server.wait(60):
            pass
    except KeyboardInterrupt:
        if server is None:
            raise
    report = server.stop()
    print(report.to_json() if args.json else report, flush=True)
    return 0


class _Signals:
    """Signal handler.

    The first signal stops the server, also while it starts. Later ones stop waiting for requests in flight.
    """

    def __init__(self) -> None:
        self.server: flashtwin.Server | None = None
        self._asked = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            if self.server is not None:
                self.server.begin_stop()
            raise KeyboardInterrupt
        if self.server is not None:
            self.server.hurry()


def _warn_of_few_connections() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = max(0, limit - _OWN_FILES) // _FILES
    if limit != resource.RLIM_INFINITY and room < _FEW:
        note(
            f"flashtwin: the limit of {limit} open files allows about {room} connections; "
            f"raise it with ulimit -n {_OWN_FILES + _FILES * _FEW}"
        )


def _introduce(server: flashtwin.Server, as_json: bool) -> None:
    if as_json:
        ready = {
            "uri": server.uri,
            "pid": server.pid,
            "size_bytes": server.size_bytes,
            "control": str(server.control),
            "metrics": server.metrics_url,
            "started_from": server.started_from,
        }
        print(json.dumps(ready), flush=True)
        return
    print(f"{words.size(server.size_bytes)} at {server.uri}, the flash {server.started_from}")
    if server.metrics_url is not None:
        print(f"a page shows it live: {server.metrics_url}")
    print("a client types, for example:")
    for tool, line in _clients(server.uri):
        missing = "" if shutil.which(tool) else f"   # {tool} is not installed here"
        print(f"  {line}{missing}")
    print("Ctrl-C stops it.", flush=True)


def _clients(uri: str) -> list[tuple[str, str]]:
    load = "--name=load --rw=randwrite --bs=4k --iodepth=16 --time_based --runtime=10"
    lines = [
        ("nbdinfo", f"nbdinfo '{uri}'"),
        ("fio", f"fio --ioengine=nbd --uri='{uri}' {load}"),
        ("qemu-img", f"qemu-img bench -f raw -w -d 16 '{uri}'"),
        ("nbdfuse", f"nbdfuse directory/disk '{uri}'"),
    ]
    path = uri.partition("?socket=")[2]
    if path:
        lines.append(("nbd-client", f"sudo nbd-client -unix '{path}' /dev/nbd0"))
    return lines
