"""The Parquet dataset of a sweep: one row a cell, its whole configuration and all its figures."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import FlashtwinError
from ..folders import Folder

if TYPE_CHECKING:
    import pyarrow as pa

    from ..devices import Value
    from ..sweep.cells import Cell
    from ..sweep.experiment import Experiment

#: Name of the dataset in the directory of a sweep.
FILE = "results.parquet"
_METADATA = b"flashtwin"
#: Of a summary, what the columns of the configuration say already, or what has rows of its own.
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
#: Of what determines a cell, what is a column of its own.
_SETTINGS = ("precondition", "speed", "queue_depth", "requests_max", "warmup_requests", "beyond")


def column_of(axis: str) -> str:
    """Name of the column of an axis: `set_` and a key of the device, `run_` and a setting of the run."""
    if axis.startswith("run."):
        return axis.replace(".", "_")
    return f"set_{axis.replace('.', '_')}" if "." in axis else axis


def figures_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Every figure of a summary under the name of its column, as in all_mean_us."""
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


def table_of(
    experiment: Experiment, cells: list[Cell], summaries: Mapping[str, bytes], errors: Mapping[str, str]
) -> pa.Table:
    """Build the dataset, in the order of the cells; cells that were not computed are left out."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    for cell in cells:
        job = cell.job
        summary = summaries.get(job.key) if job else None
        error = cell.error if job is None else errors.get(job.key)
        if summary is None and error is None:
            continue
        row: dict[str, Any] = {column_of(axis): value for axis, value in cell.axes.items()}
        row["status"] = "failed" if summary is None else "ok"
        row["error"] = error
        row["cell"] = job.key if job else None
        identity = job.identity if job else {}
        row["flashtwin_version"] = identity.get("flashtwin")
        row.update((name, identity.get(name)) for name in _SETTINGS)
        row["device_toml"] = identity.get("device")
        rows.append(row)
        figures.append({} if summary is None else figures_of(json.loads(summary)))
    names = list(dict.fromkeys(name for row in figures for name in row))
    columns = {name: _axis_array([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    columns |= {name: pa.array([row.get(name) for row in figures]) for name in names}
    about = {
        "name": experiment.name,
        "axes": {column_of(axis): values for axis, values in experiment.axes.items()},
        "baseline": {column_of(axis): value for axis, value in experiment.baseline.items()},
        "figures": experiment.figures,
    }
    return pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(about)})


def _axis_array(values: list[Value]) -> pa.Array:
    import pyarrow as pa

    if not any(value is not None for value in values):
        return pa.array([None] * len(values), pa.string())
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({int}, {float}, {bool}, {str}, {int, float}):
        return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values])


def write(folder: Folder, table: pa.Table) -> None:
    """Write the dataset; the same cells give the same bytes."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", row_group_size=64 * 1024)
    folder.write(FILE, out.getvalue(), "the results")


def read(folder: Folder) -> tuple[pa.Table, dict[str, Any]]:
    """Read a dataset, and what its experiment was.

    Raises:
        FlashtwinError: there is none.
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
        # Without threads of Arrow's: one that lets go of `data` while the interpreter ends aborts it.
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            table = file.read(use_threads=False)
        about = json.loads((table.schema.metadata or {})[_METADATA])
    except (pa.ArrowException, OSError, KeyError, ValueError) as e:
        raise FlashtwinError(f"{folder.name}/{FILE}: not written by flashtwin sweep: {e}") from None
    return table, about


def known_figures() -> list[str]:
    """Columns that every sweep of single SSDs has: what an experiment may ask to be shown."""
    from ..runs import run

    smallest: dict[str, float] = {"geometry.blocks_per_plane": 64, "geometry.chips": 1}
    smallest |= {"geometry.reserve_percent": 20, "buffer.power_loss_protection": False}
    # The write reaches the flash, so that what is a ratio to it exists.
    tiny = run("uniform:write=1,fua=1,requests=1", "demo", set=smallest, precondition="none")
    return [name for name, value in figures_of(tiny.summary).items() if _is_number(value)]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


#: Figures that only some devices or policies have.
PARTICULAR = ("buffer_policy_counters_", "flash_ftl_counters_", "flash_ops_", "array_", "health_lifetime_")


def numeric(table: pa.Table, names: Iterable[str]) -> list[str]:
    """Of some names, those that are columns of numbers."""
    import pyarrow as pa

    fields = {field.name: field.type for field in table.schema}
    return [
        n
        for n in names
        if n in fields and (pa.types.is_integer(fields[n]) or pa.types.is_floating(fields[n]))
    ]
