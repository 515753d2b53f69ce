"""An outcome as a page: Markdown for the documentation, HTML by the machinery of reports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..files import write_text
from ..report import page
from ..report.tables import Cell, Table
from . import words
from .measuring import HOLDS, VERDICTS, counts_of, flat

_HEADS = ("claim", "statement", "paper", "measured (95 % interval)", "verdict")
_CASE_HEADS = ("case", "measured (95 % interval)")


def markdown(outcome: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    name, claims = outcome["study"], outcome["claims"]
    parts = [
        f"# {outcome['title']}",
        outcome["paper"],
        outcome["about"],
        f"Verdicts: **{words.counts(counts_of(claims))}**. All numbers are from `flashtwin study run {name} "
        f"--{outcome['variant']}` ({words.seeds(outcome)}); `flashtwin study show {name}` prints them. "
        "[How verdicts are made](../studies.md#verdicts).",
        *_steady(outcome),
        "## Claims",
        _rows(_HEADS, [_claim_row(claim, measure) for claim, measure in flat(claims)]),
    ]
    why = [claim for claim in claims if claim["verdict"] != HOLDS and claim["reason"]]
    if why:
        parts.append("## Where it does not hold, and why")
    for claim in why:
        parts += [f"### {claim['id']}", f"*{claim['text']}*: {claim['verdict']}.", claim["reason"].strip()]
        if claim["causes"]:
            parts.append(_rows(_CASE_HEADS, _cases(claim["causes"])))
    if outcome.get("changes"):
        parts.append("## What a change does")
    for change in outcome.get("changes", []):
        parts += [f"**{change['id']}**: {change['text']}", _rows(_CASE_HEADS, _cases(change["measures"]))]
        parts += [change["reason"].strip()] if change["reason"] else []
    if outcome["figures"]:
        parts.append("## Figures")
    for figure in outcome["figures"]:
        heads = (figure["over"], *(line["name"] for line in figure["lines"]))
        parts += [f"**{figure['title']}** ({words.figure_unit(figure)})", _rows(heads, _figure_rows(figure))]
    if outcome["workloads"]:
        heads = ("workload", "load", "arrivals", "known of the original", "the stand-in", "source")
        parts += ["## Workloads", _rows(heads, [_load(load) for load in outcome["workloads"]])]
    if outcome["checks"]:
        parts += [
            "## Checks of the study",
            _rows(_HEADS, [_claim_row(check, measure) for check, measure in flat(outcome["checks"])]),
        ]
    heads = ("matrix", "cells", "steady", "axes", "settings")
    parts += ["## Runs", _rows(heads, _matrices(outcome))]
    return "\n\n".join(parts) + "\n"


def overview(outcomes: list[dict[str, Any]]) -> str:
    """Return the summary of all studies for the documentation."""
    # The last one, without any run, does not occur here.
    verdicts = VERDICTS[:-1]
    heads = ("study", "claims", "measures that hold", *verdicts)
    rows = []
    for outcome in outcomes:
        found = outcome["claims"]
        ids = [
            ", ".join(each["id"] for each in found if each["verdict"] == verdict) or "-"
            for verdict in verdicts
        ]
        measures = [measure for claim in found for measure in claim["measures"]]
        hold = sum(measure["verdict"] == HOLDS for measure in measures)
        name = f"[{outcome['title']}]({outcome['study']}.md)"
        rows.append([name, str(len(found)), f"{hold} of {len(measures)}", *ids])
    every = [claim for outcome in outcomes for claim in outcome["claims"]]
    parts = [
        "# The papers' claims, reproduced",
        f"{len(every)} claims of {len(outcomes)} papers: **{words.counts(counts_of(every))}**. "
        "`flashtwin study list` prints the counts, `flashtwin study list --markdown` this page. "
        "[How verdicts are made](../studies.md#verdicts).",
        _rows(heads, rows),
    ]
    return "\n\n".join(parts) + "\n"


def _steady(outcome: dict[str, Any]) -> list[str]:
    found = words.all_steady(outcome)
    where = "([the criterion](../studies.md#warm-up)). The table of [runs](#runs) has each matrix."
    return [] if found is None else [f"{found} {where}"]


def _claim_row(claim: dict[str, Any], measure: dict[str, Any] | None) -> list[str]:
    if measure is None:
        return [claim["id"], claim["text"], claim["source"], "-", claim["verdict"]]
    first = claim["measures"][0] is measure
    name = ": ".join(text for text in ((claim["text"] if first else ""), measure["name"]) if text)
    return [claim["id"], name, measure["printed"], words.measured(measure), measure["verdict"]]


def _cases(measures: list[dict[str, Any]]) -> list[list[str]]:
    return [[measure["name"], words.measured(measure)] for measure in measures]


def _figure_rows(figure: dict[str, Any]) -> list[list[str]]:
    return [
        [place, *(words.place(figure, line["values"][i]) for line in figure["lines"])]
        for i, place in enumerate(figure["places"])
    ]


def _load(load: dict[str, Any]) -> list[str]:
    arrivals = "; ".join(f"{name}: `{text}`" for name, text in load["arrivals"].items())
    return [load["name"], f"`{load['load']}`", arrivals, load["published"], load["stand_in"], load["source"]]


def _matrices(outcome: dict[str, Any]) -> list[list[str]]:
    rows = []
    for matrix in outcome["matrices"]:
        axes = "; ".join(f"{axis}: {', '.join(map(str, v))}" for axis, v in matrix["axes"].items())
        settings = _flat(matrix["run"]) | _flat(matrix["set"])
        told = ", ".join(f"{key} = {value}" for key, value in settings.items())
        rows.append([matrix["name"], str(matrix["cells"]), words.steady(matrix["steady"]), axes, told])
    return rows


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _rows(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def write_html(outcome: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a study: one file that needs no network."""
    figures = [
        {**figure, "places": list(map(str, figure["places"])), "unit": words.figure_unit(figure)}
        for figure in outcome["figures"]
    ]
    facts = [("paper", outcome["paper"]), ("study", outcome["about"])]
    runs = [text for text in (words.seeds(outcome), words.all_steady(outcome)) if text]
    facts += [("verdicts", words.counts(counts_of(outcome["claims"]))), ("runs", "; ".join(runs))]
    above = [
        Table("What was run", ["", ""], [[Cell(head), Cell(text)] for head, text in facts], plain=True),
        _table("Claims", outcome["claims"]),
    ]
    below = []
    if outcome["checks"]:
        below.append(_table("Checks of the study", outcome["checks"]))
    for claim in outcome["claims"]:
        if claim["verdict"] != HOLDS and claim["reason"]:
            rows = [[Cell(claim["reason"].strip()), Cell("")]]
            rows += [[Cell(name), Cell(text)] for name, text in _cases(claim["causes"])]
            below.append(Table(f"{claim['id']}: {claim['verdict']}", ["", ""], rows, plain=True))
    for change in outcome.get("changes", []):
        rows = [[Cell(change["text"]), Cell("")], [Cell(change["reason"] or ""), Cell("")]]
        rows += [[Cell(name), Cell(text)] for name, text in _cases(change["measures"])]
        below.append(Table(change["id"], ["", ""], rows, plain=True))
    data = {"kind": "study", "figures": figures}
    title = f"{outcome['title']} ({outcome['variant']})"
    write_text(Path(path), page(title, data, above, below), "the report")


def _table(title: str, claims: list[dict[str, Any]]) -> Table:
    rows = []
    for claim, measure in flat(claims):
        id_, text, printed, value, verdict = _claim_row(claim, measure)
        key = None if measure is None else measure["value"]
        rows.append([Cell(id_), Cell(text), Cell(printed), Cell(verdict), Cell(value, key)])
    return Table(title, ["claim", "statement", "paper", "verdict", "measured"], rows, texts=4, wrap=True)
