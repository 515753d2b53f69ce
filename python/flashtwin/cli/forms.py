"""Parsers of commands, without what the options of any of them need."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

Command: TypeAlias = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """Reports an error in one line instead of repeating all options."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def form(what: str, examples: str) -> dict[str, Any]:
    """Return the arguments of every parser."""
    return {
        "description": what,
        "epilog": examples,
        "allow_abbrev": False,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def new(
    commands: Commands, name: str, what: str, examples: str = "", command: Command | None = None
) -> Parser:
    """Add a command; the first sentence of `what` is its line in the list of commands."""
    p = commands.add_parser(name, help=what.partition(".")[0], **form(what, examples))
    if command is not None:
        p.set_defaults(command=command)
    return p


def family(
    commands: Commands, name: str, what: str, examples: str = "", metavar: str = "COMMAND"
) -> Commands:
    """Add a command that has commands of its own, and return their list."""
    p = new(commands, name, what, examples)
    return p.add_subparsers(metavar=metavar, required=True, parser_class=Parser)
