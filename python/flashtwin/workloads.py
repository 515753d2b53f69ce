"""Opens the workload that the user names: a trace file, a table or a generated load."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeAlias, runtime_checkable

from . import _core
from ._devices import device, devices
from ._support import words
from ._support.inputs import exists, is_dir, is_file
from ._support.repeating import Repeat
from .errors import WorkloadError
from .traces import EXAMPLE, TraceOptions, example_trace, trace_info


@runtime_checkable
class ArrowTable(Protocol):
    """A table with the Arrow PyCapsule interface, as in pandas (from 2.2 on), polars, pyarrow and DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow."""


#: A workload as an argument of `run`, `compare` and `hits`: a trace file, a generated load, or a table with
#: one row per request.
WorkloadLike: TypeAlias = str | os.PathLike[str] | ArrowTable


@dataclass(frozen=True)
class Source:
    """A workload that can be opened several times: a trace file or a generated load.

    Attributes:
        path: the trace file; None for a generated load.
        text: name of the workload in messages.
        options: how to read the trace.
        factor: the device is 1/`factor` of that for which the workload is meant (docs/scaling.md).
        folder: temporary directory that contains the file; it is removed together with the source. None for a
            file of the user.
    """

    path: Path | None
    text: str
    options: TraceOptions
    factor: float = 1.0
    folder: TemporaryDirectory[str] | None = None

    def open(self, range_bytes: int, seed: int, repeat: Repeat | None = None) -> _core.Workload:
        """Open the workload at its start, repeated if `repeat` is given.

        A generated load needs `range_bytes`.
        """
        repeated = None if repeat is None else (repeat.passes, repeat.shift_bytes, range_bytes)
        if self.path is None:
            return _core.Workload.generated(self.text, range_bytes, seed, repeated, self.factor)
        try:
            return _core.Workload.trace(self.path, self.options.to_json(), repeated)
        except WorkloadError as e:
            if self.folder is None:
                raise
            # The message must not have the path of the temporary file, because the caller does not know it.
            raise WorkloadError(str(e).replace(str(self.path), self.text)) from None

    def smaller(self, factor: float) -> Source:
        """Return the workload for a device with 1/`factor` of the capacity."""
        if self.path is None:
            return replace(self, factor=factor)
        one_in = round(factor) * (self.options.one_in or 1)
        return replace(self, options=replace(self.options, one_in=one_in))

    def beyond(self, device_bytes: int) -> str | None:
        """Return a message if addresses of a trace exceed the size of the device, otherwise None.

        The message gives the size that the trace requires, devices that are large enough, and a remedy.
        """
        if self.path is None:
            return None
        info = trace_info(self.path, self.options)
        extent: int = info["address_max_bytes"]
        if extent <= device_bytes:
            return None
        fit = [name for name in devices() if device(name).exported_bytes >= extent]
        held = (
            f"devices that hold it: {', '.join(fit)}"
            if fit
            else "no device that comes with flashtwin holds it"
        )
        reach = f"the trace reaches up to byte {extent} ({words.size(extent)})"
        remedy = "addresses = compact (--addresses compact) removes addresses that the trace does not access"
        if info["volumes_total"] > 1 and self.options.volumes in (None, "end-to-end"):
            largest = max(volume["extent_bytes"] for volume in info["volumes"])
            remedy = (
                f"its {info['volumes_total']} volumes are laid end to end, the largest has "
                f"{words.size(largest)}: volumes = overlay (--volumes overlay) gives all the same addresses, "
                f"as MQSim does, and only:NAME selects one; {remedy}"
            )
        return f"{reach}, the device has {device_bytes}; {held}; {remedy}"

    def estimate_requests(self) -> int | None:
        """Return the approximate number of requests, for a progress bar; None if it is unknown."""
        # The requests of a pipe are not estimated, because it can be read only once.
        if self.path is None or not is_file(self.path):
            return None
        lines = _core.estimate_lines(self.path)
        return None if lines is None else lines // (self.options.one_in or 1)


#: Names that other tools use for keys of a load.
_SYNONYMS = {
    "alpha": "theta",
    "skew": "theta",
    "zipf": "theta",
    "bs": "size",
    "block_size": "size",
    "iops": "rate",
    "io_size": "size",
    "rw": "write",
    "writes": "write",
    "working_set": "range",
    "count": "requests",
    "n": "requests",
}


def generated(text: str) -> Source:
    """Check the text of a generated load, and return it as a source."""
    try:
        _core.Workload.generated(text, 1 << 62, 0)
    except WorkloadError as e:
        unknown = re.search(r'key "(\w+)" is not known; available: (.*)', str(e))
        meant = _SYNONYMS.get(unknown[1]) if unknown else None
        if unknown and meant in unknown[2].split(", "):
            raise WorkloadError(f"{e}; did you mean {meant}?") from None
        raise
    return Source(None, text, TraceOptions())


#: Columns of flashtwin's own traces (docs/traces.md, CSV). Tables with these columns need no option.
_OWN = {"time_us": "time=time_us:us", "op": "op=op", "offset_bytes": "offset=offset_bytes:bytes"}
_OWN |= {"size_bytes": "size=size_bytes:bytes"}


def table(rows: ArrowTable, options: TraceOptions) -> Source:
    """Write a table as text to a temporary file, which is removed with the source. Return the source."""
    from ._support.columnar import write_table

    name = type(rows).__name__
    folder = TemporaryDirectory(prefix="flashtwin-")
    path = Path(folder.name) / name
    try:
        names = write_table(rows, path)
    except OSError as e:
        raise WorkloadError(f"{name}: cannot write it as text in TMPDIR: {e}") from e
    if options.format is None and options.columns is None and {*_OWN} <= {*names}:
        columns = [*_OWN.values(), *(["placement=placement"] if "placement" in names else [])]
        options = replace(options, columns=",".join(columns))
    return Source(path, name, options, folder=folder)


def source(workload: WorkloadLike, options: TraceOptions | None = None) -> Source:
    """Return a workload as a source: a generated load or a trace.

    A trace is an existing file or pipe, any `Path`, "-", "example:NAME", or a table.
    """
    options = options or TraceOptions()
    if isinstance(workload, ArrowTable):
        return table(workload, options)
    if not isinstance(workload, str | os.PathLike):
        raise WorkloadError(
            f"workload: found {type(workload).__name__}; must be the path of a trace, a generated load, or "
            "a table with a method __arrow_c_stream__ (of pandas from 2.2 on, polars, pyarrow, DuckDB)"
        )
    if isinstance(workload, str) and workload.startswith(EXAMPLE):
        return Source(example_trace(workload.removeprefix(EXAMPLE)), workload, options)
    path = Path(workload)
    if not isinstance(workload, str) or workload == "-" or (exists(path) and not is_dir(path)):
        return Source(path, str(workload), options)
    try:
        return generated(workload)
    except WorkloadError as e:
        looks_like_path = "/" in workload.split(":")[0] or "." in workload.split(":")[0]
        near = _nearest_file(path) if ":" not in workload else None
        if looks_like_path or near:
            kind = "is a directory, not a trace" if is_dir(path) else "no such trace file"
            kind += f"; did you mean {near}?" if near else ""
            raise WorkloadError(f"{workload}: {kind}") from None
        raise WorkloadError(f"{e} (and there is no trace file {workload!r})") from None


def _nearest_file(path: Path) -> Path | None:
    """Return the file with the name most similar to `path` in its directory; None if there is none."""
    try:
        names = [file.name for file in path.parent.iterdir() if is_file(file)]
    except (OSError, ValueError):
        return None
    near = get_close_matches(path.name, names, 1)
    return path.parent / near[0] if near else None
