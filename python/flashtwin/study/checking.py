"""Checks, before anything runs, that the cells which a study's measures select exist in its matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import FlashtwinError
from .definition import Measure, Study


def check(study: Study, variant: str) -> None:
    """Reject a study if a selection of a measure matches no cell of this variant ("quick" or "full")."""
    axes = {matrix: _axes(study.experiment(matrix, variant)) for matrix in study.matrices}
    for where, matrix, chosen in _selections(study):
        for axis, value in chosen.items():
            if axis not in axes[matrix]:
                known = ", ".join(axes[matrix])
                raise FlashtwinError(f"{where}: {axis}: no axis of matrix {matrix}; its axes are {known}")
            each = value if isinstance(value, list) else [value]
            for one in each:
                if str(one) not in axes[matrix][axis]:
                    raise FlashtwinError(f"{where}: {axis} = {one}: no value in matrix {matrix}, --{variant}")


def _axes(experiment: Mapping[str, Any]) -> dict[str, set[str]]:
    given = {
        "device": experiment.get("devices", []),
        "policy": experiment.get("policies", []),
        "workload": experiment.get("workloads", []),
        "seed": experiment.get("seeds", [1]),
        **experiment.get("parameters", {}),
    }
    return {axis: {str(value) for value in values} for axis, values in given.items()}


def _selections(study: Study) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for claim in (*study.claims, *study.checks, *study.changes):
        for measure in (*claim.measures, *claim.readings, *claim.causes):
            yield from _of_measure(f"claim {claim.id}", measure)
    for pin in study.pins:
        yield from _of_measure(f"pin {pin.id}", pin.measure)
    for case in study.cases:
        yield from _of_measure(f"case {case.name}", case.measure)
    for figure in study.figures:
        where = f"figure {figure.title}"
        yield where, figure.matrix, figure.where
        yield where, figure.matrix, figure.base
        yield where, figure.matrix, {figure.over: [], figure.by: []}


def _of_measure(where: str, measure: Measure) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    yield where, measure.matrix, measure.where
    for chosen in measure.selections.values():
        yield where, measure.matrix, {axis: v for axis, v in chosen.items() if axis != "figure"}
