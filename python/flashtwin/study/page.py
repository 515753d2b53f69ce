"""The page of a study's outcome: Markdown for the documentation, and HTML in the form of reports."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from .._report import page
from .._report.tables import Cell, Table
from .._support.files import write_text
from ..errors import FlashtwinError
from . import words
from .figure import draw, marks
from .measuring import flat
from .verdicts import REPRODUCED, VERDICTS, counts_of

_PIN_HEADS = ("pin", "figure of the baseline", "paper", "here (95 % interval)", "verdict")
_CLAIM_HEADS = ("claim", "statement", "paper", "here (95 % interval)", "result", "verdict")
_MEASURE_HEADS = ("claim", "measure", "paper", "here (95 % interval)", "result")
_CAUSE_HEADS = ("case", "measured (95 % interval)")
_LOAD_HEADS = ("workload", "load", "arrivals", "known of the original", "the stand-in", "source")
_RUN_HEADS = ("matrix", "cells", "steady", "axes", "settings")


def _figure(outcome: dict[str, Any]) -> list[str]:
    if not marks(outcome):
        return []
    return [f"![Printed values as marks, measured ones as intervals]({outcome['study']}.svg)"]


def _command(outcome: dict[str, Any]) -> str:
    figure = f" --figure {outcome['study']}.svg" if marks(outcome) else ""
    return f"```sh\nflashtwin study show {outcome['study']}{figure}\n```"


def markdown(outcome: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    parts = [
        f"# {outcome['title']}",
        outcome["sentence"],
        outcome["use"],
        _table(*_cases(outcome)),
        *_figure(outcome),
        _verdicts(outcome),
        *_section("The paper's operating point", _PIN_HEADS, [_pin(pin) for pin in outcome["pins"]]),
        *[f"**{pin['id']}** {pin['reason'].strip()}" for pin in outcome["pins"] if pin["reason"]],
        *_section("Claims", _CLAIM_HEADS, [_claim(claim) for claim in outcome["claims"]]),
        *_causes(outcome["claims"]),
        *_changes(outcome["changes"]),
        "## How it was done",
        f"{outcome['paper'].strip()}.",
        outcome["about"],
        *_steady(outcome),
        _command(outcome),
        *_folded("All measures", _MEASURE_HEADS, _measures(outcome["claims"])),
        *_figures(outcome["figures"]),
        *_folded("Workloads", _LOAD_HEADS, [_load(load) for load in outcome["workloads"]]),
        *_folded("Checks of the study", _MEASURE_HEADS, _measures(outcome["checks"])),
        *_folded("Runs", _RUN_HEADS, _matrices(outcome)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdicts(outcome: dict[str, Any]) -> str:
    again = f"flashtwin study run {outcome['study']} --{outcome['variant']}"
    means = f"Numbers are means of {words.seeds(outcome)}; `{again}` repeats them."
    if not outcome["claims"]:
        return means
    counts = words.counts(counts_of(outcome["claims"]))
    return f"Of the paper's claims: **{counts}** ([what the words mean](../studies.md#verdicts)). {means}"


def overview(outcomes: list[dict[str, Any]]) -> str:
    """Return the summary of all studies for the documentation."""
    rows = []
    for outcome in outcomes:
        found = outcome["claims"]
        ids = [
            ", ".join(each["id"] for each in found if each["verdict"] == verdict and not each["same_as"])
            for verdict in VERDICTS
        ]
        pins = [pin["verdict"] for pin in outcome["pins"]]
        name = f"[{outcome['title']}]({outcome['study']}.md)"
        rows.append([name, f"{pins.count('met')} of {len(pins)}", *(each or "-" for each in ids)])
    every = [claim for outcome in outcomes for claim in outcome["claims"]]
    counts = counts_of(every)
    parts = [
        "# The papers' claims, reproduced",
        *[f"- [{outcome['title']}]({outcome['study']}.md): {outcome['sentence']}" for outcome in outcomes],
        f"{sum(counts.values())} claims of {len(outcomes)} papers: **{words.counts(counts)}**. "
        "`flashtwin study list` prints the counts, `flashtwin study list --markdown` this page. "
        "[How verdicts are made](../studies.md#verdicts).",
        _table(("study", "pins met", *VERDICTS), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, heads: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return [f"## {title}", _table(heads, rows)] if rows else []


def _folded(title: str, heads: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    return [f"<details><summary>{title}</summary>", _table(heads, rows), "</details>"]


def _steady(outcome: dict[str, Any]) -> list[str]:
    found = words.all_steady(outcome)
    where = "([the criterion](../studies.md#warm-up))."
    return [] if found is None else [f"{found} {where}"]


def _cases(outcome: dict[str, Any]) -> tuple[tuple[str, ...], list[list[str]]]:
    heads, rows = words.cases(outcome)
    return tuple(heads), [[*row[:-1], f"`{row[-1]}`"] for row in rows]


def _pin(pin: dict[str, Any]) -> list[str]:
    text = f"{pin['text']} ({pin['source']})"
    return [pin["id"], text, pin["measure"]["printed"], words.measured(pin["measure"]), pin["verdict"]]


def _claim(claim: dict[str, Any]) -> list[str]:
    text = f"{claim['text']} ({claim['source']})" if claim["source"] else claim["text"]
    if not claim["measures"]:
        return [claim["id"], text, "-", "-", "-", words.verdict(claim)]
    main = claim["measures"][0]
    text = ": ".join(each for each in (text, main["name"]) if each)
    row = [claim["id"], text, main["printed"], words.measured(main), main["result"]]
    return [*row, f"**{words.verdict(claim)}** ({claim['footing']})"]


def _measures(claims: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [claim["id"], measure["name"], measure["printed"], words.measured(measure), measure["result"]]
        for claim, measure in flat(claims)
        if measure is not None
    ]


def _causes(claims: list[dict[str, Any]]) -> list[str]:
    parts = []
    for claim in claims:
        if claim["verdict"] == REPRODUCED or not claim["reason"]:
            continue
        parts.append(f"**{claim['id']}**, {words.verdict(claim)}. {claim['reason'].strip()}")
        rows = [[m["name"], words.measured(m)] for m in (*claim["readings"], *claim["causes"])]
        parts += _folded("Measured", _CAUSE_HEADS, rows)
    return ["### Causes", *parts] if parts else []


def _changes(changes: list[dict[str, Any]]) -> list[str]:
    parts = []
    for change in changes:
        rows = [[measure["name"], words.measured(measure)] for measure in change["measures"]]
        parts += [f"**{change['id']}**: {change['text']}", _table(_CAUSE_HEADS, rows)]
        parts += [change["reason"].strip()] if change["reason"] else []
    return ["## What a change does", *parts] if parts else []


def _figures(figures: list[dict[str, Any]]) -> list[str]:
    parts = []
    for figure in figures:
        heads = (figure["over"], *(line["name"] for line in figure["lines"]))
        parts += _folded(f"{figure['title']} ({words.figure_unit(figure)})", heads, _figure_rows(figure))
    return parts


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


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def write_html(outcome: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a study as one self-contained file."""
    figures = [
        {**figure, "places": list(map(str, figure["places"])), "unit": words.figure_unit(figure)}
        for figure in outcome["figures"]
    ]
    above = [
        _sortable(title, heads, rows)
        for title, heads, rows in (
            ("Cases", *_cases(outcome)),
            ("The paper's operating point", _PIN_HEADS, [_pin(pin) for pin in outcome["pins"]]),
            ("Claims", _CLAIM_HEADS, [_claim(claim) for claim in outcome["claims"]]),
        )
        if rows
    ]
    below = [_sortable("All measures", _MEASURE_HEADS, _measures(outcome["claims"]))]
    if outcome["checks"]:
        below.append(_sortable("Checks of the study", _MEASURE_HEADS, _measures(outcome["checks"])))
    for claim in outcome["claims"]:
        if claim["verdict"] != REPRODUCED and claim["reason"]:
            rows = [(claim["reason"].strip(), "")]
            rows += [(m["name"], words.measured(m)) for m in (*claim["readings"], *claim["causes"])]
            below.append(_plain(f"{claim['id']}: {words.verdict(claim)}", rows))
    for change in outcome["changes"]:
        rows = [(change["text"], ""), (change["reason"] or "", "")]
        rows += [(measure["name"], words.measured(measure)) for measure in change["measures"]]
        below.append(_plain(change["id"], rows))
    runs = [text for text in (words.seeds(outcome), words.all_steady(outcome)) if text]
    below.append(
        _plain(
            "How it was done",
            [("paper", outcome["paper"]), ("study", outcome["about"]), ("runs", "; ".join(runs))],
        )
    )
    data = {"kind": "study", "figures": figures}
    title = f"{outcome['title']} ({outcome['variant']})"
    write_text(Path(path), page(title, data, above, below, _lead(outcome)), "the report")


def _lead(outcome: dict[str, Any]) -> str:
    counts = words.counts(counts_of(outcome["claims"]))
    texts = [f"**{outcome['sentence']}**", *outcome["use"].split("\n\n")]
    texts += [f"**Verdicts**: {counts}."] if counts else []
    paragraphs = [f"<p>{_inline(text)}</p>" for text in texts if text.strip("*")]
    return f'<div class="lead">{"".join(paragraphs)}{_image(outcome)}</div>'


def _inline(text: str) -> str:
    """Convert the Markdown that studies use to HTML: bold, code, emphasis."""
    found = escape(text.strip())
    for mark, tag in ((r"\*\*", "b"), ("`", "code"), (r"\*", "em")):
        found = re.sub(rf"{mark}([^*`]+){mark}", rf"<{tag}>\1</{tag}>", found)
    return found


def _image(outcome: dict[str, Any]) -> str:
    """Return the figure as a part of the page.

    The part is empty if Matplotlib is missing or if there is nothing to draw.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        try:
            draw(outcome, path)
        except FlashtwinError:
            return ""
        data = base64.b64encode(path.read_bytes()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    alt = "Printed values as marks, measured ones as intervals"
    return f'<div class="scroll"><img alt="{alt}" src="{source}"></div>'


def _plain(title: str, rows: list[tuple[str, str]]) -> Table:
    return Table(title, ["", ""], [[Cell(head), Cell(text)] for head, text in rows], plain=True)


def _sortable(title: str, heads: tuple[str, ...], rows: list[list[str]]) -> Table:
    cells = [[Cell(text.replace("**", "").replace("`", "")) for text in row] for row in rows]
    return Table(title, list(heads), cells, texts=len(heads), wrap=True)
