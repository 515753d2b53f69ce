"""Studies: the claims of a paper are measured by sweeps and judged (docs/studies.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import _core
from .._results import Results
from .._support.files import write_text
from .._support.inputs import RESULTS_MAX, exists, is_dir, parse_json, read_bytes, read_text
from .._sweep import OnSweepProgress, sweep
from ..errors import FlashtwinError
from .checking import check
from .definition import VARIANTS, Study, names, read, shipped
from .loads import Loads
from .measuring import Rows, drawn, judged, judged_case, judged_check, judged_pin, steady_of
from .outcome_file import check_outcome
from .running_on import run_on

__all__ = ["OUTCOME", "Study", "check", "names", "outcome", "read", "run_study", "source"]

#: Name of the file with the outcome in the directory of a study.
OUTCOME = "study.json"


def run_study(
    study: Study,
    directory: str | os.PathLike[str],
    *,
    variant: str = "quick",
    threads: int | None = None,
    dask: str | None = None,
    traces: str | os.PathLike[str] | None = None,
    progress: Callable[[str], OnSweepProgress] | None = None,
) -> dict[str, Any]:
    """Run the unfinished sweeps of a study, judge its claims and write the outcome.

    Args:
        study: the study, from `read`.
        directory: directory of the study; each matrix is a sweep in a subdirectory.
        variant: "quick" or "full".
        threads: number of runs at the same time; by default the number of cores.
        dask: Dask cluster that runs the cells, as for `sweep`.
        traces: folder with published traces, which replace the generated loads that stand in for them; by
            default the folder in the variable FLASHTWIN_TRACES.
        progress: function that receives the name of a matrix, and returns a `progress` function for `sweep`.

    Raises:
        FlashtwinError: the study is wrong, or results can no longer be saved.
        Interrupted: on Ctrl-C; finished cells are kept.
    """
    if variant not in VARIANTS:
        raise FlashtwinError(f"variant: {variant!r}: must be {' or '.join(VARIANTS)}")
    check(study, variant)
    loads = Loads(study.loads, traces)

    def run(name: str, experiment: Mapping[str, Any]) -> Results:
        return sweep(
            loads.resolved(experiment),
            Path(directory) / f"{name}.sweep",
            threads=threads,
            dask=dask,
            progress=progress(name) if progress else None,
        )

    experiments = {matrix: study.experiment(matrix, variant) for matrix in study.matrices}
    results: dict[str, Results] = {}
    for matrix, experiment in experiments.items():
        try:
            results[matrix] = run(matrix, experiment)
        except FlashtwinError as e:
            raise FlashtwinError(f"{study.name}: matrix.{matrix}: {e}") from None
    rows = {matrix: Rows(found, loads.text) for matrix, found in results.items()}
    if variant == "full":
        run_on(study.claims, experiments, rows, run)
    found = _outcome(study, variant, loads, results, rows)
    write_text(Path(directory) / OUTCOME, json.dumps(found, indent=1) + "\n", "the outcome")
    return found


def source(name: str) -> str:
    """Return the text of a study's file: a study that comes with flashtwin, or a TOML file.

    Raises:
        FlashtwinError: there is no such study, or it is wrong.
    """
    path = Path(name)
    if path.suffix != ".toml":
        path = shipped(read(name).name, ".toml")
    return read_text(path, "study")


def outcome(name: str) -> dict[str, Any]:
    """Read the outcome of a study: the published one by name, or the one in a directory.

    Raises:
        FlashtwinError: there is no outcome.
    """
    path = Path(name)
    if is_dir(path):
        path = path / OUTCOME
    elif path.suffix != ".json":
        path = shipped(read(name).name, ".json")
    if not exists(path):
        raise FlashtwinError(f"{name}: no outcome here; flashtwin study run makes one")
    data = read_bytes(path, "outcome", RESULTS_MAX)
    try:
        found: dict[str, Any] = parse_json(data)
        check_outcome(found)
    except ValueError as e:
        raise FlashtwinError(f"{path}: no outcome of a study: {e}; run the study again") from None
    return found


def _outcome(
    study: Study, variant: str, loads: Loads, results: dict[str, Results], rows: dict[str, Rows]
) -> dict[str, Any]:
    named = [name for load in study.loads.values() for name in _names_of(load.name, load.arrivals)]
    names_of = {loads.text(name): _name(name, loads) for name in reversed(named)}
    pins = [judged_pin(pin, rows) for pin in study.pins]
    run = f"flashtwin study run {study.name}" + (" --full" if variant == "full" else "")
    return {
        "study": study.name,
        "title": study.title,
        "paper": study.paper,
        "sentence": study.sentence,
        "use": study.use,
        "about": study.about,
        "variant": variant,
        "flashtwin_version": _core.__version__,
        "cases": [judged_case(case, rows, run) for case in study.cases],
        "pins": pins,
        "claims": [judged(claim, rows, pins) for claim in study.claims],
        "checks": [judged_check(check, rows) for check in study.checks],
        "changes": [judged(change, rows) for change in study.changes],
        "figures": [drawn(figure, rows, names_of) for figure in study.figures],
        "workloads": [
            {
                "name": _name(load.name, loads),
                "load": "the trace" if loads.is_trace(load.name) else load.text,
                "arrivals": {} if loads.is_trace(load.name) else dict(load.arrivals),
                "source": load.source,
                "published": load.published,
                "stand_in": load.stand_in,
            }
            for load in study.loads.values()
        ],
        "matrices": [
            {
                "name": matrix,
                "cells": found.table.num_rows,
                "failed": found.failed,
                "axes": {
                    axis: [names_of.get(str(value), value) for value in values]
                    for axis, values in found.axes.items()
                },
                "run": study.experiment(matrix, variant).get("run", {}),
                "set": study.experiment(matrix, variant).get("set", {}),
                "steady": steady_of(found),
            }
            for matrix, found in results.items()
        ],
    }


def _names_of(name: str, arrivals: Any) -> list[str]:  # noqa: ANN401
    return [f"{name}/{each}" for each in arrivals] or [name]


def _name(name: str, loads: Loads) -> str:
    return f"{name.partition('/')[0]} (trace)" if loads.is_trace(name) else name
