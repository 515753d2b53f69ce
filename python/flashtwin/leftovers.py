"""What a server has on the file system beside its data: a private directory, sockets, a store's lock.

A server that was killed leaves them; the next start knows them for what they are, and removes them.
"""

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

from .errors import FlashtwinError

_PREFIX = "flashtwin-"
#: Held by who uses a private directory, and by the server that he started.
_LOCK = "flashtwin-serve.lock"
#: Seconds between two looks at a store whose server is ending.
_PERIOD_S = 0.05


def private_directory() -> tuple[Path, int]:
    """Make a directory for a server alone, and remove those of servers that are gone.

    Returns:
        It, and the descriptor of its lock: while any process has that open, the directory is in use.
    """
    for other in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            _remove_unused(other.parent)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(place / "new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # Nobody sees it before it is held.
    (place / "new").rename(place / _LOCK)
    return place, lock


def _remove_unused(place: Path) -> None:
    is_ = place.lstat()
    if not stat.S_ISDIR(is_.st_mode) or is_.st_uid != os.geteuid():
        return
    lock = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(lock)


def free_socket(path: Path) -> None:
    """Make sure that a socket can be made there: one that nobody listens on is removed.

    Raises:
        FlashtwinError: something else is there.
    """
    remove_dead_socket(path)
    if path.is_socket():
        raise FlashtwinError(
            f"socket {path}: is there already, and a server listens on it; stop that, or give another name"
        )
    if os.path.lexists(path):
        raise FlashtwinError(f"socket {path}: is there already; remove it, or give another name")


def remove_dead_socket(path: Path) -> None:
    """Remove a socket that nobody listens on."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        code = probe.connect_ex(str(path))
    if code == errno.ECONNREFUSED:
        path.unlink(missing_ok=True)


def wait_for_store(path: Path) -> None:
    """Wait until a server that is ending gives back its store.

    Raises:
        FlashtwinError: one that is not ending uses it.
    """
    try:
        store = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return  # The server says what is wrong with it.
    try:
        while not _locks(store, fcntl.LOCK_EX):
            # A server that is ending shares it.
            if not _locks(store, fcntl.LOCK_SH):
                pid = _holder(store)
                who, stop = (f" (process {pid})", f"stop it (kill {pid})") if pid else ("", "stop it")
                raise FlashtwinError(
                    f"store {path}: another server uses this store{who}; {stop}, or give another file"
                )
            time.sleep(_PERIOD_S)
    finally:
        os.close(store)


def remove_made(listed: Path) -> None:
    """Remove the files that a start which failed says it made, unless another server uses them by now."""
    if not listed.exists():
        return
    for name in map(Path, filter(None, os.fsdecode(listed.read_bytes()).split("\n"))):
        with contextlib.suppress(OSError):
            made = os.open(name, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _locks(made, fcntl.LOCK_EX, keep=True):
                    name.unlink()
            finally:
                os.close(made)


def _locks(file: int, how: int, *, keep: bool = False) -> bool:
    """Whether a file can be locked now."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if not keep:
        fcntl.flock(file, fcntl.LOCK_UN)
    return True


def _holder(file: int) -> int | None:
    """Process that has locked a file, if the kernel says."""
    of = os.fstat(file)
    at = f"{os.major(of.st_dev):02x}:{os.minor(of.st_dev):02x}:{of.st_ino}"
    found = re.search(rf"FLOCK +\S+ +WRITE +(\d+) +{at} ", Path("/proc/locks").read_text())
    return int(found[1]) if found and found[1] != "0" else None
