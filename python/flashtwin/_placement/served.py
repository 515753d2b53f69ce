"""Placement rules of the user for a served device, which calls them over a Unix socket."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

from .. import _core


class ServedRules:
    """A thread in which the rules of the user reply to the questions of one served device.

    Attributes:
        path: socket to which the server connects.
        error: exception of a rule. After an exception, the device cannot be used, and clients receive errors.
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

        Call it after the server has ended, or if the server was never started.
        """
        self._closed = True
        # If no server has connected, this connection ends the thread's wait for one.
        with socket.socket(socket.AF_UNIX) as own, suppress(OSError):
            own.connect(str(self.path))
        self._thread.join()
        self.path.unlink(missing_ok=True)
