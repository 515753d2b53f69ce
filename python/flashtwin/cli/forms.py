"""Parsers of commands: errors, suggestions and lists of commands."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias

Command: TypeAlias = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line instead of printing all options."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse arguments.

        An unknown option is reported by the parser of the command, not by that of the program. The error
        contains the most similar option.
        """
        given = sys.argv[1:] if args is None else args
        found, unknown = self.parse_known_args(given, namespace)
        if unknown:
            command = self._command_of(given[: given.index(unknown[0])])
            elsewhere = self._elsewhere(unknown[0])
            near = command._nearest(unknown[0], 0.7 if elsewhere else 0.6)
            hints = [f"did you mean {each}?" for each in near] + elsewhere
            hint = f"; {' '.join(hints)}" if hints else ""
            command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found

    def _commands(self) -> dict[str, Parser]:
        """Return the subcommands of this command, by name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return action.choices
        return {}

    def _command_of(self, words: Sequence[str]) -> Parser:
        """Return the innermost subcommand that the words name."""
        command = self
        for word in words:
            command = command._commands().get(word, command)
        return command

    def _elsewhere(self, word: str) -> list[str]:
        """Return a sentence that names other commands with an option that this command lacks."""
        build = self.get_default("build")
        flag = word.partition("=")[0]
        if build is None or not flag.startswith("--"):
            return []
        commands = build()._commands().values()
        having = [command.prog for command in commands if flag in command._option_string_actions]
        return [f"{' and '.join(having)} {'takes' if len(having) == 1 else 'take'} {flag}"] if having else []

    def _nearest(self, word: str, likeness: float) -> list[str]:
        """Return a list with the option that is most similar to a word, or an empty list."""
        return get_close_matches(word.partition("=")[0], self._option_string_actions, 1, likeness)


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
    """Add a command. The first sentence of its description `what` is shown in the list of commands."""
    line = re.split(r"\.(?:\s|$)", what, maxsplit=1)[0]
    p = commands.add_parser(name, help=line, **form(what, examples))
    if command is not None:
        p.set_defaults(command=command)
    return p


def family(
    commands: Commands, name: str, what: str, examples: str = "", metavar: str = "COMMAND"
) -> Commands:
    """Add a command that has subcommands. Return the object to which the subcommands are added."""
    p = new(commands, name, what, examples)
    return p.add_subparsers(metavar=metavar, required=True, parser_class=Parser)
