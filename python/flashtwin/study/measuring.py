"""Computes estimates, judged claims and tables of figures from the results of a study's sweeps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from .._results import Results
from .._results.dataset import column_of
from .._support.estimates import Estimate, mean_of, ratio_of
from ..errors import FlashtwinError
from .definition import Case, Claim, Figure, Measure, Pin
from .verdicts import AS_PRINTED, MET, MISSED, Reading, pin_of, result_of, verdict_of

#: Confidence level of the intervals over seeds.
CONFIDENCE: Final = 0.95
#: Digits that are kept of a number.
_DIGITS: Final = 5
#: NAME[FROM:TO] is a column of lists. The elements from FROM to TO (excluded) of each list are added.
_PART: Final = re.compile(r"(\w+)\[(\d+):(\d+)\]")

#: A value of each seed.
_BySeed = dict[int, float]
#: Resolves the name of a workload.
_Resolve = Callable[[str], str]


class Rows:
    """The finished cells of a matrix, from which rows can be selected by values of axes."""

    def __init__(self, results: Results, resolve: _Resolve, more: tuple[Results, ...] = ()) -> None:
        self._results, self._resolve, self._more = results, resolve, more
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def with_more(self, more: Results) -> Rows:
        """Return these rows together with the rows of another sweep, which ran some cells with more seeds."""
        return Rows(self._results, self._resolve, (*self._more, more))

    def values(self, axis: str) -> list[Any]:
        """Return the values of an axis, in order."""
        return self._results.axes[column_of(axis)]

    def select(self, figure: str, chosen: Mapping[str, Any]) -> dict[tuple[str, ...], _BySeed]:
        """Return the values of a column in the rows that have the chosen values of axes.

        The keys are the values of the other axes, and then the seed.
        """
        wanted = {column_of(axis): self._texts(axis, value) for axis, value in chosen.items()}
        fixed = {column_of(axis) for axis, value in chosen.items() if not isinstance(value, list)}
        free = [axis for axis in self._results.points if axis not in fixed]
        found: dict[tuple[str, ...], _BySeed] = {}
        for row in self._of(figure):
            if all(str(row[axis]) in texts for axis, texts in wanted.items()) and row[figure] is not None:
                found.setdefault(tuple(str(row[axis]) for axis in free), {})[row["seed"]] = row[figure]
        return found

    def _of(self, figure: str) -> list[dict[str, Any]]:
        if figure not in self._rows:
            rows = self._read(self._results.table, figure)
            for more in self._more:
                rows += self._read(more.table, figure)
            self._rows[figure] = rows
        return self._rows[figure]

    def _read(self, table: Any, figure: str) -> list[dict[str, Any]]:  # noqa: ANN401 (pyarrow has no types)
        column, ends = figure, None
        if part := _PART.fullmatch(figure):
            column, ends = part[1], slice(int(part[2]), int(part[3]))
        if column not in table.column_names:
            raise FlashtwinError(f"{column}: no column of these results")
        rows = table.select([*self._results.points, "seed", "status", column]).to_pylist()
        rows = [row for row in rows if row["status"] == "ok"]
        if ends is None:
            return rows
        return [{**row, figure: sum(row[column][ends])} for row in rows]

    def _texts(self, axis: str, value: object) -> set[str]:
        each = value if isinstance(value, list) else [value]
        return {self._resolve(str(one)) if axis == "workload" else str(one) for one in each}


def steady_of(results: Results) -> dict[str, int] | None:
    """Count the runs that were steady when their measurement began, if warm-ups end by a criterion.

    Returns None if warm-ups have fixed lengths.
    """
    names = ["steady_is_met", "steady_after_requests"]
    if not set(names) <= set(results.table.column_names):
        return None
    rows = [row for row in results.table.select(names).to_pylist() if row["steady_is_met"] is not None]
    after = [row["steady_after_requests"] for row in rows]
    met = sum(row["steady_is_met"] for row in rows)
    return {"runs": len(rows), "met": met, "least": min(after), "most": max(after)}


def measured(measure: Measure, matrices: Mapping[str, Rows]) -> tuple[dict[str, Any], Estimate]:
    """Evaluate a measure. Return a dict with its values and labels, and the estimate over all seeds."""
    rows = matrices[measure.matrix]
    by_name = {
        name: rows.select(
            str(chosen.get("figure", measure.figure)),
            {**measure.where, **{axis: value for axis, value in chosen.items() if axis != "figure"}},
        )
        for name, chosen in measure.selections.items()
    }
    points = set.intersection(*(set(found) for found in by_name.values())) if by_name else set()
    values: list[_BySeed] = []
    for point in sorted(points):
        at = {name: found[point] for name, found in by_name.items()}
        seeds = set.intersection(*(set(by_seed) for by_seed in at.values()))
        each = {seed: measure.value.of({name: at[name][seed] for name in at}) for seed in sorted(seeds)}
        values.append({seed: value for seed, value in each.items() if value is not None})
    seeds = set.intersection(*(set(by_seed) for by_seed in values)) if values else set()
    joined = [_joined([by_seed[seed] for by_seed in values], measure.over) for seed in sorted(seeds)]
    estimate = _estimate(joined, measure.unit)
    found = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    told = {
        "name": measure.name,
        "printed": measure.printed,
        "unit": measure.unit,
        **{key: _rounded(value) for key, value in found.items()},
        "seeds": len(joined),
        "points": len(values),
    }
    return told, estimate


def _joined(values: list[float], over: str) -> float:
    return math.fsum(values) / len(values) if over == "mean" else (min if over == "min" else max)(values)


def _estimate(values: list[float], unit: str) -> Estimate:
    if unit in ("change", "ratio"):
        ratio = ratio_of([(value, 1.0) for value in values], CONFIDENCE)
        return ratio if unit == "ratio" else _each(ratio, lambda value: (value - 1) * 100)
    scale = 100 if unit == "percent" else 1
    return mean_of([value * scale for value in values], CONFIDENCE)


def _each(estimate: Estimate, change: Callable[[float], float]) -> Estimate:
    ends = (estimate.value, estimate.low, estimate.high)
    return Estimate(*(None if end is None else change(end) for end in ends))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def judged_measure(measure: Measure, matrices: Mapping[str, Rows]) -> dict[str, Any]:
    """Evaluate a measure, with its result."""
    found, estimate = measured(measure, matrices)
    return {**found, "result": result_of(measure, estimate)}


def judged_pin(pin: Pin, matrices: Mapping[str, Rows]) -> dict[str, Any]:
    """Evaluate a pin."""
    found, estimate = _named_errors(f"pin {pin.id}", lambda: measured(pin.measure, matrices))
    return {
        "id": pin.id,
        "text": pin.text,
        "source": pin.source,
        "matrices": list(pin.matrices),
        "verdict": pin_of(pin.measure, estimate, pin.contradicts),
        "reason": pin.contradicts or pin.reason,
        "measure": found,
    }


def judged_case(case: Case, matrices: Mapping[str, Rows], run: str) -> dict[str, Any]:
    """Evaluate a situation of users. `run` is the command that ran the study."""
    found, _ = _named_errors(f"case {case.name}", lambda: measured(case.measure, matrices))
    return {
        "why": case.why,
        "command": case.command or f"{run} --matrix {case.measure.matrix}",
        "measure": found,
    }


def judged(claim: Claim, matrices: Mapping[str, Rows], pins: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Evaluate a claim's measures, readings and causes, and judge it by the main measure."""
    where = f"claim {claim.id}"
    measures = _named_errors(where, lambda: [judged_measure(each, matrices) for each in claim.measures])
    readings = _named_errors(where, lambda: [judged_measure(each, matrices) for each in claim.readings])
    causes = _named_errors(where, lambda: [measured(each, matrices)[0] for each in claim.causes])
    matrix = claim.measures[0].matrix if claim.measures else None
    missed = [pin["id"] for pin in pins if matrix in pin["matrices"] and pin["verdict"] == MISSED]
    verdict = verdict_of(
        claim,
        measures[0]["result"] if measures else "",
        [Reading(each["name"], each["result"]) for each in readings],
        missed,
    )
    return {
        "id": claim.id,
        "text": claim.text,
        "source": claim.source,
        "verdict": verdict.verdict,
        "footing": verdict.footing,
        "condition": verdict.condition,
        "same_as": claim.same_as,
        "missed_pins": missed,
        "reason": claim.cannot_be_tested or claim.reason,
        "measures": measures,
        "readings": readings,
        "causes": causes,
    }


def judged_check(check: Claim, matrices: Mapping[str, Rows]) -> dict[str, Any]:
    """Evaluate a check of the study itself. It is met if all of its measures are met."""
    found = judged(check, matrices)
    met = all(measure["result"] == AS_PRINTED for measure in found["measures"])
    return {**found, "verdict": MET if met else MISSED}


def _named_errors(where: str, evaluate: Callable[[], Any]) -> Any:  # noqa: ANN401 (what is evaluated)
    try:
        return evaluate()
    except FlashtwinError as e:
        raise FlashtwinError(f"{where}: {e}") from None


def drawn(figure: Figure, matrices: Mapping[str, Rows], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a figure: for each line, the value and its interval at each position."""
    rows = matrices[figure.matrix]
    lines = [
        [_cell(rows, figure, line, place) for place in rows.values(figure.over)]
        for line in rows.values(figure.by)
    ]
    return {
        "title": figure.title,
        "figure": figure.figure,
        "relative": bool(figure.base),
        "over": figure.over,
        "places": [_named(place, names) for place in rows.values(figure.over)],
        "lines": [
            {"name": _named(name, names), "values": values}
            for name, values in zip(rows.values(figure.by), lines, strict=True)
            if any(value is not None for value in values)
        ],
    }


def _named(value: object, names: Mapping[str, str]) -> str:
    return names.get(str(value), str(value))


def _cell(rows: Rows, figure: Figure, line: object, place: object) -> list[float | None] | None:
    # Values of axes are resolved already.
    chosen = {**figure.where, figure.by: line, figure.over: place}
    by_seed = _only(rows, figure, chosen)
    if figure.base:
        below = _only(rows, figure, {**chosen, **figure.base})
        pairs = [(value, below[seed]) for seed, value in by_seed.items() if seed in below]
        estimate = ratio_of(pairs, CONFIDENCE)
    else:
        estimate = mean_of(list(by_seed.values()), CONFIDENCE)
    if estimate.value is None:
        return None
    return [_rounded(end) for end in (estimate.value, estimate.low, estimate.high)]


def _only(rows: Rows, figure: Figure, chosen: Mapping[str, Any]) -> _BySeed:
    found = rows.select(figure.figure, chosen)
    if len(found) > 1:
        raise FlashtwinError(f"figure {figure.title}: give where for all but two axes")
    return next(iter(found.values()), {})


def flat(claims: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield pairs of a claim and one of its measures. A claim without measures is paired with None."""
    for claim in claims:
        for measure in claim["measures"] or [None]:
            yield claim, measure
