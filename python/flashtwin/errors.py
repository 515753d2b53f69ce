"""The exceptions of flashtwin. Every message states what was wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import DeviceError, FlashtwinError, SnapshotError, WorkloadError

if TYPE_CHECKING:
    from .comparison import Comparison
    from .hit_ratios import HitTable
    from .result import Result
    from .results import Results

__all__ = ["DeviceError", "FlashtwinError", "Interrupted", "OutputError", "SnapshotError", "WorkloadError"]


class OutputError(FlashtwinError):
    """A file of a run could not be written. `result` holds the whole result of the run."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended work early. `partial` holds the results so far, or None if there are none."""

    def __init__(self, partial: Result | Comparison | HitTable | Results | None) -> None:
        super().__init__("interrupted")
        self.partial = partial
