"""A study as its TOML file defines it: matrices, workloads, claims, figures (docs/studies.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from .._support.inputs import parse_toml, read_text
from .._support.schema import MOST, shortened
from ..errors import FlashtwinError
from ..references import cited
from .expression import Expression

#: Variants in which each matrix of a study can be run.
VARIANTS: Final = ("quick", "full")
#: Ways to combine the values of several points.
AGGREGATES: Final = ("mean", "min", "max")
#: Units of a measure. A ratio of 0.8 is a change of -20 %.
UNITS: Final = ("change", "ratio", "percent", "number")
#: Footings of a claim: on what its verdict is based. `printed`: the paper prints all settings that matter.
#: `stand-in`: a generated load replaces a trace that is not public. `window`: the load is a public part of
#: the trace. `self-contradictory`: numbers of the paper exclude the claim. `vacuous`: no available load can
#: show the claim.
FOOTINGS: Final = ("printed", "stand-in", "window", "self-contradictory", "vacuous")
#: Names of the rows that a measure selects. Its expression combines these rows.
_SELECTIONS: Final = ("a", "b", "c", "d")
_SHIPPED: Final = Path(__file__).parent.parent / "studies"
#: The study that `make demo` runs. It is not listed as the study of a paper, because it repeats figures of
#: other studies.
DEMO: Final = "headlines"


@dataclass(frozen=True)
class Load:
    """A workload of a study.

    Attributes:
        name: name of the load in the matrices.
        text: the generated load, without arrival times if `arrivals` has them.
        arrivals: by name, keys with arrival times that are appended to `text`. The workload is then called
            NAME/ARRIVALS.
        trace: name, without extensions, of the trace that replaces the load if the user has the trace.
        source: where the trace is available.
        published: published facts about the original trace.
        stand_in: differences between the generated load and the trace.
    """

    name: str
    text: str
    arrivals: Mapping[str, str]
    trace: str | None
    source: str
    published: str
    stand_in: str


@dataclass(frozen=True)
class Measure:
    """A number to measure, and its expected value.

    Attributes:
        name: name of the measure in tables.
        matrix: matrix whose results the measure uses.
        figure: column of the results. A selection may name another column.
        selections: by name (a, b, c, d), the values of axes that select one row of each point.
        where: values of axes that are common to all selections. If a value is a list, each of its elements
            gives a point.
        value: expression that computes one value of a point from its rows a, b, c and d.
        over: function that combines the values of several points.
        unit: unit of the result, of `holds`, `below` and `above`.
        printed: value that the paper prints.
        holds: range within which the claim holds.
        below: the direction of the effect is as in the paper if the result is below this limit.
        above: the direction of the effect is as in the paper if the result is above this limit.
    """

    name: str
    matrix: str
    figure: str
    selections: Mapping[str, Mapping[str, Any]]
    where: Mapping[str, Any]
    value: Expression
    over: str
    unit: str
    printed: str
    holds: tuple[float, float] | None
    below: float | None
    above: float | None


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, a check of the study itself, or a change to the paper's scheme.

    Attributes:
        id: id of the statement.
        text: the statement.
        source: section or figure of the paper.
        measures: measures of the claim. The first one is the main measure, by which the claim is judged.
        footing: basis of the verdict, one of `FOOTINGS`.
        condition: the setting with which the claim is measured, if the paper permits several settings.
        readings: the main measure under other interpretations of the paper, which the study registers.
        same_as: id of another claim with the same printed number.
        cannot_be_tested: reason why the claim cannot be tested; None if it can.
        reason: reason why the claim is not reproduced, or only under a condition; for a change, its cost.
        causes: measures that show the reason.
    """

    id: str
    text: str
    source: str
    measures: tuple[Measure, ...]
    footing: str
    condition: str | None
    readings: tuple[Measure, ...]
    same_as: str | None
    cannot_be_tested: str | None
    reason: str | None
    causes: tuple[Measure, ...]


@dataclass(frozen=True)
class Pin:
    """A figure of the baseline that the paper prints or implies: it fixes the operating point.

    Attributes:
        id: id of the pin.
        text: description of the figure.
        source: place of the figure in the paper.
        matrices: matrices that must have the operating point of the figure.
        measure: measure of the figure, with the tolerance as `holds`.
        reason: reason why the pin is missed.
        contradicts: other numbers of the paper that exclude the figure.
    """

    id: str
    text: str
    source: str
    matrices: tuple[str, ...]
    measure: Measure
    reason: str | None
    contradicts: str | None


@dataclass(frozen=True)
class Case:
    """A situation in which users may be, and the gain or cost of the paper's scheme in this situation.

    Attributes:
        name: the situation.
        why: cause of the gain or cost, in a few words.
        command: command that shows the gain or cost; None for the command that runs the matrix.
        measure: the gain or cost; `printed` is the number in a paper, if there is one.
    """

    name: str
    why: str
    command: str | None
    measure: Measure


@dataclass(frozen=True)
class Figure:
    """A figure laid out as in the paper: one line per value of one axis, drawn over another axis.

    Attributes:
        title: title of the figure in reports.
        matrix: matrix whose results the figure shows.
        figure: column of the results.
        over: axis along the figure.
        by: axis with one line per value.
        where: values of the other axes.
        base: values of axes that select the row by which a value is divided; empty if values are absolute.
    """

    title: str
    matrix: str
    figure: str
    over: str
    by: str
    where: Mapping[str, Any]
    base: Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes:
        name: name of the file.
        title: title of the page.
        paper: citation of the paper. The file has its text, or a key of `references.bib`.
        sentence: the finding, in one sentence.
        use: when to use the scheme and when not to use it, in Markdown.
        about: the method of the study.
        matrices: experiments by name, with the changes to each of them in the variants `quick` and `full`.
        cases: situations of users.
        pins: figures of the baseline.
        loads: workloads by name.
        checks: checks of the study itself.
        claims: claims of the paper.
        changes: changes to the scheme of the paper.
        figures: figures laid out as in the paper.
    """

    name: str
    title: str
    paper: str
    sentence: str
    use: str
    about: str
    matrices: Mapping[str, Mapping[str, Any]]
    cases: tuple[Case, ...]
    pins: tuple[Pin, ...]
    loads: Mapping[str, Load]
    checks: tuple[Claim, ...]
    claims: tuple[Claim, ...]
    changes: tuple[Claim, ...]
    figures: tuple[Figure, ...]

    def experiment(self, matrix: str, variant: str) -> dict[str, Any]:
        """Return the experiment of a matrix in a variant, in the form that `sweep` accepts."""
        whole = self.matrices[matrix]
        plain = {key: value for key, value in whole.items() if key not in VARIANTS}
        return {"name": f"{self.title}: {matrix}", **_merged(plain, whole.get(variant, {}))}

    def only(self, matrices: Sequence[str]) -> Study:
        """Return the study with some of its matrices, and only those measures that use them.

        Raises:
            FlashtwinError: no matrix has such a name.
        """
        for name in matrices:
            if name not in self.matrices:
                near = get_close_matches(name, self.matrices, 1)
                hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(self.matrices)}"
                raise FlashtwinError(f"{self.name}: no matrix is called {shortened(name)}; {hint}")

        def kept(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
            return tuple(
                claim
                for claim in claims
                if claim.measures
                and all(m.matrix in matrices for m in (*claim.measures, *claim.readings, *claim.causes))
            )

        return replace(
            self,
            matrices={name: matrix for name, matrix in self.matrices.items() if name in matrices},
            cases=tuple(case for case in self.cases if case.measure.matrix in matrices),
            pins=tuple(pin for pin in self.pins if pin.measure.matrix in matrices),
            checks=kept(self.checks),
            claims=kept(self.claims),
            changes=kept(self.changes),
            figures=tuple(figure for figure in self.figures if figure.matrix in matrices),
        )

    def only_claims(self, ids: Sequence[str]) -> Study:
        """Return the study with some of its claims, and with the matrices and pins that these claims use.

        Raises:
            FlashtwinError: there is no such claim, or it cannot be tested.
        """
        wanted = claims_of(ids, [claim.id for claim in self.claims], self.name)
        chosen = tuple(claim for claim in self.claims if claim.id in wanted)
        for claim in chosen:
            if not claim.measures:
                why = claim.cannot_be_tested or "it has no measure"
                raise FlashtwinError(f"{self.name}: {claim.id} cannot be run: {why}")
        used = {m.matrix for claim in chosen for m in (*claim.measures, *claim.readings, *claim.causes)}
        return replace(
            self.only([matrix for matrix in self.matrices if matrix in used]),
            cases=(),
            checks=(),
            claims=chosen,
            changes=(),
            figures=(),
        )


def claims_of(ids: Sequence[str], known: Sequence[str], name: str) -> set[str]:
    """Check that a study has claims with the given ids, and return the ids.

    Raises:
        FlashtwinError: there is no such claim; the message names the most similar one.
    """
    for given in ids:
        if given not in known:
            near = get_close_matches(given.upper(), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
            raise FlashtwinError(f"{name}: no claim is called {shortened(given)}; {hint}")
    return {*ids}


def names() -> list[str]:
    """Return the names of the studies of papers that are part of flashtwin."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml") if path.stem != DEMO)


def shipped(name: str, suffix: str) -> Path:
    """Return the path of a file that belongs to a study that comes with flashtwin."""
    return _SHIPPED / f"{name}{suffix}"


def read(name: str) -> Study:
    """Read a study by its name, or from a TOML file.

    Raises:
        FlashtwinError: there is no such study, or it is wrong.
    """
    path = Path(name)
    if path.suffix != ".toml":
        known = [*names(), DEMO]
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"give a TOML file, or one of {', '.join(known)}"
            raise FlashtwinError(f"no study is called {shortened(name)}; {hint}")
        path = shipped(name, ".toml")
    given = parse_toml(read_text(path, "study"), path)
    try:
        return _study(path.stem, given)
    except FlashtwinError as e:
        raise FlashtwinError(f"{path}: {e}") from None


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        inner = merged.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(inner, value) if both else value  # type: ignore[arg-type]
    return merged


class _Table:
    """A table of the TOML file. Keys are read one by one; `end` rejects keys that were not read."""

    def __init__(self, where: str, given: object) -> None:
        if not isinstance(given, Mapping):
            raise FlashtwinError(f"{where}: found {shortened(given)}; must be a table")
        self._where, self._given, self._known = where, dict(given), []  # type: ignore[var-annotated]

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:  # noqa: ANN401
        """Read a key. A key without a default is required."""
        self._known.append(key)
        if key not in self._given:
            if default is None:
                raise FlashtwinError(f"{self._where}: {key} is missing")
            return default
        value = self._given.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise FlashtwinError(f"{self._where}: {key} = {shortened(value)}: must be {_said(kind)}")
        return value

    def number(self, key: str) -> float | None:
        """Read a number; None if the key is absent."""
        value = self.take(key, (int, float), _NONE)
        if value is _NONE:
            return None
        if not _is_number(value):
            raise FlashtwinError(f"{self._where}: {key}: must be a number of at most {MOST:g}")
        return float(value)

    def text(self, key: str) -> str | None:
        """Read a text; None if the key is absent."""
        value = self.take(key, str, _NONE)
        return None if value is _NONE else str(value)

    def one_of(self, key: str, values: tuple[str, ...], default: str | None = None) -> str:
        """Read a value that must be one of the given values."""
        value: str = self.take(key, str, default)
        if value not in values:
            raise FlashtwinError(
                f"{self._where}: {key} = {shortened(value)}: must be one of {', '.join(values)}"
            )
        return value

    def end(self) -> None:
        """Reject keys that were not read."""
        for key in self._given:
            near = get_close_matches(key, self._known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self._known)}"
            raise FlashtwinError(f"{self._where}: {key}: unknown; {hint}")


_NONE: Final = object()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MOST


def _said(kind: type | tuple[type, ...]) -> str:
    kinds = {str: "text", list: "a list", dict: "a table", (int, float): "a number"}
    return kinds.get(kind, "another type")


def _study(name: str, given: Mapping[str, Any]) -> Study:
    table = _Table("study", given)
    matrices = table.take("matrix", dict)
    study = Study(
        name,
        table.take("title", str),
        cited(table.take("paper", str)),
        table.take("sentence", str, "").strip(),
        table.take("use", str, "").strip(),
        table.take("about", str).strip(),
        {key: _matrix(key, value) for key, value in matrices.items()},
        tuple(_case(value, matrices) for value in table.take("case", list, [])),
        tuple(_pin(value, matrices) for value in table.take("pin", list, [])),
        {key: _load(key, value) for key, value in table.take("workload", dict, {}).items()},
        tuple(_claim(value, matrices, "check") for value in table.take("check", list, [])),
        tuple(_claim(value, matrices, "claim") for value in table.take("claim", list)),
        tuple(_claim(value, matrices, "change") for value in table.take("change", list, [])),
        tuple(_figure(value, matrices) for value in table.take("figure", list, [])),
    )
    table.end()
    _check_ids(study)
    return study


def _check_ids(study: Study) -> None:
    seen: set[str] = set()
    for each in [*(pin.id for pin in study.pins), *(claim.id for claim in study.claims)]:
        if each in seen:
            raise FlashtwinError(f"claim {each}: there twice")
        seen.add(each)
    for claim in study.claims:
        if claim.same_as is not None and claim.same_as not in seen - {claim.id}:
            raise FlashtwinError(
                f"claim {claim.id}: same_as = {shortened(claim.same_as)}: no claim has this id"
            )


def _matrix(name: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise FlashtwinError(f"matrix.{name}: found {shortened(given)}; must be a table")
    for variant in VARIANTS:
        if not isinstance(given.get(variant, {}), Mapping):
            raise FlashtwinError(f"matrix.{name}.{variant}: must be a table")
    return given


def _load(name: str, given: object) -> Load:
    table = _Table(f"workload.{name}", given)
    load = Load(
        name,
        table.take("load", str),
        table.take("arrivals", dict, {}),
        table.text("trace"),
        table.take("source", str, ""),
        table.take("published", str, ""),
        table.take("stand_in", str, ""),
    )
    table.end()
    return load


#: Keys that a measure is judged by.
_JUDGED: Final = ("holds", "below", "above")
#: Keys for the expected value of a measure. Measures that show the cause of a result have no expected value.
_EXPECTED: Final = ("printed", *_JUDGED)
#: Keys of measures that a claim may have itself. They then apply to all of its measures.
_SHARED: Final = ("matrix", "figure", *_SELECTIONS, "where", "value", "over", "unit", *_EXPECTED)


def _claim(given: object, matrices: Mapping[str, Any], kind: str) -> Claim:
    named = given.get("id", "") if isinstance(given, Mapping) else ""
    where = f"{kind} {named}".strip()
    table = _Table(where, given)
    shared = {key: table.take(key, object, _NONE) for key in _SHARED}
    shared = {key: value for key, value in shared.items() if value is not _NONE}
    reason = table.text("cannot_be_tested")
    measures = table.take("measures", list, [] if reason or not shared else [{}])
    main = _merged(shared, measures[0]) if measures and isinstance(measures[0], Mapping) else shared

    def made(each: list[object], name: str, common: Mapping[str, Any]) -> tuple[Measure, ...]:
        return tuple(_measure(f"{where}: {name} {i}", one, common, matrices) for i, one in enumerate(each, 1))

    unexpected = {key: value for key, value in shared.items() if key not in _EXPECTED}
    claim = Claim(
        table.take("id", str),
        table.take("text", str),
        table.take("source", str, ""),
        made(measures, "measure", shared),
        table.one_of("footing", FOOTINGS, "printed"),
        table.text("condition"),
        made(table.take("readings", list, []), "reading", main),
        table.text("same_as"),
        reason,
        table.text("reason"),
        made(table.take("causes", list, []), "cause", unexpected),
    )
    table.end()
    if not claim.measures and reason is None:
        raise FlashtwinError(f"{where}: give measures, or cannot_be_tested with the reason")
    return claim


def _pin(given: object, matrices: Mapping[str, Any]) -> Pin:
    named = given.get("id", "") if isinstance(given, Mapping) else ""
    where = f"pin {named}".strip()
    table = _Table(where, given)
    shared = {key: table.take(key, object, _NONE) for key in _SHARED}
    shared = {key: value for key, value in shared.items() if value is not _NONE}
    measure = _measure(where, shared, {}, matrices)
    if measure.holds is None:
        raise FlashtwinError(f"{where}: holds is missing: the tolerance")
    pin = Pin(
        table.take("id", str),
        table.take("text", str),
        table.take("source", str),
        tuple(table.take("matrices", list, [measure.matrix])),
        measure,
        table.text("reason"),
        table.text("contradicts"),
    )
    table.end()
    for matrix in pin.matrices:
        if matrix not in matrices:
            raise FlashtwinError(f"{where}: matrices: no matrix is called {shortened(matrix)}")
    return pin


def _case(given: object, matrices: Mapping[str, Any]) -> Case:
    table = _Table("case", given)
    shared = {key: table.take(key, object, _NONE) for key in _SHARED if key not in _JUDGED}
    shared = {key: value for key, value in shared.items() if value is not _NONE}
    name = table.take("name", str)
    where = f"case {name}"
    measure = _measure(where, shared, {"name": name}, matrices)
    case = Case(name, table.take("why", str, ""), table.text("command"), measure)
    table.end()
    return case


def _measure(where: str, given: object, shared: Mapping[str, Any], matrices: Mapping[str, Any]) -> Measure:
    if not isinstance(given, Mapping):
        raise FlashtwinError(f"{where}: found {shortened(given)}; must be a table")
    table = _Table(where, _merged(shared, given))
    selections = {key: table.take(key, dict, {}) for key in _SELECTIONS}
    expression = Expression(table.take("value", str, "a / b"), where)
    holds = table.take("holds", list, [])
    if holds and not (len(holds) == 2 and all(map(_is_number, holds))):
        raise FlashtwinError(f"{where}: holds = {shortened(holds)}: must be the two ends of a range")
    measure = Measure(
        table.take("name", str, ""),
        table.one_of("matrix", tuple(matrices)),
        table.take("figure", str),
        {key: selections[key] for key in sorted(expression.names)},
        table.take("where", dict, {}),
        expression,
        table.one_of("over", AGGREGATES, "mean"),
        table.one_of("unit", UNITS, "change"),
        table.take("printed", str, ""),
        (float(holds[0]), float(holds[1])) if holds else None,
        table.number("below"),
        table.number("above"),
    )
    table.end()
    return measure


def _figure(given: object, matrices: Mapping[str, Any]) -> Figure:
    table = _Table("figure", given)
    figure = Figure(
        table.take("title", str),
        table.one_of("matrix", tuple(matrices)),
        table.take("figure", str),
        table.take("over", str),
        table.take("by", str, "policy"),
        table.take("where", dict, {}),
        table.take("base", dict, {}),
    )
    table.end()
    return figure
