"""Files that receive their final name only when they are complete, and locks of files.

While a file is written, its name is `.NAME.flashtwin-PID-RANDOM.partial`, and it is locked, as in Rust
(`flashtwin-workload/src/partial.rs`). If the process is killed, the next command that writes NAME removes
this incomplete file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

_NAME = re.compile(r"\.(?P<name>.+)\.flashtwin-(?P<pid>\d+)-[0-9a-f]{16}\.partial", re.DOTALL)


class Partial:
    """A file that will receive its final name.

    Attributes:
        file: the open file.
        path: path of the file until it is published.
    """

    def __init__(self, final: Path) -> None:
        """Create the file under a name that is not in use. A symbolic link is never followed."""
        remove_dead_partials(final)
        self._final = final
        self.path, file = _create(final)
        self.file: IO[bytes] = os.fdopen(file, "wb")

    def complete(self) -> None:
        """Store all data written so far on disk."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def publish(self, final: Path | None = None) -> None:
        """Give the complete file its final name, or another name in the same directory."""
        self.path.replace(final or self._final)

    def close(self) -> None:
        """Close the file, and remove it unless it was published."""
        # If the disk is full, rejected data are still in the buffer, and closing fails again. The write has
        # already raised the error.
        with contextlib.suppress(OSError):
            self.file.close()
        self.path.unlink(missing_ok=True)


def _create(final: Path) -> tuple[Path, int]:
    while True:
        path = final.with_name(f".{final.name}.flashtwin-{os.getpid()}-{os.urandom(8).hex()}.partial")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have removed the file as a leftover before it was locked. Then create another
        # one.
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)


def remove_dead_partials(final: Path) -> None:
    """Remove the incomplete files that killed processes left when they were writing the file `final`."""
    for left in _leftovers(final.parent.absolute()).get(final.name, ()):
        _remove(left)


def remove_all_dead_partials(directory: Path) -> None:
    """Remove incomplete files of killed processes. The directory must contain only files of flashtwin."""
    for left, _ in _partials(directory):
        _remove(left)


@cache
def _leftovers(directory: Path) -> dict[str, list[Path]]:
    """Return the incomplete files of a directory by final name. A process reads a directory only once."""
    found: dict[str, list[Path]] = {}
    for path, name in _partials(directory):
        found.setdefault(name, []).append(path)
    return found


def _partials(directory: Path) -> Iterator[tuple[Path, str]]:
    """Return the incomplete files whose writers no longer run on this machine, and their final names."""
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            found = _NAME.fullmatch(path.name)
            if found and not _lives(int(found["pid"])):
                yield path, found["name"]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _remove(left: Path) -> None:
    with contextlib.suppress(OSError):
        remove_unlocked(left)


def remove_unlocked(path: Path) -> None:
    """Remove a regular file unless it is locked, perhaps by a process on another machine."""
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode) and locks(file, fcntl.LOCK_EX, keep=True):
            path.unlink()
    finally:
        os.close(file)


def locks(file: int, how: int, *, keep: bool = False) -> bool:
    """Try to lock a file, and return whether it was possible. Keep the lock only if `keep` is set."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if not keep:
        fcntl.flock(file, fcntl.LOCK_UN)
    return True
