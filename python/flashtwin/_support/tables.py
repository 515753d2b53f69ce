"""Conversion of the compiled module's columns to Arrow tables, and writing of the request log as Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from .. import _core
from .files import store_ahead, whole_file, write_text
from .words import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from .._core import Columns, Histogram, Slices

_OPS = ["read", "write", "trim", "flush"]
_STATUS = ["ok", "read-only", "failed"]

#: Parts of a response time, with descriptions. For each request, the parts add up to `response_ps` exactly.
PARTS = dict(_core.parts())

_NUMBERS = {
    "request": "uint64",
    "offset_bytes": "uint64",
    "size_bytes": "uint64",
    "pages": "uint32",
    "hits": "uint32",
    "arrival_ps": "uint64",
    "response_ps": "uint64",
    **{f"{part}_ps": "uint64" for part in PARTS},
}
_GC_NUMBERS = {"member": "uint32", "begin_ns": "uint64", "end_ns": "uint64"}
_WORDS = {"op": _OPS, "status": _STATUS, "kind": ["own", "forced"]}
#: First characters of a text that a spreadsheet would interpret as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: Requests per row group of the Parquet file. The columns of a row group take 3 MB, so that they do not
#: displace the data of the model from the processor's caches.
_ROW_GROUP = 32 * 1024
#: Columns whose values increase from row to row.
_RISING = ["request", "arrival_ps"]
#: Settings of the Parquet file. The log is written during the run, so encoding must be faster than the model.
#: Dictionaries are off: few numbers repeat, and building a dictionary would double the time. Minimum and
#: maximum per row group are stored only for increasing columns, because they help to find rows only there.
_LOG_FORM: dict[str, Any] = {
    "compression": "lz4",
    "use_dictionary": ["op", "status"],
    "column_encoding": dict.fromkeys([*_RISING, "offset_bytes"], "DELTA_BINARY_PACKED"),
    "write_statistics": _RISING,
}


def import_ahead() -> None:
    """Start a thread that imports the modules for the request log, while the device is preconditioned."""
    Thread(target=import_module, args=["pyarrow.parquet"]).start()


@cache
def _form(names: tuple[str, ...]) -> pa.Schema:
    """Return a schema with the given column names.

    Columns are not nullable, because nullable ones also store which cells are null.
    """
    import pyarrow as pa

    def kind(name: str) -> pa.DataType:
        if name in _WORDS:
            return pa.dictionary(pa.uint8(), pa.string())
        return pa.type_for_alias({**_NUMBERS, **_GC_NUMBERS}[name])

    return pa.schema([pa.field(name, kind(name), nullable=False) for name in names])


@cache
def _words(name: str) -> pa.Array:
    import pyarrow as pa

    return pa.array(_WORDS[name])


def _batch(columns: Columns) -> pa.RecordBatch:
    import pyarrow as pa

    form = _form(tuple(columns))
    arrays = []
    for field, data in zip(form, columns.values(), strict=True):
        is_word = field.name in _WORDS
        kind = field.type.index_type if is_word else field.type
        rows = len(data) * 8 // kind.bit_width
        array = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)])
        arrays.append(pa.DictionaryArray.from_arrays(array, _words(field.name)) if is_word else array)
    return pa.RecordBatch.from_arrays(arrays, schema=form)


def _schema() -> pa.Schema:
    return _form(("request", "op", "status", *list(_NUMBERS)[1:]))


class RequestTable:
    """Collects the per-request log in memory."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def add(self, columns: Columns) -> None:
        """Add a batch of completed requests."""
        self._batches.append(_batch(columns))

    def table(self) -> pa.Table:
        """Return all rows so far."""
        import pyarrow as pa

        return pa.Table.from_batches(self._batches, schema=_schema())


@contextmanager
def request_file(path: Path) -> Iterator[Callable[[Columns], None]]:
    """Write the request log as Parquet. Yields a function that writes a batch of requests."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting: list[pa.RecordBatch] = []
    failures: list[OSError] = []

    with whole_file(path, "the request log") as file:
        # The writer is not used as a context manager, because it must not write its footer after an error.
        writer = pq.ParquetWriter(file, _schema(), **_LOG_FORM)

        stored = 0

        def flush() -> None:
            nonlocal stored
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting), row_group_size=_ROW_GROUP)
                waiting.clear()
                stored = store_ahead(file, stored)

        def add(columns: Columns) -> None:
            if failures:
                return
            waiting.append(_batch(columns))
            if sum(batch.num_rows for batch in waiting) >= _ROW_GROUP:
                try:
                    flush()
                except OSError as e:
                    # After a write error, the run continues, because its summary does not depend on the log.
                    failures.append(e)
                    waiting.clear()

        yield add
        if failures:
            raise failures[0]
        flush()
        writer.close()


def series_table(points: list[dict[str, Any]]) -> pa.Table:
    """Return the time series of a summary as a table."""
    import pyarrow as pa

    floats = ["mb", "read_mean_us", "write_mean_us", "max_us", "hit_ratio", "gc_wait_share", "rebuilt_share"]
    fields = [("t_s", pa.float64()), ("reads", pa.uint64()), ("writes", pa.uint64())]
    schema = pa.schema([*fields, *((name, pa.float64()) for name in floats)])
    # Values are rounded, because sums of floats have binary noise below a picosecond or a byte.
    rows = [{**point, "t_s": round(point["t_s"], 12), "mb": round(point["mb"], 6)} for point in points]
    return pa.Table.from_pylist(rows, schema=schema)


def gc_table(columns: Columns) -> pa.Table:
    """Return the garbage collections of an array's members as a table."""
    import pyarrow as pa

    return pa.Table.from_batches([_batch(columns)])


def slices_table(slices: Slices) -> pa.Table:
    """Return the slices and instants of a timeline as a table."""
    import pyarrow as pa

    word = pa.dictionary(pa.int32(), pa.string())
    numbers = pa.list_(pa.uint64())
    kinds = {
        "track": word,
        "name": word,
        "member": pa.uint32(),
        "die": pa.uint32(),
        "channel": pa.uint32(),
        "begin_ps": pa.uint64(),
        "duration_ps": pa.uint64(),
        "request": pa.uint64(),
        "lpn": numbers,
        "causes": numbers,
        "details": pa.string(),
    }
    columns = slices.columns()
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


def write_table(table: pa.Table, path: Path, what: str) -> None:
    """Write a table as Parquet, or as CSV if its name does not end in .parquet."""
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        with whole_file(path, what) as file:
            pq.write_table(table, file, compression="zstd")
        return
    write_text(path, csv_text(table), what)


def csv_text(table: pa.Table) -> str:
    """Format a table as CSV.

    An apostrophe is put before a text that a spreadsheet would interpret as a formula.
    """
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(map(_csv_cell, table.column_names))
    rows.writerows(map(_csv_cell, row) for row in zip(*table.to_pydict().values(), strict=True))
    return out.getvalue()


def _csv_cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return shown(f"'{value}" if value.startswith(_FORMULA) else value)


def history_table(windows: list[dict[str, Any]]) -> pa.Table:
    """Return the history of a run as a table with one row per window of virtual time."""
    import pyarrow as pa

    names = ["t_s", "length_s", "iops", "mb_per_s", "mean_us", "p99_us", "hit_ratio", "inside_mean"]
    fields = [(name, pa.float64()) for name in [*names, "gc_write_amplification"]]
    fields.append(("gc_share_by_chip", pa.list_(pa.float64())))
    if any("owners" in window for window in windows):
        counts = ("live_pages", "units", "host_pages", "moved_in_pages", "moved_out_pages")
        owner = pa.struct([("name", pa.string()), *((name, pa.int64()) for name in counts)])
        fields.append(("owners", pa.list_(owner)))
    schema = pa.schema(fields)
    return pa.Table.from_pylist(windows, schema=schema)


def cdf_table(histogram: Histogram) -> pa.Table:
    """Return the cumulative distribution of response times, with one row per bucket of the histogram."""
    import pyarrow as pa

    total = sum(count for _, count in histogram)
    seen = 0
    shares = []
    for _, count in histogram:
        seen += count
        shares.append(seen / total)
    return pa.table(
        {
            "response_us": pa.array([ns * 1e-3 for ns, _ in histogram], pa.float64()),
            "share": pa.array(shares, pa.float64()),
        }
    )
