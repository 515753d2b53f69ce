"""The Parquet dataset of a sweep: one row per cell, with its complete configuration and all figures."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._support.folders import Folder
from ..errors import FlashtwinError

if TYPE_CHECKING:
    import pyarrow as pa

#: Name of the dataset in the directory of a sweep.
FILE = "results.parquet"
METADATA = b"flashtwin"
#: Keys of a summary that do not become columns of figures. Most of them are columns of the configuration. The
#: warnings become one text, and the time series is omitted.
_LEFT_OUT = {
    "device",
    "policy",
    "workload",
    "seed",
    "precondition",
    "flashtwin_version",
    "series",
    "warnings",
}


def column_of(axis: str) -> str:
    """Return the name of the column of an axis.

    For a key of the device, it is `set_` and the key. For a setting of the run, it is `run_` and the setting.
    """
    if axis.startswith("run."):
        return axis.replace(".", "_")
    return f"set_{axis.replace('.', '_')}" if "." in axis else axis


def figures_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return all figures of a summary by the names of their columns, such as all_mean_us."""
    kept = {key: value for key, value in summary.items() if key not in _LEFT_OUT}
    figures = dict(_flat(kept, ""))
    figures["warnings"] = "; ".join(summary["warnings"])
    return figures


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (what JSON holds)
    if isinstance(value, Mapping):
        if value.keys() == {"name", "count"}:
            yield name, value["count"]
            return
        for key, inner in value.items():
            yield from _flat(inner, f"{name}_{key}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for i, inner in enumerate(value):
            yield from _flat(inner, f"{name}_{inner.get('name', i)}")
    elif value is not None and value != []:
        yield name, value


def write(folder: Folder, table: pa.Table) -> None:
    """Write the dataset. Equal cells give a file with equal bytes."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", row_group_size=64 * 1024)
    folder.write(FILE, out.getvalue(), "the results")


def read(folder: Folder) -> tuple[pa.Table, dict[str, Any]]:
    """Read a dataset and the description of its experiment.

    Raises:
        FlashtwinError: there is no dataset.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = folder.read(FILE)
    if data is None:
        raise FlashtwinError(
            f"{folder.name}: no {FILE} here; give the directory of a sweep, and run the sweep again if it "
            "was cut off"
        )
    try:
        # Arrow must not use threads. A thread that releases `data` while the interpreter exits would abort
        # the process.
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            table = file.read(use_threads=False)
        about = json.loads((table.schema.metadata or {})[METADATA])
    except (pa.ArrowException, OSError, KeyError, ValueError) as e:
        raise FlashtwinError(f"{folder.name}/{FILE}: not written by flashtwin sweep: {e}") from None
    return table, about


def numeric(table: pa.Table, names: Iterable[str]) -> list[str]:
    """Return the given names, without those that are not columns of numbers."""
    import pyarrow as pa

    fields = {field.name: field.type for field in table.schema}
    return [
        n
        for n in names
        if n in fields and (pa.types.is_integer(fields[n]) or pa.types.is_floating(fields[n]))
    ]
