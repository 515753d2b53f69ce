"""The report of a calibration: measured and modelled figures, parameters, held-out experiments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._report import page
from .._report.tables import Cell, Table
from .._support.files import write_text
from . import loads
from .device_file import provenance, strongest
from .figures import PERCENTILES
from .fit import Calibration
from .parameters import BY_NAME

#: Charts of the report. Each shows experiments that differ in one number: prefix of their names, title,
#: figure, unit.
_SERIES = (
    ("read-size-", "Reads one at a time, by size", "read.p50_us", "median latency, us"),
    ("read-depth-", "Random reads, by depth", "mb_per_s", "MB/s"),
    ("read-stride-", "Reads of multiples of a stride", "mb_per_s", "MB/s"),
    (
        "write-fill-",
        "Sequential writes to an empty drive, up to a share of its capacity (%)",
        "mb_per_s",
        "MB/s",
    ),
    ("write-burst-", "Bursts of writes, by length", "mb_per_s", "MB/s"),
    ("other-", "Held out: bandwidth", "mb_per_s", "MB/s"),
)


def write_report(found: Calibration, name: str, path: str | os.PathLike[str]) -> None:
    """Write the report as one self-contained file."""
    held_out = {load.name for load in loads.held_out()}
    apart = {load.name for load in loads.measured_only(found.profile.capacity_bytes)}
    seen = [each for each in found.measured if each.split("/")[0] not in held_out | apart]
    only = [each for each in found.measured if each.split("/")[0] in apart]
    unseen = [each for each in found.measured if each.split("/")[0] in held_out]
    above = [_summary(found, seen, unseen), _parameters(found)]
    below = [_errors("Held-out experiments, which the fit did not see", found, unseen)] if unseen else []
    below.append(_errors("Experiments of the fit", found, seen))
    if only:
        below.append(_errors("Measured only: the model has no parameter for these", found, only))
    data = {"kind": "calibration", "figures": _charts(found)}
    write_text(Path(path), page(f"{name}: calibration", data, above, below), "the report")


def _summary(found: Calibration, seen: Sequence[str], unseen: Sequence[str]) -> Table:
    identified = [name for name in found.refined.values if found.identified(name)]
    facts = [
        (
            "drive",
            f"{found.drive_bytes / 1e9:.1f} GB; the model has {found.profile.capacity_bytes / 1e9:.1f} GB",
        ),
        ("parameters", f"{len(identified)} of {len(found.refined.values)} identified within 10 %"),
        ("evaluations", str(found.refined.evaluations)),
        ("median error", _median(found, seen)),
    ]
    if unseen:
        facts.append(("median error, held out", _median(found, unseen)))
    return Table("Fit", ["", ""], [[Cell(head), Cell(text)] for head, text in facts], plain=True)


def _median(found: Calibration, names: Sequence[str]) -> str:
    sizes = sorted(abs(found.relative_error(name)) for name in names)
    return f"{sizes[len(sizes) // 2]:.1%} of {len(sizes)} figures" if sizes else "no figures"


def _parameters(found: Calibration) -> Table:
    rows = []
    for name, value in found.refined.values.items():
        parameter = BY_NAME[name]
        spread = found.spread(name)
        by, change = strongest(found, name) if spread is not None else ("", 0.0)
        rows.append(
            [
                Cell(name),
                Cell(parameter.key),
                Cell(provenance(found, parameter.key)),
                Cell(f"{value:.4g} {parameter.unit}".strip(), value),
                Cell(f"{found.first[name]:.4g}", found.first[name]),
                Cell("-" if spread is None else f"{spread:.1%}", spread),
                Cell(f"{change:.1%}" if by else "-", change, note=by),
            ]
        )
    heads = ["parameter", "key", "provenance", "value", "first estimate", "interval, +-", "10 % more changes"]
    return Table("Parameters", heads, rows, texts=3, wrap=True)


def _errors(title: str, found: Calibration, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        error = found.relative_error(name)
        rows.append(
            [
                Cell(name.split("/")[0]),
                Cell(name.split("/")[1]),
                Cell(f"{found.measured[name]:.4g}", found.measured[name]),
                Cell(f"{found.modelled[name]:.4g}", found.modelled[name]),
                Cell(f"{error:+.1%}", abs(error)),
            ]
        )
    return Table(title, ["experiment", "figure", "measured", "modelled", "error"], rows, texts=2)


def _charts(found: Calibration) -> list[dict[str, Any]]:
    experiments = list(dict.fromkeys(name.split("/")[0] for name in found.measured))
    charts = []
    for prefix, title, figure, unit in _SERIES:
        names = [
            each for each in experiments if each.startswith(prefix) and f"{each}/{figure}" in found.measured
        ]
        charts.append(
            _chart(found, title, unit, {each.removeprefix(prefix): f"{each}/{figure}" for each in names})
        )
    for each in experiments:
        for kind in ("read", "write") if each.startswith(("beside-", "write-random", "other-")) else ():
            places = {f"p{percent:g}": f"{each}/{kind}.p{percent:g}_us" for percent in PERCENTILES}
            known = {place: name for place, name in places.items() if name in found.measured}
            charts.append(_chart(found, f"{each}: {kind}s by percentile", "latency, us", known))
    return [chart for chart in charts if chart["places"]]


def _chart(found: Calibration, title: str, unit: str, names: dict[str, str]) -> dict[str, Any]:
    lines = [("measured", found.measured), ("modelled", found.modelled)]
    return {
        "title": title,
        "unit": unit,
        "figure": "p50_us" if unit.endswith("us") else "mb_per_s",
        "relative": False,
        "places": list(names),
        "lines": [
            {"name": label, "values": [[values[name]] * 3 for name in names.values()]}
            for label, values in lines
        ],
    }
