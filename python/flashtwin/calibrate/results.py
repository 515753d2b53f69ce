"""Results of experiments, as fio writes them."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FlashtwinError
from .figures import BEYOND_MIN, PERCENTILES, Figures


@dataclass(frozen=True)
class Results:
    """What was measured.

    Attributes:
        figures: of all experiments.
        capacity_bytes: of the drive.
        requests: number of measured requests of each experiment.
    """

    figures: Figures
    capacity_bytes: int
    requests: dict[str, int]


def of_job(job: Mapping[str, Any]) -> Figures:
    """Return the figures of a job of fio's `json` or `json+` output, by what was measured."""
    kinds = [kind for kind in ("read", "write") if job.get(kind, {}).get("total_ios")]
    figures = {"mb_per_s": sum(job[kind]["bw_bytes"] for kind in kinds) / 1e6}
    for kind in kinds:
        latency = job[kind]["clat_ns"]
        found = {float(percent): ns for percent, ns in latency.get("percentile", {}).items()}
        for percent in PERCENTILES:
            if percent in found and job[kind]["total_ios"] * (100 - percent) >= 100 * BEYOND_MIN:
                figures[f"{kind}.p{percent:g}_us"] = found[percent] / 1e3
    return figures


def read_results(folder: Path, rates_only: Container[str]) -> Results:
    """Return the results of all experiments in a folder.

    Args:
        folder: with NAME.json of each experiment, from fio, and manifest.json.
        rates_only: experiments whose latencies are no figures.

    Raises:
        FlashtwinError: a file cannot be read; the message names it.
    """
    manifest = _read_json(folder / "manifest.json")
    capacity = manifest.get("capacity_bytes")
    if not isinstance(capacity, int) or capacity <= 0:
        raise FlashtwinError(f"{folder / 'manifest.json'}: capacity_bytes: give the bytes of the drive")
    figures: Figures = {}
    requests: dict[str, int] = {}
    drives: dict[str, Path] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == "manifest.json":
            continue
        results = _read_json(path)
        jobs = results.get("jobs")
        if not jobs:
            raise FlashtwinError(f"{path}: no jobs of fio in it; run {path.stem} again")
        options = {**results.get("global options", {}), **jobs[0].get("job options", {})}
        drives.setdefault(options.get("filename", ""), path)
        if len(drives) > 1:
            (first, where), (other, _) = drives.items()
            raise FlashtwinError(
                f"{path}: of another drive ({other}) than {where.name} ({first}); run {path.stem} again"
            )
        requests[path.stem] = sum(jobs[0].get(kind, {}).get("total_ios", 0) for kind in ("read", "write"))
        for what, value in of_job(jobs[0]).items():
            if what == "mb_per_s" or path.stem not in rates_only:
                figures[f"{path.stem}/{what}"] = value
    return Results(figures, capacity, requests)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot read: {e.strerror}") from e
    except ValueError:
        raise FlashtwinError(f"{path}: not whole: no JSON; run {path.stem} again") from None
    return found
