"""An outcome as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import terminal
from . import words
from .measuring import counts_of, flat

if TYPE_CHECKING:
    from rich.table import Table


def tables(outcome: dict[str, Any], columns: int) -> list[Table]:
    """Build the tables of claims, of checks and of changes."""
    heads = ["claim", "measure", "paper", "measured (95 % interval)", "verdict"]
    found = []
    for each in (outcome["claims"], outcome["checks"]):
        rows = [_row(claim, measure) for claim, measure in flat(each)]
        if rows:
            found += terminal.tables(heads, rows, 2, columns, texts=(2, 4))
    rows = [
        [change["id"], measure["name"], words.measured(measure)]
        for change in outcome.get("changes", [])
        for measure in change["measures"]
    ]
    if rows:
        found += terminal.tables(["change", "measure", "measured (95 % interval)"], rows, 2, columns)
    return found


def _row(claim: dict[str, Any], measure: dict[str, Any] | None) -> list[str]:
    if measure is None:
        return [claim["id"], claim["text"], "", "", claim["verdict"]]
    name = measure["name"] or claim["text"]
    return [claim["id"], name, measure["printed"], words.measured(measure), measure["verdict"]]


def summary(outcome: dict[str, Any]) -> str:
    """Summarise an outcome in a line."""
    run = f"{outcome['study']} ({outcome['variant']}, {words.seeds(outcome)})"
    return f"{run}: {words.counts(counts_of(outcome['claims']))}"
