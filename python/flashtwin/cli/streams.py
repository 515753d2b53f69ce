"""Standard streams of a command: always open, named in error messages, with escaped control characters.

Names of files and policies may contain characters that control a terminal. Such characters are written as
escapes. Only the package rich writes to `unescaped` streams, because it writes control sequences. Texts that
it prints are escaped beforehand.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from .._support.words import shown

_STDOUT, _STDERR = 1, 2


class StdoutError(Exception):
    """An error of standard output. Errors of other files that a command writes have other types."""


class _Stdout(io.FileIO):
    """File descriptor 1. Its errors name standard output."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            raise
        except OSError as e:
            raise StdoutError(f"cannot write to standard output: {e.strerror}") from e


class _Escaping(io.TextIOWrapper):
    """A text stream that writes control characters as escapes."""

    def write(self, text: str) -> int:
        super().write(shown(text))
        return len(text)

    @property
    def unescaped(self) -> _Unescaped:
        """Return the stream for texts that are already escaped."""
        return _Unescaped(self)


class _Unescaped:
    """A stream for rich, which writes control sequences itself."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text unchanged."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def prepare() -> None:
    """Prepare the standard streams for a command.

    Raises:
        StdoutError: standard output is closed.
    """
    null = os.open(os.devnull, os.O_RDWR)
    # Open /dev/null under the numbers of closed standard streams, so that no file of the command receives one
    # of them.
    while null <= _STDERR:
        null = os.dup(null)
    os.close(null)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (it stays open)
    elif sys.stderr is sys.__stderr__:
        sys.stderr = _escaping(sys.stderr, io.FileIO(_STDERR, "wb", closefd=False))
    if sys.stdout is None:
        raise StdoutError("standard output is closed; redirect it to a file or to /dev/null")
    if sys.stdout is sys.__stdout__:
        sys.stdout = _escaping(sys.stdout, _Stdout(_STDOUT, "wb", closefd=False))


def _escaping(stream: Any, raw: io.FileIO) -> io.TextIOWrapper:  # noqa: ANN401 (typeshed has several)
    lines = stream is sys.stderr or stream.isatty()
    # Bytes of file names that are not UTF-8 are shown as escapes.
    return _Escaping(io.BufferedWriter(raw), stream.encoding, errors="backslashreplace", line_buffering=lines)


def abandon_stdout() -> None:
    """Discard the remaining output, because the interpreter would fail again to write it at its exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
