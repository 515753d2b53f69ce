"""The exceptions of flashtwin. Every message states what was wrong, where, and the remedy."""

from __future__ import annotations

from ._core import DeviceError, FlashtwinError, SnapshotError, WorkloadError

__all__ = ["DeviceError", "FlashtwinError", "Interrupted", "SnapshotError", "WorkloadError"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the work early.

    Attributes:
        partial: results so far, of the type that the call returns; None if there are none.
    """

    def __init__(self, partial: object) -> None:
        super().__init__("interrupted")
        self.partial = partial
