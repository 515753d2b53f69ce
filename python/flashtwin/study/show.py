"""An outcome as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._support import terminal
from . import words
from .measuring import flat
from .verdicts import counts_of

if TYPE_CHECKING:
    from rich.table import Table


def tables(outcome: dict[str, Any], columns: int) -> list[Table]:
    """Build the tables of cases, pins, claims, checks and changes."""
    found: list[Table] = []
    for heads, rows, texts, keys in (
        _cases(outcome),
        (["pin", "figure of the baseline", "paper", "here", "verdict"], _pins(outcome), (1, 4), 2),
        (
            ["claim", "measure", "paper", "measured (95 % interval)", "result", "verdict"],
            [_row(*each) for each in flat(outcome["claims"])],
            (2, 5),
            2,
        ),
        (
            ["check", "measure", "expected", "measured (95 % interval)", "result", "verdict"],
            [_row(*each) for each in flat(outcome["checks"])],
            (2, 5),
            2,
        ),
        (["change", "measure", "measured (95 % interval)"], _changes(outcome), (1,), 2),
    ):
        if rows:
            found += terminal.tables(heads, rows, keys, columns, texts=texts)
    return found


def _cases(outcome: dict[str, Any]) -> tuple[list[str], list[list[str]], tuple[int, ...], int]:
    heads, rows = words.cases(outcome)
    texts = tuple(i for i, head in enumerate(heads) if head in ("why", "command"))
    return heads, rows, texts, 1


def _pins(outcome: dict[str, Any]) -> list[list[str]]:
    return [
        [pin["id"], pin["text"], pin["measure"]["printed"], words.measured(pin["measure"]), pin["verdict"]]
        for pin in outcome["pins"]
    ]


def _changes(outcome: dict[str, Any]) -> list[list[str]]:
    return [
        [change["id"], measure["name"], words.measured(measure)]
        for change in outcome["changes"]
        for measure in change["measures"]
    ]


def _row(claim: dict[str, Any], measure: dict[str, Any] | None) -> list[str]:
    if measure is None:
        return [claim["id"], claim["text"], "", "", "", words.verdict(claim)]
    is_main = measure is claim["measures"][0]
    name = measure["name"] or claim["text"]
    verdict = words.verdict(claim) if is_main else ""
    return [claim["id"], name, measure["printed"], words.measured(measure), measure["result"], verdict]


def summary(outcome: dict[str, Any]) -> str:
    """Summarise an outcome in a line."""
    run = f"{outcome['study']} ({outcome['variant']}, {words.seeds(outcome)})"
    return ": ".join(part for part in (run, words.counts(counts_of(outcome["claims"]))) if part)
