"""Placement rules of the user for a served device. The server calls them over a Unix socket."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

from .. import _core


class ServedRules:
    """A thread that runs the user's rules for one served device and replies to its calls.

    Attributes:
        path: socket to which the server connects.
        error: exception that a rule raised, or None. After an exception, all requests of clients fail.
    """

    def __init__(self, place: Path, made: tuple[object | None, object | None]) -> None:
        self.path = place / "rules"
        self.error: BaseException | None = None
        self._made = made
        self._closed = False
        self._socket = _core.RulesSocket(self.path)
        self._thread = threading.Thread(target=self._reply, name="flashtwin-rules", daemon=True)
        self._thread.start()

    def _reply(self) -> None:
        try:
            self._socket.reply(*self._made)
        except BaseException as e:
            if not self._closed:
                self.error = e

    def close(self) -> None:
        """Wait for the end of the thread.

        Call this method after the server has ended, or if the server was never started.
        """
        self._closed = True
        # A thread that still waits for the server to connect accepts this connection instead, and ends.
        with socket.socket(socket.AF_UNIX) as own, suppress(OSError):
            own.connect(str(self.path))
        self._thread.join()
        self.path.unlink(missing_ok=True)
