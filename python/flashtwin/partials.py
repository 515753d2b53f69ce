"""Half-written files that killed processes left, and locks of files."""

from __future__ import annotations

import contextlib
import fcntl
import os
from functools import cache
from pathlib import Path


@cache
def remove_dead_partials(directory: Path) -> None:
    """Remove half-written files (NAME.PID.partial) of killed processes, once in this process."""
    for left in directory.glob("*.partial"):
        pid = left.suffixes[-2:-1]
        if pid and pid[0][1:].isdigit() and not _lives(int(pid[0][1:])):
            with contextlib.suppress(OSError):
                remove_unlocked(left)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def remove_unlocked(path: Path) -> None:
    """Remove a file unless a process has locked it, which may run on another machine."""
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if locks(file, fcntl.LOCK_EX, keep=True):
            path.unlink()
    finally:
        os.close(file)


def locks(file: int, how: int, *, keep: bool = False) -> bool:
    """Try to lock a file; keep the lock only if asked to."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if not keep:
        fcntl.flock(file, fcntl.LOCK_UN)
    return True
