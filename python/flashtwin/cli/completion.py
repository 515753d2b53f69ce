"""Completion in the shell. The shell passes the incomplete line to the command (argcomplete's protocol)."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterator

from .. import FlashtwinError, devices, trace_formats
from .._policies import policies
from .._support.prerequisites import install_line

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """Return the code with which a shell completes the command."""
    try:
        from argcomplete import shellcode
    except ImportError:
        raise FlashtwinError(f"completion needs argcomplete: {install_line('argcomplete')}") from None
    code: str = shellcode(["flashtwin"], shell=shell)
    return code


def complete(parser: argparse.ArgumentParser) -> None:
    """Print possible continuations of the incomplete line, and exit."""
    import argcomplete

    for action in _actions(parser):
        names = _NAMES.get(action.dest) if action.nargs != 0 else None
        if names is not None:
            action.completer = names  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def words_so_far() -> list[str]:
    """Return the complete words of the line to be completed, without the name of the command."""
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0)]
    try:
        words = shlex.split(line)
    except ValueError:  # within quotes
        return line.split()[1:-1]
    return words[1:] if line.endswith(" ") else words[1:-1]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


def _device(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*devices(), *FilesCompleter()(prefix)]


def _list(prefix: str, **_: object) -> list[str]:
    """Complete the last name of a comma-separated list. All earlier names are kept."""
    before, comma, _last = prefix.rpartition(",")
    return [f"{before}{comma}{name}" for name in ("all", *policies())]


#: Functions that complete the value of an option or argument, by its name in the parsed arguments.
_NAMES: dict[str, Callable[..., list[str]]] = {
    "device": _device,
    "devices": _device,
    "policy": lambda **_: policies(),
    "policies": _list,
    "format": lambda **_: trace_formats(),
}
