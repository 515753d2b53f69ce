"""Converts tables (Parquet, Arrow, data frames of other packages) to CSV for the trace readers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns of the request log that a replay needs. Rows are sorted by the first one.
_LOG = ["request", "op", "offset_bytes", "size_bytes", "arrival_ps"]


def write_text(source: int, target: int) -> None:
    """Read a table from the file descriptor `source`, and write it as text to the descriptor `target`."""
    with os.fdopen(os.dup(source), "rb") as file, os.fdopen(os.dup(target), "wb") as out:
        file.seek(0)
        _write(*_open(file), out)


def write_table(rows: object, path: Path) -> list[str]:
    """Write a table that has the method `__arrow_c_stream__` as text. Return the names of its columns."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(rows)
    with path.open("wb") as out:
        if _is_log(reader.schema):
            _write(*_log(reader.read_all()), out)
        else:
            _write(reader.schema, (pa.Table.from_batches([batch]) for batch in reader), out)
    return list(reader.schema.names)


def _write(schema: pa.Schema, batches: Iterator[pa.Table], out: BinaryIO) -> None:
    import pyarrow.csv as pacsv

    form = _as_text(schema.empty_table().combine_chunks()).schema
    with pacsv.CSVWriter(out, form) as writer:
        for batch in batches:
            writer.write_table(_as_text(batch).cast(form))


def _open(file: BinaryIO) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Return the schema of a table, and its rows in batches.

    The rows of a request log are in the order of the requests.
    """
    import pyarrow as pa

    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"PAR1"):
        import pyarrow.parquet as pq

        parquet = pq.ParquetFile(file)
        schema: pa.Schema = parquet.schema_arrow
        if _is_log(schema):
            return _log(parquet.read(_LOG))
        return schema, (pa.Table.from_batches([batch]) for batch in parquet.iter_batches())
    reader: Any = pa.ipc.open_file(file) if magic == b"ARROW1" else pa.ipc.open_stream(file)
    if _is_log(reader.schema):
        return _log(reader.read_all())
    if magic == b"ARROW1":
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        batches = iter(reader)
    return reader.schema, (pa.Table.from_batches([batch]) for batch in batches)


def _log(table: pa.Table) -> tuple[pa.Schema, Iterator[pa.Table]]:
    table = table.select(_LOG)
    return table.schema, iter([table.sort_by("request")])


def _is_log(schema: pa.Schema) -> bool:
    return {*_LOG} <= {*schema.names}


def _as_text(table: pa.Table) -> pa.Table:
    """Convert each column to a type that CSV can hold: the text of a value is a single line.

    Columns of other types become empty.
    """
    names = [_one_line(name) for name in table.column_names]
    return _table([_column(column) for column in table.columns], names)


def _table(columns: list[Any], names: list[str]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_arrays(columns, names=names)


def _one_line(text: str) -> str:
    return "".join(" " if c in '\r\n"' else c for c in text)


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_dictionary(column.type):
        return _column(column.cast(column.type.value_type))
    if types.is_string_view(column.type):
        column = column.cast(pa.string())
    kind: Any = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return pc.replace_substring_regex(column, pattern='[\r\n"]', replacement=" ")
    if types.is_duration(kind):
        return column.cast(pa.int64())
    if types.is_float16(kind):
        return column.cast(pa.float32())
    has_text = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_temporal)
    if any(test(kind) for test in has_text) and not types.is_interval(kind):
        return column
    return pa.chunked_array([pa.nulls(len(column), pa.int8())])
