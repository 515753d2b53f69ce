"""`flashtwin snapshot save`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flashtwin

from .._support import words
from ..options import PreconditionOptions
from .commands import summary_of
from .common import ProgressBar
from .forms import Commands, family, new
from .grammar import add_options
from .options import read


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "snapshot", summary_of("snapshot"))
    p = new(
        inner,
        "save",
        "Precondition a device and save its state.",
        """\
example:
  flashtwin snapshot save demo.state --device demo --precondition random:2
  flashtwin run trace.csv.gz --device demo --snapshot demo.state
""",
        command=save,
    )
    p.add_argument("file", metavar="FILE")
    add_options(p, PreconditionOptions)


def save(args: argparse.Namespace) -> int:
    """Precondition a device and save its state."""
    path = Path(args.file)
    with ProgressBar() as bar:
        flashtwin.save_snapshot(
            path,
            args.device,
            **read(args, PreconditionOptions),
            progress=bar,
        )
    print(f"{path}: {words.size(path.stat().st_size)}")
    return 0
