"""Private directory, sockets and store lock of a server; removal of leftovers of killed servers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import socket
import stat
import tempfile
import time
from pathlib import Path

from ..errors import FlashtwinError
from .partials import locks, remove_unlocked

_PREFIX = "flashtwin-"
#: Name of the lock file in the private directory of a server. The command that created the directory and its
#: server both hold the lock.
_LOCK = "flashtwin-serve.lock"
#: Period in seconds with which a store is polled while the server that uses it is stopping.
_PERIOD_S = 0.05


def private_directory() -> tuple[Path, int]:
    """Create a private directory for a server. Remove directories of servers that no longer run.

    Returns:
        The path of the directory, and the descriptor of its lock file. The directory counts as used as long
        as a process has the descriptor open.
    """
    for other in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            _remove_unused(other.parent)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(place / "new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # The file is locked before it gets its name, so that other starting servers never find it unlocked.
    (place / "new").rename(place / _LOCK)
    return place, lock


def _remove_unused(place: Path) -> None:
    is_ = place.lstat()
    if not stat.S_ISDIR(is_.st_mode) or is_.st_uid != os.geteuid():
        return
    lock = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The list `made` still exists if the server was killed while it started. A listed file with data is
        # kept.
        remove_made(place / "made", only_empty=True)
        shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(lock)


def free_socket(path: Path) -> None:
    """Remove a socket that has no listener, so that a server can create its own.

    Raises:
        FlashtwinError: the path exists and is not a socket.
    """
    remove_dead_socket(path)
    if path.is_socket():
        raise FlashtwinError(
            f"socket {path}: already exists, and a server listens on it; stop it, or give another name"
        )
    if os.path.lexists(path):
        raise FlashtwinError(f"socket {path}: already exists; remove it, or give another name")


def remove_dead_socket(path: Path) -> None:
    """Remove a socket without a listener."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        code = probe.connect_ex(str(path))
    if code == errno.ECONNREFUSED:
        path.unlink(missing_ok=True)


def wait_for_store(path: Path) -> None:
    """Wait until a store is free, if the server that uses it is already stopping.

    Raises:
        FlashtwinError: the store is in use by a server that is not stopping.
    """
    try:
        store = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return  # The server reports the error.
    try:
        while not locks(store, fcntl.LOCK_EX):
            # A server that is stopping converts its exclusive lock to a shared one.
            if not locks(store, fcntl.LOCK_SH):
                pid = _holder(store)
                who, stop = (f" (process {pid})", f"stop it (kill {pid})") if pid else ("", "stop it")
                raise FlashtwinError(
                    f"store {path}: another server uses this store{who}; {stop}, or give another file"
                )
            time.sleep(_PERIOD_S)
    finally:
        os.close(store)


def remove_made(listed: Path, *, only_empty: bool = False) -> None:
    """Remove the files that a failed start created, except files that another server now uses.

    Args:
        listed: file that lists the names of the created files.
        only_empty: whether to keep files that contain data.
    """
    if not listed.exists():
        return
    for name in map(Path, filter(None, os.fsdecode(listed.read_bytes()).split("\n"))):
        with contextlib.suppress(OSError):
            if not only_empty or not _has_data(name):
                remove_unlocked(name)


def _has_data(path: Path) -> bool:
    """Whether a file has data, not only holes."""
    with path.open("rb") as file:
        try:
            os.lseek(file.fileno(), 0, os.SEEK_DATA)
        except OSError as e:
            if e.errno == errno.ENXIO:
                return False
            raise
    return True


def _holder(file: int) -> int | None:
    """Return the id of the process that holds the lock of a file; None if the kernel does not list it."""
    of = os.fstat(file)
    at = f"{os.major(of.st_dev):02x}:{os.minor(of.st_dev):02x}:{of.st_ino}"
    found = re.search(rf"FLOCK +\S+ +WRITE +(\d+) +{at} ", Path("/proc/locks").read_text())
    return int(found[1]) if found and found[1] != "0" else None
