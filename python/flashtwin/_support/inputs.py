"""Reading of files that the user gives: regular files of limited size, with text, TOML or JSON.

The nesting depth of TOML and JSON is limited.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import IO, Any

from ..errors import FlashtwinError

#: Maximum sizes of a file of settings and of a file of results, in bytes.
SETTINGS_MAX = 4 << 20
RESULTS_MAX = 64 << 20


def _mode(path: str | os.PathLike[str]) -> int:
    """Return kind and permissions of a file; 0 if it does not exist or its name is invalid."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file or directory."""
    return bool(_mode(path))


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a regular file."""
    return stat.S_ISREG(_mode(path))


def is_dir(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a directory."""
    return stat.S_ISDIR(_mode(path))


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file.

    Raises:
        OSError: the file cannot be opened, or it is a pipe or a device, which might block or never end.
    """
    # Opening a pipe would wait for its writer.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(file, "rb")
    os.close(file)
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"))
    kind = next((name for is_kind, name in kinds if is_kind(mode)), "a device")
    raise OSError(0, f"it is {kind}; give a regular file")


def read_bytes(path: Path, what: str, bytes_max: int) -> bytes:
    """Read a whole regular file.

    Args:
        path: path of the file.
        what: description for messages, such as "study".
        bytes_max: maximum size. Longer files are rejected before they are read.

    Raises:
        FlashtwinError: it cannot be read or is too long.
    """
    try:
        with open_regular(path) as file:
            data = file.read(bytes_max + 1)
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot read this {what}: {e.strerror}") from e
    if len(data) > bytes_max:
        raise FlashtwinError(f"{path}: longer than {_size(bytes_max)}; a {what} is shorter")
    return data


def _size(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n} bytes"


def read_text(path: Path, what: str, bytes_max: int = SETTINGS_MAX) -> str:
    """Read a whole text file, in UTF-8.

    Raises:
        FlashtwinError: the file cannot be read, is too long, or is not text.
    """
    data = read_bytes(path, what, bytes_max)
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise FlashtwinError(f"{path}: not a text file: byte {e.start} is not UTF-8") from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        FlashtwinError: the text is not TOML, or is nested too deeply.
    """
    # Imported only here, because commands that only print help need no TOML.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        values: dict[str, Any] = tomllib.loads(text)
        return values
    except RecursionError:
        raise FlashtwinError(f"{path}: not TOML that can be read: it is nested too deep") from None
    except tomllib.TOMLDecodeError as e:
        raise FlashtwinError(f"{path}: not TOML: {e}") from None
    except ValueError:
        raise FlashtwinError(f"{path}: not TOML that can be read: a number has thousands of digits") from None


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 (any value of JSON)
    """Parse JSON.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
