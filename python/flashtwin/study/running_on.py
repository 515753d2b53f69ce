"""Runs additional seeds if a claim is still undecided after the seeds of a full run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from .._results import Results
from .definition import Claim, Measure
from .measuring import Rows, measured
from .verdicts import UNDECIDED, result_of

#: Largest number of seeds. A measure that is then still undecided stays so. `_STEP` seeds are added at a
#: time.
SEEDS_MOST: Final = 30
_STEP: Final = 10

#: Function that runs an experiment under a name and returns the results.
Run = Callable[[str, Mapping[str, Any]], Results]


def run_on(
    claims: Iterable[Claim], experiments: Mapping[str, Mapping[str, Any]], rows: dict[str, Rows], run: Run
) -> None:
    """Run more seeds of the cells that a claim's main measure uses, until it is decided.

    The number of seeds is limited by `SEEDS_MOST`.

    Args:
        claims: claims of the study.
        experiments: experiments of the study's matrices.
        rows: results by matrix. New results are added to them.
        run: function that runs the cells.
    """
    for claim in claims:
        if not claim.measures:
            continue
        measure = claim.measures[0]
        before = rows[measure.matrix]
        experiment = experiments[measure.matrix]
        first = max(experiment.get("seeds", [1])) + 1
        for last in range(first + _STEP - 1, SEEDS_MOST + 1, _STEP):
            if result_of(measure, measured(measure, rows)[1]) != UNDECIDED:
                break
            cells = {**narrowed(experiment, measure), "seeds": list(range(first, last + 1))}
            rows[measure.matrix] = before.with_more(run(claim.id, cells))


def narrowed(experiment: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    """Return the experiment reduced to those values of axes that a measure selects."""
    chosen = [{**measure.where, **selection} for selection in measure.selections.values()]

    def kept(axis: str, values: list[Any]) -> list[Any]:
        if not all(axis in one for one in chosen):
            return values
        texts = {str(each) for one in chosen for each in _each(one[axis])}
        return [value for value in values if str(value) in texts]

    lists = {"devices": "device", "policies": "policy", "workloads": "workload"}
    parameters = experiment.get("parameters", {})
    return {
        **experiment,
        **{key: kept(axis, experiment[key]) for key, axis in lists.items() if key in experiment},
        **(
            {"parameters": {axis: kept(axis, values) for axis, values in parameters.items()}}
            if parameters
            else {}
        ),
    }


def _each(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
