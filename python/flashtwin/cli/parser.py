"""The parser of the command line: each command adds its own grammar."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from .. import __version__
from .grammar import Parser, form

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

#: The module of each command, in the order of the help.
_MODULES = {
    "run": "run",
    "compare": "compare",
    "sweep": "sweep",
    "study": "study",
    "leaderboard": "leaderboard",
    "results": "results",
    "report": "report",
    "plot": "plotting",
    "serve": "serve",
    "ctl": "ctl",
    "trace": "trace",
    "device": "device",
    "policy": "policy",
    "ftl": "ftl",
    "snapshot": "snapshot",
    "pts": "pts",
    "validate": "validate",
    "doctor": "installation",
    "completion": "installation",
    "man": "installation",
    "calibrate": "calibrate",
}


def build(arguments: Sequence[str] = ()) -> Parser:
    """Build the parser of the command that the arguments name, or else of all.

    A command needs a part of the package; importing the whole takes longer than many a run.
    """
    parser = Parser(prog="flashtwin", **form("A deterministic twin of a flash device.", _EXAMPLES))
    parser.add_argument("--version", action="version", version=f"flashtwin {__version__}")
    parser.set_defaults(build=build)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    first = next(iter(arguments), None)
    if first == "--version":
        return parser
    modules = [_MODULES[first]] if first in _MODULES else dict.fromkeys(_MODULES.values())
    for module in modules:
        import_module(f".{module}", __package__).add(commands)
    return parser
