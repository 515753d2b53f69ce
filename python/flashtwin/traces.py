"""Trace files: summaries, and conversion to a form that is fast to read."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from . import _core
from ._support import words
from ._support.partials import remove_dead_partials
from ._support.schema import shortened
from .errors import FlashtwinError, WorkloadError


@dataclass(frozen=True)
class TraceOptions:
    """Options for reading a trace. If an option is None, it is detected from the file or has its default.

    Attributes:
        format: name of the trace format, one of `trace_formats()`.
        columns: columns of a table (text, Parquet, Arrow) to read, by name or number, with their units, such
            as "time=ts:us,offset=lba:sectors,size=len:bytes,op=type" (docs/traces.md). Replaces `format`.
        time_unit: unit of the time column: s, ms, us, filetime (100 ns), ns or ps.
        address_unit: unit of the address column: bytes, sectors (512 bytes), pages (4096 bytes), or a number
            of bytes.
        event: for blkparse and blktrace, the event that counts as a request: D (issued to the driver, the
            default) or Q (queued by the file system).
        volumes: how the addresses of several disks in one trace are placed: "end-to-end" (default: one after
            the other), "overlay" (all at their own addresses), or "only:NAME" (only one disk is read).
        addresses: addresses of requests: "as-is" (default), or "compact" (without the parts of the address
            space that no request accesses).
        one_in: keep the requests of about one in this number of pieces of the address space, packed together,
            and divide times by it (docs/scaling.md); 1 by default.
        max_bad_lines: number of unreadable lines to skip (0 by default). If there are more, reading fails.
        reorder_window: number of requests within which times are sorted; 65536 by default.
        limit: maximum number of requests to read from the start.
    """

    format: str | None = None
    columns: str | None = None
    time_unit: str | None = None
    address_unit: str | None = None
    event: str | None = None
    volumes: str | None = None
    addresses: str | None = None
    one_in: int | None = None
    max_bad_lines: int | None = None
    reorder_window: int | None = None
    limit: int | None = None

    def to_json(self) -> str:
        """Return the options in the form that the compiled module accepts."""
        known = trace_formats()
        if self.format is not None and self.format not in known:
            raise FlashtwinError(f'format: found "{self.format}"; {words.known_names(self.format, known)}')
        given: dict[str, Any] = {key: value for key, value in asdict(self).items() if value is not None}
        if self.volumes is not None and self.volumes.startswith("only:"):
            given["volumes"] = {"only": self.volumes.removeprefix("only:")}
        return json.dumps(given)


class TraceInfo(dict[str, Any]):
    """The summary of a trace: a dict that prints as text."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        super().__init__(values)
        self._text = text

    def __repr__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Converted:
    """Result of `convert`.

    Attributes:
        requests: number of requests written.
        size_bytes: size of the new file.
        source: description of the trace that was read, with detected or given format and units.
        warnings: possible problems of the trace.
    """

    requests: int
    size_bytes: int
    source: str
    warnings: list[str]


def trace_formats() -> list[str]:
    """Return the names of the trace formats that are read."""
    return _core.trace_formats()


def trace_info(path: str | os.PathLike[str], options: TraceOptions | None = None) -> TraceInfo:
    """Read a trace once and summarise it: requests, sizes, footprint, span, gaps, sequentiality."""
    as_json, text = _core.trace_info(path, (options or TraceOptions()).to_json())
    return TraceInfo(json.loads(as_json), text)


def convert(
    src: str | os.PathLike[str], dst: str | os.PathLike[str], options: TraceOptions | None = None
) -> Converted:
    """Write a trace as `.csv` or as `.ftb` (binary), optionally followed by `.zst` or `.gz`.

    The new file receives its name only when it is complete.
    """
    remove_dead_partials(Path(dst))
    return Converted(*_core.convert(src, dst, (options or TraceOptions()).to_json()))


#: Directory of the recorded traces that come with flashtwin.
_EXAMPLES = Path(__file__).parent / "data"
#: Prefix with which a workload refers to a recorded trace that is included in flashtwin.
EXAMPLE = "example:"


def examples() -> list[str]:
    """Return the names of the recorded traces that come with flashtwin (as a workload: `example:NAME`)."""
    return sorted(path.name.partition(".")[0] for path in _EXAMPLES.glob("*.csv.zst"))


def example_trace(name: str = "postgres_pgbench") -> Path:
    """Return the path of a recorded trace that comes with flashtwin, by default PostgreSQL under pgbench.

    Raises:
        WorkloadError: flashtwin has no such trace.
    """
    if name not in examples():
        near = get_close_matches(name, examples(), 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(examples())}"
        raise WorkloadError(f"{shortened(EXAMPLE + name)}: no such trace comes with flashtwin; {hint}")
    return _EXAMPLES / f"{name}.csv.zst"
