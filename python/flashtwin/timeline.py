"""The timeline of a run within a window of time: a trace for Perfetto, and a table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ._support import tables
from ._support.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from . import _core


@dataclass(frozen=True)
class Window:
    """The part of a run that a timeline shows. Operations that begin in the window are shown to their end.

    Attributes:
        from_s: beginning, in seconds of virtual time from the start of the measurement.
        length_s: length in seconds.
    """

    from_s: float = 0.0
    length_s: float = 0.1


@dataclass(frozen=True)
class Timeline:
    """Timeline of all parts of a device within a window of time (docs/timeline.md).

    `len` is the number of slices; 0 if the run ended before the window began.

    Attributes:
        trace: a trace in Perfetto's format (`TrackEvent`), for ui.perfetto.dev.
        recorded: the recorded columns, from which `slices` is built.
        cut_at_s: None if the timeline is complete. If the timeline became full (half a million entries)
            before the window ended, the end of the timeline in seconds from the start of the measurement.
    """

    trace: bytes
    recorded: _core.Slices = field(repr=False, compare=False)
    cut_at_s: float | None

    @cached_property
    def slices(self) -> pa.Table:
        """Return the slices and instants as a table, slices first; docs/timeline.md describes the columns."""
        return tables.slices_table(self.recorded)

    def __len__(self) -> int:
        return len(self.recorded)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file. The file is either complete or absent."""
        with whole_file(Path(path), "the timeline") as file:
            file.write(self.trace)

    def __repr__(self) -> str:
        cut = "" if self.cut_at_s is None else f", cut at {self.cut_at_s} s"
        return f"Timeline({len(self)} slices, {len(self.trace)} bytes{cut})"
