"""Writing result files: whole under their final name, or not there at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import FlashtwinError
from .partials import remove_dead_partials


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Open a file that gets its name only when the block ends without an exception.

    A name that is a device or a pipe is written directly: it cannot be replaced. Half-written files that
    killed processes left beside it are removed.

    Args:
        path: the final name.
        what: what is being written, for messages.
    """
    special = path.exists() and not path.is_file()
    target = path if special else path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "is a directory")
        if not special:
            remove_dead_partials(path.parent.absolute())
        with target.open("wb") as file:
            if not special:
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            target.replace(path)
    except OSError as e:
        reason = e.strerror or str(e)
        raise FlashtwinError(f"{path}: cannot write {what}: {reason}; {_remedy(e)}") from e
    finally:
        if not special:
            target.unlink(missing_ok=True)


def store_ahead(file: IO[bytes], since: int) -> int:
    """Have the system store on disk what was written from `since` on, without waiting for it.

    The fsync at the end of a large file then has little left to store. Returns how far the file reaches.
    """
    if not (hasattr(os, "posix_fadvise") and file.seekable()):
        return since
    file.flush()
    reach = file.tell()
    with suppress(OSError):
        # Linux begins to store pages that it cannot drop because they are not stored yet.
        os.posix_fadvise(file.fileno(), since, reach - since, os.POSIX_FADV_DONTNEED)
    return reach


def _remedy(e: OSError) -> str:
    if isinstance(e, FileNotFoundError):
        return "create its directory first"
    if isinstance(e, IsADirectoryError):
        return "give the name of a file"
    return "free some space or write elsewhere; nothing was left under that name"


def write_text(path: Path, text: str, what: str) -> None:
    """Write a whole text file."""
    with whole_file(path, what) as file:
        file.write(text.encode())
