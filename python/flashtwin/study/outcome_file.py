"""The types of an outcome's JSON. An outcome is checked against them when it is read."""

from __future__ import annotations

from typing import Any, TypedDict

from .._support.schema import check
from ..errors import FlashtwinError


class Cause(TypedDict):
    """A measured value."""

    name: str
    printed: str
    unit: str
    value: float | None
    low: float | None
    high: float | None


class Measure(Cause):
    """A measured value with its result."""

    result: str


class Pin(TypedDict):
    """A figure of the baseline that the paper prints or implies."""

    id: str
    text: str
    source: str
    matrices: list[str]
    verdict: str
    reason: str | None
    measure: Cause


class Case(TypedDict):
    """A situation of a user."""

    why: str
    command: str
    measure: Cause


class Claim(TypedDict):
    """A claim, check or change."""

    id: str
    text: str
    source: str
    verdict: str
    footing: str
    condition: str | None
    same_as: str | None
    missed_pins: list[str]
    reason: str | None
    measures: list[Measure]
    readings: list[Measure]
    causes: list[Cause]


class Line(TypedDict):
    """A line of a figure: value and interval at each position."""

    name: str
    values: list[tuple[float | None, float | None, float | None] | None]


class Figure(TypedDict):
    """A figure."""

    title: str
    figure: str
    relative: bool
    over: str
    places: list[str]
    lines: list[Line]


class Load(TypedDict):
    """A workload."""

    name: str
    load: str
    arrivals: dict[str, str]
    source: str
    published: str
    stand_in: str


class Steady(TypedDict):
    """Runs whose warm-up ends by a criterion.

    `runs` is the number of runs with such a warm-up, and `met` the number of those that were steady when
    their measurement began. `least` and `most` are the numbers of requests in the shortest and in the longest
    warm-up.
    """

    met: int
    runs: int
    least: int
    most: int


class Matrix(TypedDict):
    """The runs of a matrix."""

    name: str
    cells: int
    failed: int
    axes: dict[str, list[object]]
    run: dict[str, object]
    set: dict[str, object]
    steady: Steady | None


class Outcome(TypedDict):
    """An outcome of a study."""

    study: str
    title: str
    paper: str
    sentence: str
    use: str
    about: str
    variant: str
    flashtwin_version: str
    cases: list[Case]
    pins: list[Pin]
    claims: list[Claim]
    checks: list[Claim]
    changes: list[Claim]
    figures: list[Figure]
    workloads: list[Load]
    matrices: list[Matrix]


def check_outcome(found: Any) -> None:  # noqa: ANN401 (any value of JSON)
    """Check an outcome.

    Raises:
        FlashtwinError: a key is missing, or a value has another type or is out of bounds.
    """
    check(found, Outcome, "outcome")
    for figure in found["figures"]:
        if any(len(line["values"]) != len(figure["places"]) for line in figure["lines"]):
            raise FlashtwinError("outcome.figures: a line has not one value for each place")
    if not all("seed" in matrix["axes"] for matrix in found["matrices"]):
        raise FlashtwinError("outcome.matrices: a matrix has no axis seed")
