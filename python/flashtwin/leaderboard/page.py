"""The leaderboard as a page: Markdown for the documentation, HTML with tables that sort."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..estimates import mean_of
from ..files import write_text
from ..report import page
from ..report.tables import Cell, Table
from . import BASELINE, FIGURES

_CONFIDENCE = 0.95
#: The figures whose winners are named for each load.
_WON = ("all_mean_us", "all_p99_us", "flash_erases")


def markdown(outcome: dict[str, Any]) -> str:
    """Return ranks and winners for the documentation."""
    parts = []
    for device in _devices(outcome):
        parts += [f"**{device}**", _lines(_heads(), [_texts(rank) for rank in _ranks(outcome, device)])]
    heads = ["device", "situation", "workload", *(FIGURES[figure] for figure in _WON)]
    parts += ["**The best of each load**", _lines(heads, _winners(outcome))]
    return "\n\n".join(parts) + "\n"


def ranks(outcome: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return what each device's table has: its title, heads and rows, the least mean response time first."""
    return [
        (
            device,
            _heads(),
            [
                [cell.text for cell in [Cell(rank["policy"]), *_cells(rank)]]
                for rank in _ranks(outcome, device)
            ],
        )
        for device in _devices(outcome)
    ]


def write_html(outcome: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page: one file that needs no network."""
    about = [
        ("loads", outcome["about"]),
        ("variant", outcome["variant"]),
        ("failed runs", str(outcome["failed"])),
    ]
    above = [Table("What was run", ["", ""], [[Cell(head), Cell(text)] for head, text in about], plain=True)]
    for device in _devices(outcome):
        rows = [[Cell(rank["policy"]), *_cells(rank)] for rank in _ranks(outcome, device)]
        above.append(Table(f"{device}: all loads, beside {BASELINE}", _heads(), rows))
    winners = [[Cell(text) for text in row] for row in _winners(outcome)]
    heads = ["device", "situation", "workload", *(FIGURES[figure] for figure in _WON)]
    below = [Table("The best of each load", heads, winners, texts=6), _each(outcome)]
    figure = {
        "title": f"Mean response time, to {BASELINE}",
        "figure": "all_mean_us",
        "relative": True,
        "unit": f"ratio to {BASELINE}, over all loads",
        "over": "policy",
        "places": list(dict.fromkeys(rank["policy"] for rank in outcome["ranks"])),
        "lines": [
            {"name": device, "values": [rank["all_mean_us"] for rank in _as_given(outcome, device)]}
            for device in _devices(outcome)
        ],
    }
    write_text(
        Path(path), page(outcome["title"], {"kind": "study", "figures": [figure]}, above, below), "the page"
    )


def _devices(outcome: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(rank["device"] for rank in outcome["ranks"]))


def _as_given(outcome: dict[str, Any], device: str) -> list[dict[str, Any]]:
    return [rank for rank in outcome["ranks"] if rank["device"] == device]


def _ranks(outcome: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """The ranks on a device, the least mean response time first."""

    def mean(rank: dict[str, Any]) -> float:
        value = rank["all_mean_us"][0]
        return math.inf if value is None else float(value)

    return sorted(_as_given(outcome, device), key=mean)


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
    """For each load the best policy, with its change to the baseline; both seed by seed."""
    places: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for row in outcome["rows"]:
        place = (row["device"], row["situation"], row["workload"])
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
        cells = [Cell(row[key]) for key in ("device", "situation", "workload", "policy")]
        for values in row["figures"].values():
            estimate = mean_of([value for value in values if value is not None], _CONFIDENCE)
            by_seed = ", ".join("-" if value is None else f"{value:.6g}" for value in values)
            text = "-" if estimate.value is None else f"{estimate.value:.4g}"
            cells.append(Cell(text, estimate.value, f"({by_seed})" if len(values) > 1 else ""))
        seeds = ", ".join(map(str, row["seeds"]))
        rows.append([*cells, Cell(f"{row['command']} SEED", None, f"seeds {seeds}")])
    heads = ["device", "situation", "workload", "policy", *FIGURES.values(), "command"]
    return Table("Each load: mean over seeds (seed by seed)", heads, rows, texts=4, wrap=True)


def _lines(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
