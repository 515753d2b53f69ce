"""`flashtwin snapshot save`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import save_snapshot, words
from .common import ProgressBar, overrides


def save(args: argparse.Namespace) -> int:
    """Precondition a device and save its state."""
    path = Path(args.file)
    with ProgressBar() as bar:
        save_snapshot(
            path,
            args.device,
            precondition=args.precondition,
            set=overrides(args.set),
            seed=args.seed,
            progress=bar,
        )
    print(f"{path}: {words.size(path.stat().st_size)}")
    return 0
