"""Writing of result files. A file has its final name only when it is complete."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from ..errors import FlashtwinError
from .partials import Partial

#: Directories in which names denote open files and devices. Such names must not be replaced.
_DEVICES = tuple(map(Path, ("/dev", "/proc")))
_DESCRIPTOR = re.compile(r"/dev/(?P<stream>stdout|stderr)|(/dev|/proc/self)/fd/(?P<number>\d+)")


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Open a file for writing. It receives its final name only if the block ends without an exception.

    A file in /dev or /proc, a device and a pipe are written directly, not replaced. A symbolic link is
    replaced; its target does not change. If killed processes left incomplete files of this name, they are
    removed.

    Args:
        path: final name of the file.
        what: description of the file, for messages.
    """
    with _naming(path, what), ExitStack() as stack:
        if _is_special(path):
            yield stack.enter_context(_open_special(path))
            return
        partial = Partial(path)
        stack.callback(partial.close)
        yield partial.file
        partial.complete()
        partial.publish()


def write_text(path: Path, text: str, what: str) -> None:
    """Write a whole text file."""
    write_texts({path: text}, what)


def write_texts(texts: Mapping[Path, str], what: str) -> None:
    """Write several whole text files. If one cannot be written, none of them remains."""
    with ExitStack() as stack:
        partials = {}
        for path, text in texts.items():
            # In a file name that is not UTF-8, invalid bytes are written as escapes, as in JSON.
            data = text.encode(errors="backslashreplace")
            with _naming(path, what):
                if _is_special(path):
                    with _open_special(path) as file:
                        file.write(data)
                    continue
                partial = partials[path] = Partial(path)
                stack.callback(partial.close)
                partial.file.write(data)
                partial.complete()
        published = stack.enter_context(ExitStack())
        for path, partial in partials.items():
            with _naming(path, what):
                partial.publish()
            published.callback(path.unlink, missing_ok=True)
        published.pop_all()


def _open_special(path: Path) -> IO[bytes]:
    """Open a device or a pipe for writing.

    For a name such as /dev/stdout or /dev/fd/3, the descriptor is duplicated. Output thus continues at the
    position of the descriptor.
    """
    found = _DESCRIPTOR.fullmatch(str(path))
    if found is None:
        return path.open("wb")
    if found["stream"]:
        stream = getattr(sys, found["stream"])
        stream.flush()
        return os.fdopen(os.dup(stream.fileno()), "wb")
    return os.fdopen(os.dup(int(found["number"])), "wb")


def _is_special(path: Path) -> bool:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    directory = path.parent.resolve()
    within = any(directory.is_relative_to(devices) for devices in _DEVICES)
    return path.exists() and (within or not path.is_file())


@contextmanager
def _naming(path: Path, what: str) -> Iterator[None]:
    """Convert an OSError of the block to an error with the name of the file and a remedy."""
    try:
        yield
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot write {what}: {e.strerror or e}; {_remedy(e)}") from e


def store_ahead(file: IO[bytes], since: int) -> int:
    """Make the system begin to write a file's data to disk, from offset `since`, and do not wait for it.

    Called repeatedly while a large file is written, so that the final fsync has little left to write. Returns
    the length of the file in bytes.
    """
    if not (hasattr(os, "posix_fadvise") and file.seekable()):
        return since
    file.flush()
    reach = file.tell()
    with suppress(OSError):
        # Linux cannot drop cached pages that are not yet on disk, but this call makes it begin to write them.
        os.posix_fadvise(file.fileno(), since, reach - since, os.POSIX_FADV_DONTNEED)
    return reach


def _remedy(e: OSError) -> str:
    if isinstance(e, FileNotFoundError):
        return "create its directory first"
    if isinstance(e, IsADirectoryError):
        return "give the name of a file"
    if isinstance(e, PermissionError):
        return "change the permissions of its directory, or write elsewhere"
    return "free some space or write elsewhere; nothing was left under that name"
