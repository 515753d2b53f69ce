"""`flashtwin doctor`, `completion` and `man`: their grammar and behaviour."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from .._support.prerequisites import checks
from . import completion, man
from .commands import summary_of
from .forms import Commands, new
from .grammar import add_json


def add(commands: Commands) -> None:
    """Add the commands."""
    p = new(
        commands,
        "doctor",
        summary_of("doctor"),
        """\
examples:
  flashtwin doctor
  flashtwin doctor --json

Exit code 1 if something required is missing; everything else is optional.
""",
        command=doctor,
    )
    add_json(p, "the list")
    p = new(
        commands,
        "completion",
        summary_of("completion"),
        """\
examples:
  eval "$(flashtwin completion bash)"                                      in ~/.bashrc
  flashtwin completion zsh > ~/.zfunc/_flashtwin                           a directory of $fpath
  flashtwin completion fish > ~/.config/fish/completions/flashtwin.fish
""",
        command=lambda args: _print(completion.script(args.shell)),
    )
    p.add_argument("shell", choices=completion.SHELLS)
    p = new(
        commands,
        "man",
        summary_of("man"),
        """\
examples:
  flashtwin man | man -l -
  flashtwin man > ~/.local/share/man/man1/flashtwin.1
""",
        command=lambda args: _print(man.page(args.build())),
    )


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
