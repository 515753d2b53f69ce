"""The parser of the command line. Each command adds its own grammar."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Sequence
from importlib import import_module

from .. import __version__
from .commands import COMMANDS, GROUPS
from .forms import Parser, form

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


def build(arguments: Sequence[str] | None = None) -> Parser:
    """Build the parser for the command that `arguments` begin with.

    If the arguments name no command, the parser has only the names of all commands. If `arguments` is None,
    it has all commands. Only the modules of one command are imported, because importing the whole package
    takes longer than many runs.
    """
    parser = Parser(
        prog="flashtwin",
        usage="flashtwin [--help] [--version] COMMAND ...",
        **form(_description(), _EXAMPLES),
    )
    parser.add_argument("--version", action="version", version=f"flashtwin {__version__}")
    parser.set_defaults(build=build)
    commands = parser.add_subparsers(
        prog="flashtwin", metavar="COMMAND", required=True, parser_class=Parser, help=SUPPRESS
    )
    first = next(iter(arguments or ()), "")
    if arguments is None or first in COMMANDS:
        wanted = COMMANDS.values() if arguments is None else [COMMANDS[first]]
        for module in dict.fromkeys(command.module for command in wanted):
            import_module(f".{module}", __package__).add(commands)
    else:
        for name in COMMANDS:
            commands.add_parser(name)
    return parser


def _description() -> str:
    """Return the purpose of the program and the list of commands."""
    width = max(map(len, COMMANDS))
    lines = ["A deterministic twin of a flash device."]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:"]
        for name, command in commands.items():
            lines.append(f"  {name:<{width}}  {command.summary.removesuffix('.')}")
    return "\n".join(lines)
