"""The manual page of the command, in the format of man(7). It is derived from the grammar."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from .. import __version__


def page(parser: argparse.ArgumentParser) -> str:
    """Return the manual page of a parser with all its commands."""
    lines = [
        f'.TH FLASHTWIN 1 "" "flashtwin {__version__}" "User Commands"',
        ".SH NAME",
        _text(f"flashtwin - {(parser.description or '').rstrip('.').lower()}"),
        ".SH SYNOPSIS",
        ".B flashtwin",
        r"\fICOMMAND\fR [\fIOPTION\fR]...",
        ".SH COMMANDS",
    ]
    for command in _commands(parser):
        lines += _command(command)
    lines += [".SH EXAMPLES", *_verbatim(parser.epilog or "")]
    return "\n".join(lines) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return the commands without subcommands. A command with aliases is returned once."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield parser
    for action in inner:
        for command in dict.fromkeys(action.choices.values()):
            yield from _commands(command)


def _command(parser: argparse.ArgumentParser) -> list[str]:
    formatter = argparse.HelpFormatter(parser.prog, width=10_000)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    lines = [f".SS {_text(parser.prog)}", _text(parser.description or ""), ".PP"]
    lines += [_text(formatter.format_help().strip())]
    for action in parser._actions:
        if action.help not in (argparse.SUPPRESS, None) and not isinstance(action, argparse._HelpAction):
            lines += [".TP", rf"\fB{_text(_invocation(action))}\fR", _text(_help(formatter, action))]
    return [*lines, *_verbatim(parser.epilog or "")]


def _invocation(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and action.metavar is None:
        shown = "|".join(map(str, action.choices))
    if not action.option_strings:
        return shown
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {shown}"


def _help(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    return " ".join(formatter._expand_help(action).split())


def _verbatim(text: str) -> list[str]:
    """Return the lines of the epilog unchanged."""
    return [".PP", ".nf", *(_text(line) for line in text.strip("\n").splitlines()), ".fi"] if text else []


def _text(text: str) -> str:
    """Escape text that man(7) would interpret as a command."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped
