"""Write amplifications measured by a drive's counters, from results of `counters.sh` or published tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .._drives.loads import Rewrite, SequentialPass
from .._drives.tables import read_table
from ..errors import FlashtwinError
from .counters import Counters, read_counters
from .identify import GIB, Interval, Point

#: The manifest of an experiment with counters.
MANIFEST = "counters.json"


def points_of_results(folder: str | Path) -> tuple[list[Point], float]:
    """Read the results of `counters.sh`. Return a point per experiment, and the drive's capacity in bytes.

    Raises:
        FlashtwinError: a file is missing, or the counters changed too little between two readings.
    """
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        capacity, experiments = float(manifest["capacity_bytes"]), list(manifest["experiments"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise FlashtwinError(f"{path}: no manifest of an experiment with counters: {e}") from None
    points = []
    for experiment in experiments:
        name = experiment["name"]
        before = read_counters(Path(folder) / f"{name}.before.json")
        after = read_counters(Path(folder) / f"{name}.after.json")
        points.append(
            Point(
                name,
                capacity * experiment["share"],
                experiment["pattern"],
                _waf(name, before, after),
                experiment["overwrites"],
                after.free_percent,
            )
        )
    return points, capacity


def _waf(name: str, before: Counters, after: Counters) -> Interval:
    """Return the write amplification between two readings.

    A counter may be wrong by one step, which gives the bounds of the result.
    """
    host, media = after.host_bytes - before.host_bytes, after.media_bytes - before.media_bytes
    step = after.step_bytes
    if host <= 2 * step or media <= 2 * step:
        raise FlashtwinError(
            f"{name}: the counters moved by {host} and {media} bytes in steps of {step}: measure longer"
        )
    return Interval(media / host, (media - step) / (host + step), (media + step) / (host - step))


def points_of_tables(tables: Sequence[str | Path], drive: str, capacity_bytes: float) -> list[Point]:
    """Read the points of a drive from published tables with values of its counters.

    Raises:
        FlashtwinError: no row of the drive has counters.
    """
    points = []
    for row in (row for table in tables for row in read_table(table)):
        if row.name.partition("/")[0] != drive or "waf" not in row.bounds or row.doubt or row.load is None:
            continue
        waf = Interval(row.figures["waf"], *row.bounds["waf"])
        match row.load:
            case SequentialPass(capacity):
                used = (capacity.used_gib or 0) * GIB or capacity_bytes
                points.append(Point(row.name, used, "sequential", waf, 1.0, row.free_percent))
            case Rewrite(capacity, pattern, times, shuffled) if times is not None and times > 1:
                used = (capacity.used_gib or 0) * GIB or capacity_bytes
                kind = "uniform" if pattern == "uniform:write=1" else pattern
                points.append(Point(row.name, used, kind, waf, times, row.free_percent, shuffled))
    if not points:
        raise FlashtwinError(f"{drive}: no row of the tables has counters of it")
    return points
