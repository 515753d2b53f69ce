"""`flashtwin doctor`, `completion` and `man`: their grammar, and what they do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ..prerequisites import checks
from . import completion, man

#: Adds a command: to whom, its name, what it does, examples.
_New = Callable[[Any, str, str, str], argparse.ArgumentParser]


def add(
    commands: Any,  # noqa: ANN401 (argparse has no public name for it)
    new: _New,
    add_json: Callable[[argparse._ActionsContainer, str], None],
    build: Callable[[], argparse.ArgumentParser],
) -> None:
    """Add the commands; `build` makes the parser of all commands."""
    p = new(
        commands,
        "doctor",
        "List what is installed, what is missing, and the line that installs it.",
        """\
examples:
  flashtwin doctor
  flashtwin doctor --json

Exit code 1 if something required is missing; everything else is optional.
""",
    )
    add_json(p, "the list")
    p.set_defaults(command=doctor)
    p = new(
        commands,
        "completion",
        "Print the code that makes a shell complete the command.",
        """\
examples:
  eval "$(flashtwin completion bash)"                                      in ~/.bashrc
  flashtwin completion zsh > ~/.zfunc/_flashtwin                           a directory of $fpath
  flashtwin completion fish > ~/.config/fish/completions/flashtwin.fish
""",
    )
    p.add_argument("shell", choices=completion.SHELLS)
    p.set_defaults(command=lambda args: _print(completion.script(args.shell)))
    p = new(
        commands,
        "man",
        "Print the manual page.",
        """\
examples:
  flashtwin man | man -l -
  flashtwin man > ~/.local/share/man/man1/flashtwin.1
""",
    )
    p.set_defaults(command=lambda _: _print(man.page(build())))


def _print(text: str) -> int:
    print(text, end="")
    return 0


def doctor(args: argparse.Namespace) -> int:
    """Print what is installed and what is missing."""
    found = list(checks())
    broken = any(check.required and check.found is None for check in found)
    if args.json:
        print(json.dumps([asdict(check) for check in found], indent=2))
        return int(broken)
    for title, required in (("required", True), ("optional", False)):
        print(f"{title}:")
        for check in found:
            if check.required is required:
                print(f"  {check.name:<18} {check.found or f'missing: {check.install}'}")
                if check.found is None:
                    print(f"  {'':<18} needed for {check.purpose}")
    return int(broken)
