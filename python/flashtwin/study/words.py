"""Formats measured values, figures and counts as text for the terminal, the page and Markdown."""

from __future__ import annotations

from typing import Any

from .._results.show import said
from .._support import words
from .verdicts import CONDITIONAL, VERDICTS


def number(value: float, unit: str) -> str:
    """Format a value in the unit of its measure."""
    if unit == "change":
        return f"{value:+.1f} %"
    if unit == "percent":
        return f"{value:.2f} %" if abs(value) < 10 else f"{value:.1f} %"
    return f"{value:.4g}"


def measured(measure: dict[str, Any]) -> str:
    """Format a measured value with its interval."""
    if measure["value"] is None:
        return "-"
    text = number(measure["value"], measure["unit"])
    if measure["low"] is None:
        return text
    ends = [number(measure[end], measure["unit"]).removesuffix(" %") for end in ("low", "high")]
    return f"{text} ({ends[0]} to {ends[1]})"


def cases(outcome: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of the table of cases (situations of users). Empty columns are omitted."""
    measures = [case["measure"] for case in outcome["cases"]]
    columns = {
        "your case": [measure["name"] for measure in measures],
        "printed": [measure["printed"] for measure in measures],
        "gain or cost (95 % interval)": [measured(measure) for measure in measures],
        "why": [case["why"] for case in outcome["cases"]],
        "command": [case["command"] for case in outcome["cases"]],
    }
    shown = {head: texts for head, texts in columns.items() if any(texts)}
    return list(shown), [[text or "-" for text in row] for row in zip(*shown.values(), strict=True)]


def verdict(claim: dict[str, Any]) -> str:
    """Format a verdict with its condition, or with the id of the claim that has the same number."""
    text = str(claim["verdict"])
    if claim["verdict"] == CONDITIONAL:
        text = f"{text}: {claim['condition']}"
    return text if claim["same_as"] is None else f"{text} (the number of {claim['same_as']})"


def counts(found: dict[str, int]) -> str:
    """Format the counts of those verdicts that occur."""
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found.get(verdict))


def place(figure: dict[str, Any], value: list[float | None] | None) -> str:
    """Format a value of a figure."""
    if value is None or value[0] is None:
        return "-"
    return f"{value[0]:.3f}" if figure["relative"] else said(figure["figure"], value[0])


def figure_unit(figure: dict[str, Any]) -> str:
    """Describe what a figure shows."""
    return f"{figure['figure']}, relative" if figure["relative"] else figure["figure"]


def steady(found: dict[str, int] | None) -> str:
    """Describe how many runs were steady when their measurement began, and after how many requests."""
    if found is None:
        return "-"
    least, most = (words.count(found[end]) for end in ("least", "most"))
    return f"{found['met']} of {found['runs']}, after {least if least == most else f'{least} to {most}'}"


def all_steady(outcome: dict[str, Any]) -> str | None:
    """Describe how many runs of a study were steady when their measurement began.

    Returns None if all warm-ups have fixed lengths.
    """
    found = [matrix["steady"] for matrix in outcome["matrices"] if matrix["steady"] is not None]
    if not found:
        return None
    met, runs = (words.count(sum(each[key] for each in found)) for key in ("met", "runs"))
    return f"Of the {runs} runs that warm up until they are steady, or up to a limit, {met} became steady"


def seeds(outcome: dict[str, Any]) -> str:
    """Describe how often each cell was run."""
    found = sorted({len(matrix["axes"]["seed"]) for matrix in outcome["matrices"]})
    cells = words.count(sum(matrix["cells"] for matrix in outcome["matrices"]))
    return f"{cells} cells, {' or '.join(map(str, found))} seeds"
