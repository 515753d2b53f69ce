"""The grammar of the command line. Help teaches by examples; checks belong to the library."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from .. import __version__, trace_formats
from ..devices import DEFAULT_DEVICE
from ..options import PreconditionOptions, RunOptions, WorkloadOptions

_EXAMPLES = """\
examples:
  flashtwin run trace.csv.gz --device demo
  flashtwin run --workload zipf:theta=0.9,write=0.8,requests=1e6 --policy gcar-lru
  flashtwin compare trace.csv.gz --policies lru,cflru,gcar-lru --figure out.png
  flashtwin trace info trace.csv.gz
  flashtwin sweep experiment.toml
  flashtwin serve --device nvme-tlc --size 16G
  flashtwin device list
  flashtwin policy list
  flashtwin ftl list

Exit codes: 0 done, 1 validate found mismatches, cells of a sweep failed or doctor found something required
missing, 2 wrong input, 130 Ctrl-C.
"""


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line instead of repeating all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build(arguments: Sequence[str] = ()) -> _Parser:
    """Build the parser of the command that the arguments name, or else of all.

    One command needs a part of the package; the import of all of it takes longer than many a run.
    """
    parser = _new(None, "flashtwin", "A deterministic twin of a flash device.", _EXAMPLES)
    parser.add_argument("--version", action="version", version=f"flashtwin {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    named = _ADDERS.get(arguments[0]) if arguments else None
    for add in [named] if named else dict.fromkeys(_ADDERS.values()):
        add(commands)
    return parser


_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def _new(commands: _Commands | None, name: str, what: str, examples: str) -> _Parser:
    form: dict[str, Any] = {
        "description": what,
        "epilog": examples,
        "allow_abbrev": False,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    if commands is None:
        return _Parser(prog=name, **form)
    return commands.add_parser(name, help=what.partition(".")[0], **form)


def _add_workload(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "trace",
        nargs="?",
        metavar="TRACE",
        help="trace file, or - for standard input; plain, .gz or .zst",
    )
    p.add_argument(
        "--workload",
        metavar="SPEC",
        help="generated load instead of a trace, such as uniform:write=0.8,requests=1e6",
    )
    _add_trace_options(p)


def _add_trace_options(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("trace format (default: detected from the file)")
    g.add_argument("--format", metavar="NAME", help=f"trace format: {', '.join(trace_formats())}")
    g.add_argument(
        "--columns",
        metavar="KEY=COLUMN[:UNIT],...",
        help="columns of a text table, such as time=ts:us,offset=lba:sectors,size=len:bytes,op=type",
    )
    g.add_argument("--time-unit", metavar="UNIT", help="unit of the time column: s, ms, us, filetime, ns, ps")
    g.add_argument("--address-unit", metavar="UNIT", help="unit of the address column: bytes, sectors")
    g.add_argument(
        "--event", metavar="D|Q", help="blktrace events: issued to the driver (D, default) or queued (Q)"
    )
    g.add_argument(
        "--volumes", metavar="HOW", help="layout of several disks: end-to-end (default), overlay, only:NAME"
    )
    g.add_argument(
        "--addresses",
        metavar="HOW",
        help="as-is (default), or compact: leave out untouched parts of the address space",
    )
    g.add_argument(
        "--max-bad-lines", type=int, metavar="N", help="number of unreadable lines to skip (default: 0)"
    )
    g.add_argument("--reorder-window", type=int, metavar="N", help="reorder window, in requests")


def _add_device(p: argparse.ArgumentParser) -> argparse._ActionsContainer:
    g = p.add_argument_group("device")
    g.add_argument(
        "--device",
        default=DEFAULT_DEVICE,
        metavar="NAME|FILE",
        help=f"device name or file, see flashtwin device list (default: {DEFAULT_DEVICE})",
    )
    return g


def _add_options(p: argparse.ArgumentParser, kind: type) -> None:
    from . import options

    options.add(p, kind, {"device": _add_device(p)})


def _add_json(p: argparse._ActionsContainer, what: str) -> None:
    p.add_argument("--json", action="store_true", help=f"print only {what} on standard output, as JSON")


def _run(commands: _Commands) -> None:
    from . import run

    p = _new(
        commands,
        "run",
        "Run a workload on a device and print the results.",
        """\
examples:
  flashtwin run trace.csv.gz --device demo
  flashtwin run trace.csv.gz --device my.toml --set buffer.capacity=8MiB --speed 2
  flashtwin run --workload zipf:theta=0.9,write=0.8,requests=1e6 --queue-depth 16
  flashtwin run trace.csv.gz --device raid5-array --fail 3@10s --replace 3@20s
  flashtwin run trace.csv.gz --requests log.parquet --series second.csv --json > summary.json
  flashtwin run trace.csv.gz --timeline out.perfetto-trace --timeline-window 10s+50ms
""",
    )
    _add_workload(p)
    _add_options(p, RunOptions)
    g = p.add_argument_group("output")
    form = g.add_mutually_exclusive_group()
    _add_json(form, "the summary")
    form.add_argument(
        "--fio",
        choices=["text", "json+"],
        help="print only fio's text or json+ format on standard output",
    )
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for the summary")
    g.add_argument(
        "--hgrm",
        metavar="FILE",
        help="files for HdrHistogram's plotters: x.hgrm, x.read.hgrm, x.write.hgrm",
    )
    g.add_argument("--requests", metavar="FILE", help="Parquet file with one row per request")
    g.add_argument("--series", metavar="FILE", help="CSV file with a time series")
    g.add_argument("--record", metavar="FILE", help="file with the data for flashtwin report and plot")
    g.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="interval of the series, in virtual time (default: 1)",
    )
    g.add_argument(
        "--gc-timeline",
        action="append",
        default=[],
        metavar="FILE",
        help="garbage collection by array member over time: table (.csv, .parquet) or figure (.png, .pdf, "
        ".svg); may be repeated",
    )
    g.add_argument(
        "--timeline",
        metavar="FILE",
        help="trace of every device operation in a window, for ui.perfetto.dev",
    )
    g.add_argument(
        "--timeline-window",
        metavar="BEGINNING+LENGTH",
        help="window in virtual time since the start of the measurement (default: 0s+100ms)",
    )
    p.set_defaults(command=run.command)


def _compare(commands: _Commands) -> None:
    from . import compare

    p = _new(
        commands,
        "compare",
        "Run a workload under several policies, side by side.",
        """\
examples:
  flashtwin compare trace.csv.gz --device demo --policies lru,cflru,gcar-lru,gcar-cflru
  flashtwin compare trace.csv.gz --policies lru,gcar-lru --threads 2 --figure out.png
  flashtwin compare trace.csv.gz --policies lru,cflru:window=0.1,cflru:window=0.5
  flashtwin compare trace.csv.gz --policies all --threads 2

The device is preconditioned once; each policy starts from a copy. Ratios are to the first policy.
More than 6 policies are ranked by mean response. A parameter given with --set applies to the policies
that have it.
""",
    )
    _add_workload(p)
    _add_options(p, WorkloadOptions)
    p.add_argument(
        "--policies",
        default="lru,cflru,gcar-lru,gcar-cflru",
        metavar="A,B,...",
        help="policies, optionally with parameters, or all (default: lru,cflru,gcar-lru,gcar-cflru)",
    )
    p.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="policies to run at a time (results do not change)",
    )
    g = p.add_argument_group("output")
    _add_json(g, "all summaries")
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for all summaries")
    g.add_argument("--figure", metavar="FILE", help="figure of the response times: .png, .pdf or .svg")
    p.set_defaults(command=compare.command)


def _trace(commands: _Commands) -> None:
    from . import trace

    p = _new(commands, "trace", "Look into a trace, or convert it.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    info = _new(
        inner,
        "info",
        "Print what a trace holds, or how far a generated load is from it.",
        """\
examples:
  flashtwin trace info trace.csv.gz
  flashtwin trace info hm_0.csv.gz --against zipf:theta=1.05,range=472M,write=0.65,rate=6.6/s
""",
    )
    info.add_argument("trace", metavar="TRACE")
    info.add_argument(
        "--against",
        metavar="LOAD",
        help="generated load to compare with, of as many requests as the trace has",
    )
    _add_trace_options(info)
    _add_json(info, "it")
    info.set_defaults(command=trace.info)
    convert = _new(
        inner,
        "convert",
        "Write a trace in our binary or text form.",
        """\
examples:
  flashtwin trace convert trace.csv.gz trace.ftb        binary, read without parsing
  flashtwin trace convert trace.csv.gz trace.csv.zst    text
""",
    )
    convert.add_argument("source", metavar="TRACE")
    convert.add_argument(
        "target", metavar="NEW", help="output file: .ftb or .csv, optionally followed by .zst or .gz"
    )
    _add_trace_options(convert)
    convert.set_defaults(command=trace.convert)


def _device(commands: _Commands) -> None:
    from . import device, options

    p = _new(commands, "device", "List, show, check and import devices.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    listing = _new(inner, "list", "List the devices that come with flashtwin.", "")
    _add_json(listing, "them")
    listing.set_defaults(command=device.list_all)
    show = _new(
        inner,
        "show",
        "Print a device as TOML, ready to be saved and changed.",
        """\
examples:
  flashtwin device show demo > my.toml
  flashtwin device show demo --set buffer.policy=cflru
""",
    )
    show.add_argument("device", metavar="NAME|FILE")
    options.add_set(show)
    show.set_defaults(command=device.show)
    check = _new(
        inner,
        "check",
        "Check device files, and measure devices beside what is published of the drive.",
        """\
examples:
  flashtwin device check my.toml
  flashtwin device check nvme-tlc
  flashtwin device check demo --measure --json
""",
    )
    check.add_argument("devices", metavar="NAME|FILE", nargs="+")
    how = check.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="check the files without measuring")
    how.add_argument(
        "--measure", action="store_true", help="measure devices without published figures as well"
    )
    _add_json(check, "what was measured")
    check.set_defaults(command=device.check)
    importing = _new(
        inner,
        "import",
        "Turn a parameter file of DiskSim or MQSim into a device file, or a workload of MQSim into commands.",
        """\
examples:
  flashtwin device import ssd.parv -o mine.toml
  flashtwin device import ssdconfig.xml -o mine.toml
  flashtwin device import workload.xml

Each key has the parameter that it comes from behind it. Parameters without a counterpart are named on
standard error and at the end of the device file.
""",
    )
    importing.add_argument(
        "file", metavar="FILE", help="DiskSim .parv, or MQSim ssdconfig.xml or workload.xml"
    )
    importing.add_argument("-o", "--output", metavar="FILE", help="file to write instead of standard output")
    importing.set_defaults(command=device.import_parameters)


def _policy(commands: _Commands) -> None:
    from . import policy

    p = _new(commands, "policy", "List, explain, step and measure buffer policies.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    listing = _new(inner, "list", "List all policies.", "")
    _add_json(listing, "them")
    listing.set_defaults(command=policy.list_all)
    show = _new(
        inner,
        "show",
        "Describe a policy: rule, source, parameters, an example.",
        "examples:\n  flashtwin policy show cflru\n  flashtwin policy show gcar-lru\n",
    )
    show.add_argument("policy", metavar="NAME")
    _add_json(show, "it")
    show.set_defaults(command=policy.show)
    _policy_trace(inner)
    _policy_hits(inner)


def _policy_trace(inner: _Commands) -> None:
    from . import policy

    p = _new(
        inner,
        "trace",
        "Step a policy through a string of accesses, as the examples of papers do.",
        """\
examples:
  flashtwin policy trace cflru --capacity 4 --set window=2 "W1 R2 W3 W4 R5 W6 R7"
  flashtwin policy trace gcar-lru --capacity 4 --chips 2 "W1 W2 R3 W4 gc+1 W6 R8"

W1 writes page 1, R2 reads page 2, W4x3 writes pages 4 to 6 in one request, trim1 trims page 1; chip 0
begins (gc+0) and ends (gc-0) collecting, will be done in 500 us (drain0=500), is idle (idle0); t+100
lets 100 ms pass. Pages are striped over the chips. 7d is page 7, dirty; 7c clean; most recent first.
""",
    )
    p.add_argument("policy", metavar="NAME")
    p.add_argument("accesses", metavar="ACCESSES", nargs="+", help="access string, such as W1 R2 W3")
    p.add_argument(
        "--capacity", type=int, required=True, metavar="N", help="capacity of the buffer, in pages"
    )
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the policy, such as window=2",
    )
    p.add_argument("--chips", type=int, default=1, metavar="N", help="number of chips (default: 1)")
    p.add_argument(
        "--stride", type=int, default=1, metavar="N", help="consecutive pages on a chip (default: 1)"
    )
    p.add_argument(
        "--pages-per-block", type=int, default=4, metavar="N", help="pages in an erase block (default: 4)"
    )
    _add_json(p, "the steps")
    p.set_defaults(command=policy.trace)


def _policy_hits(inner: _Commands) -> None:
    from . import policy

    p = _new(
        inner,
        "hits",
        "Count hits of policies in buffers of several sizes, without a device.",
        """\
examples:
  flashtwin policy hits trace.csv.gz --policies lru,arc,s3-fifo,min --capacity 1MiB,32MiB
  flashtwin policy hits trace.csv.gz --policies all --capacity 4MiB --figure out.png

min is Belady's optimum, which knows the future: the most hits that any policy can have.
""",
    )
    _add_workload(p)
    p.add_argument(
        "--policies",
        default="lru,arc,s3-fifo,min",
        metavar="A,B,...",
        help="policies, or all (default: lru,arc,s3-fifo,min)",
    )
    p.add_argument("--capacity", required=True, metavar="SIZE,...", help="buffer sizes, such as 1MiB,32MiB")
    p.add_argument(
        "--page-bytes", type=int, default=4096, metavar="N", help="page size in bytes (default: 4096)"
    )
    p.add_argument("--requests-max", type=int, metavar="N", help="maximum number of requests")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the generator (default: 1)")
    p.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="policies to run at a time (results do not change)",
    )
    g = p.add_argument_group("output")
    _add_json(g, "the rows")
    g.add_argument("--figure", metavar="FILE", help="figure of the hit ratios: .png, .pdf or .svg")
    p.set_defaults(command=policy.hits)


def _ftl(commands: _Commands) -> None:
    from . import ftl

    p = _new(commands, "ftl", "List, explain and step flash translation layers.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    listing = _new(inner, "list", "List the translation layers.", "")
    _add_json(listing, "them")
    listing.set_defaults(command=ftl.list_all)
    show = _new(
        inner,
        "show",
        "Describe a translation layer: rule, source, parameters, an example.",
        "example:\n  flashtwin ftl show fast\n",
    )
    show.add_argument("ftl", metavar="NAME")
    _add_json(show, "it")
    show.set_defaults(command=ftl.show)
    _ftl_trace(inner)


def _ftl_trace(inner: _Commands) -> None:
    from . import ftl

    p = _new(
        inner,
        "trace",
        "Step a translation layer through a string of accesses and count what flash does.",
        """\
examples:
  flashtwin ftl trace fast --set rw_log_blocks=2 "0 1 2 3 4 9 13"
  flashtwin ftl trace dftl --set cmt_entries=2 --set entries_per_translation_page=4 "R0 1 R4 2 F"

7 writes page 7, 4x3 writes pages 4 to 6, R7 reads, T7 trims, F writes what of the map is newer in memory.
At first every page is written in its place, uncounted. A copy is a read and a program; - is a stale page.
""",
    )
    p.add_argument("ftl", metavar="NAME")
    p.add_argument("accesses", metavar="ACCESSES", nargs="+", help="access string, such as 0 1 R5 T3")
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the layer, such as rw_log_blocks=2",
    )
    p.add_argument("--blocks", type=int, default=16, metavar="N", help="blocks of the chip (default: 16)")
    p.add_argument(
        "--pages-per-block", type=int, default=4, metavar="N", help="pages in an erase block (default: 4)"
    )
    p.add_argument(
        "--logical-pages", type=int, metavar="N", help="exported pages (default: half of the chip)"
    )
    p.add_argument(
        "--empty", action="store_true", help="start with erased blocks (default: all pages written)"
    )
    _add_json(p, "the steps and their total")
    p.set_defaults(command=ftl.trace)


def _snapshot(commands: _Commands) -> None:
    from . import snapshot

    p = _new(commands, "snapshot", "Save the state of a preconditioned device.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    save = _new(
        inner,
        "save",
        "Precondition a device and save its state.",
        """\
example:
  flashtwin snapshot save demo.state --device demo --precondition random:2
  flashtwin run trace.csv.gz --device demo --snapshot demo.state
""",
    )
    save.add_argument("file", metavar="FILE")
    _add_options(save, PreconditionOptions)
    save.set_defaults(command=snapshot.save)


def _validate(commands: _Commands) -> None:
    from . import validate

    p = _new(
        commands,
        "validate",
        "Replay reference cases and compare every operation.",
        """\
example:
  flashtwin validate cases/

A case is NAME.json with NAME.trace.csv and NAME.events.txt, or with NAME.responses.csv; plain or .zst.
Exit code 1 if a case does not meet its measure.
""",
    )
    p.add_argument("directory", metavar="DIR")
    _add_json(p, "the reports")
    p.set_defaults(command=validate.command)


def _sweeping(commands: _Commands) -> None:
    from . import sweeping

    sweeping.add(commands, _new)


def _plotting(commands: _Commands) -> None:
    from . import plotting

    plotting.add(commands, _new)


def _serve(commands: _Commands) -> None:
    from . import serve

    serve.add(commands, _new, _add_options)


def _ctl(commands: _Commands) -> None:
    from . import ctl

    ctl.add(commands, _new)


def _pts(commands: _Commands) -> None:
    from . import pts

    pts.add(commands, _new, _add_device, _add_json)


def _installation(commands: _Commands) -> None:
    from . import installation

    installation.add(commands, _new, _add_json, build)


def _calibrate(commands: _Commands) -> None:
    from . import calibrate_fit, calibrate_plan

    p = _new(
        commands,
        "calibrate",
        "Fit a device file to measurements of a drive.",
        """\
examples:
  flashtwin calibrate plan --target /dev/nvme0n1 -o plan
  sudo plan/run.sh
  flashtwin calibrate fit plan/results -o mydrive.toml --report fit.html
  flashtwin calibrate check mydrive.toml plan/results
""",
    )
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    calibrate_plan.add(inner, _new, _add_json)
    calibrate_fit.add(inner, _new, _add_device)


#: Functions that add each command, in the order of the help.
_ADDERS: dict[str, Callable[[_Commands], None]] = {
    "run": _run,
    "compare": _compare,
    "sweep": _sweeping,
    "study": _sweeping,
    "leaderboard": _sweeping,
    "results": _sweeping,
    "report": _sweeping,
    "plot": _plotting,
    "serve": _serve,
    "ctl": _ctl,
    "trace": _trace,
    "device": _device,
    "policy": _policy,
    "ftl": _ftl,
    "snapshot": _snapshot,
    "pts": _pts,
    "validate": _validate,
    "doctor": _installation,
    "completion": _installation,
    "man": _installation,
    "calibrate": _calibrate,
}
