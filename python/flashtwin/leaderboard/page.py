"""The leaderboard as a page: Markdown for the documentation, HTML with sortable tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .._report import page
from .._report.tables import Cell, Table
from .._support.estimates import mean_of
from .._support.files import write_text
from . import BASELINE, FIGURES

_CONFIDENCE = 0.95
#: Figures for which the page names the best policy of each load.
_WON = ("all_mean_us", "all_p99_us", "flash_erases")
#: Largest number of policies that the page names as the best ones of a case.
_NAMED = 3
_CASE_HEADS = ["device", "state", "situation"]

#: Device, state and situation.
_Case = tuple[str, str, str]


def markdown(outcome: dict[str, Any]) -> str:
    """Return ranks and winners for the documentation."""
    parts = [
        "# Leaderboard: policies beside LRU",
        f"All numbers are from `flashtwin leaderboard --{outcome['variant']}`. "
        "[What they show](../leaderboard.md).",
        f"**Which to use**: up to {_NAMED} policies that are better than {BASELINE} beyond chance, "
        "the best first.",
        _lines(_which_heads(), _which(outcome)),
    ]
    for case in _cases(outcome):
        table = _lines(_heads(), [_texts(rank) for rank in _ranks(outcome, case)])
        parts += [f"<details><summary>{_title(case)}</summary>", table, "</details>"]
    parts += ["**The best of each load**", _lines(_win_heads(), _winners(outcome))]
    return "\n\n".join(parts) + "\n"


def ranks(outcome: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, heads and rows of the table of each case (device, state and situation).

    Rows are in ascending order of the mean response time.
    """
    return [
        (
            _title(case),
            _heads(),
            [[cell.text for cell in [Cell(rank["policy"]), *_cells(rank)]] for rank in _ranks(outcome, case)],
        )
        for case in _cases(outcome)
    ]


def write_html(outcome: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page as one self-contained file."""
    about = [
        ("loads", outcome["about"]),
        ("variant", outcome["variant"]),
        ("failed runs", str(outcome["failed"])),
    ]
    above = [Table("What was run", ["", ""], [[Cell(head), Cell(text)] for head, text in about], plain=True)]
    which = [[Cell(text) for text in row] for row in _which(outcome)]
    above.append(Table("Which to use", _which_heads(), which, texts=len(_which_heads()), wrap=True))
    for case in _cases(outcome):
        rows = [[Cell(rank["policy"]), *_cells(rank)] for rank in _ranks(outcome, case)]
        above.append(Table(f"{_title(case)}: all loads, beside {BASELINE}", _heads(), rows))
    winners = [[Cell(text) for text in row] for row in _winners(outcome)]
    below = [Table("The best of each load", _win_heads(), winners, texts=7), _each(outcome)]
    figure = {
        "title": f"Mean response time, to {BASELINE}",
        "figure": "all_mean_us",
        "relative": True,
        "unit": f"ratio to {BASELINE}, over all loads",
        "over": "policy",
        "places": list(dict.fromkeys(rank["policy"] for rank in outcome["ranks"])),
        "lines": [
            {"name": _title(case), "values": [rank["all_mean_us"] for rank in _as_given(outcome, case)]}
            for case in _cases(outcome)
        ],
    }
    write_text(
        Path(path), page(outcome["title"], {"kind": "study", "figures": [figure]}, above, below), "the page"
    )


def _cases(outcome: dict[str, Any]) -> list[_Case]:
    return list(dict.fromkeys(_case(rank) for rank in outcome["ranks"]))


def _case(row: dict[str, Any]) -> _Case:
    return row["device"], row["state"], row["situation"]


def _title(case: _Case) -> str:
    return ", ".join(case)


def _as_given(outcome: dict[str, Any], case: _Case) -> list[dict[str, Any]]:
    return [rank for rank in outcome["ranks"] if _case(rank) == case]


def _which_heads() -> list[str]:
    return [*_CASE_HEADS, *_plain(FIGURES[figure] for figure in _WON)]


def _win_heads() -> list[str]:
    return [*_CASE_HEADS, "workload", *(FIGURES[figure] for figure in _WON)]


def _which(outcome: dict[str, Any]) -> list[list[str]]:
    """Return a row per case (device, state and situation) with the policies that beat the baseline.

    For each figure, the row names the best of the policies that are significantly better.
    """
    rows = []
    for case in _cases(outcome):
        row: list[str] = list(case)
        for figure in _WON:
            better = [
                rank
                for rank in _as_given(outcome, case)
                if rank[figure][2] is not None and rank[figure][2] < 1
            ]
            best = sorted(better, key=lambda rank: float(rank[figure][0]))[:_NAMED]
            named = [f"{rank['policy']} ({_cell(figure, rank[figure]).text})" for rank in best]
            row.append(", ".join(named) or f"none is better than {BASELINE}")
        rows.append(row)
    return rows


def _ranks(outcome: dict[str, Any], case: _Case) -> list[dict[str, Any]]:
    """Return the rows of a case (device, state and situation), one per policy.

    Rows are in ascending order of the mean response time.
    """

    def mean(rank: dict[str, Any]) -> float:
        value = rank["all_mean_us"][0]
        return math.inf if value is None else float(value)

    return sorted(_as_given(outcome, case), key=mean)


def _heads() -> list[str]:
    return ["policy", *(name.replace("hits (%)", "hits (points)") for name in _plain(FIGURES.values()))]


def _plain(names: Iterable[str]) -> list[str]:
    return [name.removesuffix(" (us)") for name in names]


def _cells(rank: dict[str, Any]) -> list[Cell]:
    return [_cell(figure, rank[figure]) for figure in FIGURES]


def _cell(figure: str, ends: list[float | None]) -> Cell:
    is_points = figure == "hits_ratio"
    value, low, high = (end if end is None or is_points else (end - 1) * 100 for end in ends)
    if value is None:
        return Cell("-")
    note = "" if low is None or high is None else f"({low:+.1f} to {high:+.1f})"
    return Cell(f"{value:+.1f}{'' if is_points else ' %'}", value, note)


def _texts(rank: dict[str, Any]) -> list[str]:
    return [rank["policy"], *(f"{cell.text} {cell.note}".strip() for cell in _cells(rank))]


def _winners(outcome: dict[str, Any]) -> list[list[str]]:
    """Return for each load, by figure, the best policy and its change from the baseline, paired by seed."""
    places: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in outcome["rows"]:
        place: tuple[str, ...] = (*_case(row), row["workload"])
        places.setdefault(place, {})[row["policy"]] = row
    rows = []
    for place, by_policy in places.items():
        best = []
        for figure in _WON:
            means = {policy: _mean(row["figures"][figure]) for policy, row in by_policy.items()}
            base = means.get(BASELINE)
            known = {policy: mean for policy, mean in means.items() if mean is not None}
            if not known or not base:
                best.append("-")
                continue
            policy = min(known, key=lambda name: known[name])
            best.append(f"{policy} ({(known[policy] / base - 1) * 100:+.1f} %)")
        rows.append([*place, *best])
    return rows


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _each(outcome: dict[str, Any]) -> Table:
    rows = []
    for row in outcome["rows"]:
        cells = [Cell(row[key]) for key in (*_CASE_HEADS, "workload", "policy")]
        for values in row["figures"].values():
            estimate = mean_of([value for value in values if value is not None], _CONFIDENCE)
            by_seed = ", ".join("-" if value is None else f"{value:.6g}" for value in values)
            text = "-" if estimate.value is None else f"{estimate.value:.4g}"
            cells.append(Cell(text, estimate.value, f"({by_seed})" if len(values) > 1 else ""))
        seeds = ", ".join(map(str, row["seeds"]))
        rows.append([*cells, Cell(f"{row['command']} SEED", None, f"seeds {seeds}")])
    heads = [*_CASE_HEADS, "workload", "policy", *FIGURES.values(), "command"]
    return Table("Each load: mean over seeds (seed by seed)", heads, rows, texts=5, wrap=True)


def _lines(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
