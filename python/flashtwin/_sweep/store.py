"""Finished cells of a sweep on disk, one small file per cell. Incomplete files are detected and ignored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .._results.body import summary_line
from .._support.folders import Folder

_MAGIC = b"flashtwin cell 1"
_CELLS = "cells"
_LOGS = "requests"


class Store:
    """Finished cells in a directory, by key. If `logs` is true, a cell without its log is unfinished."""

    def __init__(self, folder: Folder, logs: bool = False) -> None:
        self._folder = folder
        self._names = folder.names(_CELLS)
        self._logs = folder.names(_LOGS) if logs else None

    def prepare(self) -> None:
        """Create the subfolder for cells."""
        self._folder.make(_CELLS)
        self._folder.remove_dead_partials(_CELLS)
        if self._logs is not None:
            self._folder.make(_LOGS)
            self._folder.remove_dead_partials(_LOGS)

    @staticmethod
    def log_name(key: str) -> str:
        """Name of a cell's per-request log in the folder."""
        return f"{_LOGS}/{key}.parquet"

    def read(self, key: str) -> bytes | None:
        """Return the result of a finished cell; None if it is absent or incomplete."""
        name = f"{key}.cell"
        if name not in self._names or (self._logs is not None and f"{key}.parquet" not in self._logs):
            return None
        data = self._folder.read(f"{_CELLS}/{name}") or b""
        head, _, body = data.partition(b"\n")
        return body if head == _head(key, body) else None

    def summaries(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the summaries of finished cells.

        Histograms are not kept, because they would fill the memory.
        """
        found = ((key, self.read(key)) for key in keys)
        return {key: summary_line(body) for key, body in found if body is not None}

    def write(self, key: str, body: bytes) -> None:
        """Store the result of a finished cell."""
        name = f"{key}.cell"
        self._folder.write(f"{_CELLS}/{name}", _head(key, body) + b"\n" + body, "a finished cell")
        self._names.add(name)


def _head(key: str, body: bytes) -> bytes:
    return b" ".join([_MAGIC, key.encode(), hashlib.sha256(body).hexdigest().encode()])
