"""Rows of the dataset, from the cells of an experiment and their summaries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .._devices import Value
from .._placement import placement_waf
from .._results.dataset import METADATA, column_of, figures_of
from .._support import words
from ..options import experiment_options
from ..runs import run
from .cells import Cell
from .experiment import UNTIMED, Experiment
from .untimed import RULES, summary_of

if TYPE_CHECKING:
    import pyarrow as pa

#: Parts of a cell's identity. The table has one column for each.
_SETTINGS = ("speed", "queue_depth", *experiment_options())
#: Beginnings of the names of figures that only some devices or policies have.
_PARTICULAR = (
    "buffer_policy_counters_",
    "flash_ftl_counters_",
    "flash_ops_",
    "array_",
    "health_lifetime_",
    "by_owner_",
)


def table_of(
    experiment: Experiment, cells: list[Cell], summaries: Mapping[str, bytes], errors: Mapping[str, str]
) -> pa.Table:
    """Build the table of results, in the order of the cells. Cells that have not run are omitted."""
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
        if experiment.untimed is None:
            row.update((name, identity.get(name)) for name in _SETTINGS)
            row["device_toml"] = identity.get("device")
        else:
            row["setup"] = " ".join(f"{word}={value}" for word, value in identity.get("words", {}).items())
            row.update((name, identity.get(name)) for name in (*RULES, *UNTIMED) if name not in row)
        rows.append(row)
        figures.append({} if summary is None else figures_of(json.loads(summary)))
    names = list(dict.fromkeys(name for row in figures for name in row))
    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        columns[name] = _axis_array(values)
        sizes = [words.read_size(value) if isinstance(value, str) else None for value in values]
        if name.startswith("set_") and None not in sizes:
            # Texts such as "16 MiB" do not sort by size, so a column with bytes is added.
            columns[f"{name}_bytes"] = pa.array(sizes, pa.int64())
    columns |= {name: pa.array([row.get(name) for row in figures]) for name in names}
    about = {
        "name": experiment.name,
        "axes": {column_of(axis): values for axis, values in experiment.axes.items()},
        "baseline": {column_of(axis): value for axis, value in experiment.baseline.items()},
        "figures": experiment.figures,
    }
    return pa.table(columns).replace_schema_metadata({METADATA: json.dumps(about)})


def _axis_array(values: list[Value]) -> pa.Array:
    import pyarrow as pa

    if not any(value is not None for value in values):
        return pa.array([None] * len(values), pa.string())
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({int}, {float}, {bool}, {str}, {int, float}):
        return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values])


def check_figures(experiment: Experiment) -> None:
    """Reject figures of the experiment that no run has, before the first run starts."""
    known = _known_figures() if experiment.untimed is None else _figures_of_units()
    for figure in experiment.figures:
        if figure not in known and not figure.startswith(_PARTICULAR):
            near = get_close_matches(figure, known, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else "docs/sweeps.md lists the keys"
            raise experiment.places.wrong("figures", f"no result is called {figure}; {hint}")


def _known_figures() -> list[str]:
    """Return the columns that every sweep of single SSDs has and that an experiment may name as figures."""
    smallest: dict[str, float] = {"geometry.blocks_per_plane": 64, "geometry.chips": 1}
    smallest |= {"geometry.reserve_percent": 20, "buffer.power_loss_protection": False}
    # The write is forced to the flash (`fua=1`), because a run that writes no page to the flash lacks ratios
    # to pages written.
    tiny = run("uniform:write=1,fua=1,requests=1", "demo", set=smallest, precondition="none")
    return [name for name, value in figures_of(tiny.summary).items() if _is_number(value)]


def _figures_of_units() -> list[str]:
    """Return the columns that every sweep without time has and that an experiment may name as figures."""
    setup = {"units": 8, "unit_pages": 4, "logical_pages": 8, "low": 2}
    row = placement_waf("uniform:write=1,size=4k", setup=setup, warm=0, capacities=1, threads=1)[0]
    return [name for name, value in figures_of(summary_of(row)).items() if _is_number(value)]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
