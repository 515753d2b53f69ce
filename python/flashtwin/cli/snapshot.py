"""`flashtwin snapshot save`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import save_snapshot, words
from ..options import PreconditionOptions
from .common import ProgressBar
from .options import read


def save(args: argparse.Namespace) -> int:
    """Precondition a device and save its state."""
    path = Path(args.file)
    with ProgressBar() as bar:
        save_snapshot(
            path,
            args.device,
            **read(args, PreconditionOptions),
            progress=bar,
        )
    print(f"{path}: {words.size(path.stat().st_size)}")
    return 0
