"""Tables of measurements of drives: CSV files, whose kind is recognised by their columns.

Each row gives the name of a measurement, such as h0/latency/70, the drive, the published load, and the
measured figures.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from ..errors import FlashtwinError
from .loads import (
    NOT_GENERATED,
    CapacityShare,
    Load,
    ProbeBesideWrites,
    RandomReads,
    Rewrite,
    SequentialPass,
    Zones,
    pattern_of,
    streams_of,
)

#: Function that makes a row from a record of the CSV file. For a record that is not compared, it returns
#: None.
_Reader: TypeAlias = "Callable[[Mapping[str, str]], Row | None]"
#: Percentiles of the tables that are compared.
PERCENTILES = ("50", "99", "99.9")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        name: drive, table and load, such as h0/latency/70.
        drive: description of the drive.
        load: the load as published; None if it cannot be run.
        figures: measured figures by name; a name ends in the unit.
        doubt: reason why the row is not compared; empty if it is compared.
        bounds: by name of the figure, its smallest and largest value over the parts of the measurement.
        free_percent: free blocks after the measurement in whole percent, from the drive's counter.
    """

    name: str
    drive: str
    load: Load | None
    figures: Mapping[str, float] = field(default_factory=dict)
    doubt: str = ""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    free_percent: float | None = None


def read_table(path: str | Path) -> list[Row]:
    """Read the rows of a table.

    Raises:
        FlashtwinError: the file cannot be read, or its columns are not those of a known table.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            columns = set(reader.fieldnames or ())
            records = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise FlashtwinError(f"{path}: cannot be read as a table: {e}") from None
    for needs, read in _READERS:
        if needs <= columns:
            return _numbered(path, records, read)
    known = "; ".join(", ".join(sorted(needs)) for needs, _ in _READERS)
    raise FlashtwinError(f"{path}: unknown columns; a table has one of these sets of columns: {known}")


def chosen_rows(rows: Sequence[Row], drives: Sequence[str] | None, patterns: str | None) -> list[Row]:
    """Return the rows of some drives, if the name of the row matches one of several patterns.

    Patterns are separated by ";". If `drives` is None, rows of all drives are returned. If `patterns` is
    None, all names match.
    """
    found = []
    for row in rows:
        if drives is not None and row.name.partition("/")[0] not in drives:
            continue
        if patterns is None or any(fnmatchcase(row.name, pattern) for pattern in patterns.split(";")):
            found.append(row)
    return found


def _numbered(path: str | Path, records: Sequence[Mapping[str, str]], read: _Reader) -> list[Row]:
    """Read records. A number such as "#2" is appended to a name that an earlier row already has."""
    rows: list[Row] = []
    seen: dict[str, int] = {}
    for line, record in enumerate(records, 2):
        try:
            row = read(record)
        except (KeyError, ValueError) as e:
            raise FlashtwinError(f"{path}:{line}: {e}") from None
        if row is None:
            continue
        seen[row.name] = seen.get(row.name, 0) + 1
        times = seen[row.name]
        rows.append(row if times == 1 else replace(row, name=f"{row.name}#{times}"))
    return rows


def _latency(record: Mapping[str, str]) -> Row | None:
    """Read a row with the response-time percentiles of a probe (the measured load) that ran beside writes.

    A measurement consists of several passes. The table has one record per pass, and one for all passes
    together. Only the latter is compared; for a record of a single pass, the result is None.
    """
    if record["pass"] != "all":
        return None
    rate = float(record["nominal_rate_kiops"])
    figures = {}
    if record["saturated"] == "yes":
        figures["kiops"] = float(record["achieved_total_kiops"])
    for op in ("read", "write"):
        for p in PERCENTILES:
            figures[f"{op}_p{p}_us"] = float(record[f"{op}_p{p}_us"])
    return Row(
        f"{record['device_key']}/latency/{rate:g}", record["drive"], ProbeBesideWrites(rate * 1000), figures
    )


def _fill(record: Mapping[str, str]) -> Row:
    """Read a row with the write amplification of a partly filled drive."""
    used = float(record["used_gib"])
    figures = {"waf": float(record["waf_last_quarter"])}
    times = float(record["overwrites_of_used"])
    if record["load"].startswith("sequential"):
        load: Load = SequentialPass(CapacityShare(used))
        name = "sequential"
    else:
        load = Rewrite(CapacityShare(used), "uniform:write=1", times)
        name = "uniform"
    name = f"{record['device_key']}/fill/{used:.0f}-{name}"
    return Row(name, record["drive"], load, figures, "", _bounds(record), _free(record))


def _bounds(record: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of write amplification.

    The bounds are the smallest and largest value over the four parts of a run. If the record has no values of
    parts, the bounds are the values of the last quarter and of the whole run, the smaller one first.
    """
    low, high = record["waf_lo_of_4_parts"], record["waf_hi_of_4_parts"]
    if not low or not high:
        values = [float(record[key]) for key in ("waf_last_quarter", "waf_whole_run") if record[key]]
        return {"waf": (min(values), max(values))}
    return {"waf": (float(low), float(high))}


def _free(record: Mapping[str, str]) -> float | None:
    text = record["free_blocks_percent_at_end"]
    return float(text) if text else None


def _pattern(record: Mapping[str, str]) -> Row:
    """Read a row of write amplification by pattern."""
    pattern, state = record["pattern"], record["initial_state"]
    start = "new" if "nothing written" in state else "shuffled" if "random order" in state else "filled"
    kind = f"{record['open_zones']}x{record['zone_gib']}GiB" if record["open_zones"] else ""
    name = "-".join(part for part in (pattern, kind, start) if part)
    drive = record["drive"]
    name = f"{record['device_key']}/pattern/{name}"
    figures = {"waf": float(record["waf_last_quarter"])}
    if record["confidence"].startswith("doubtful"):
        return Row(name, drive, None, figures, record["confidence"])
    times = float(record["overwrites"])
    theta = re.search(r"r\^-([0-9.]+)", record["address_distribution"])
    load = _zones(record, times) or pattern_of(pattern, theta.group(1) if theta else "", times, start)
    doubt = "" if load else f"the pattern {pattern} is not generated"
    return Row(name, drive, load, figures, doubt, _bounds(record), _free(record))


def _iops(record: Mapping[str, str]) -> Row:
    """Read a row with the rate of writes under one pattern."""
    pattern, details = record["pattern"], record["details"]
    zones = f"{record['open_zones']}x{record['zone_gib']}GiB" if record["open_zones"] else ""
    kind = zones or details.replace(" ", ",")
    name = f"{record['device_key']}/iops/{'-'.join(part for part in (pattern, kind) if part)}"
    unit = "mb_per_s" if record["io_bytes"] == "524288" else "kiops"
    scale = 0.524288e3 if unit == "mb_per_s" else 1.0
    figures = {unit: float(record["write_kiops_last_quarter"]) * scale}
    first, last = (float(record[f"write_kiops_{part}"]) for part in ("first_tenth", "last_quarter"))
    per_s = (0.1 * first + 0.9 * last) * 1000
    written_gib = float(record["run_seconds"]) * per_s * int(record["io_bytes"]) / 2**30
    load = _zones(record, None) or pattern_of(pattern, details, None, "filled")
    if isinstance(load, Rewrite | Zones):
        load = replace(load, written_gib=written_gib)
    return Row(
        name, record["drive"], load, figures, "" if load else f"the pattern {pattern} is not generated"
    )


def _zones(record: Mapping[str, str], times: float | None) -> Zones | None:
    """Return the zone load of a row; None if the row is not about zones."""
    if not record["open_zones"]:
        return None
    return Zones(float(record["zone_gib"]), int(record["open_zones"]), times)


def _reads(record: Mapping[str, str]) -> Row:
    """Read a row of random reads, by size, depth and number of processes."""
    size, depth, processes = (int(record[key]) for key in ("io_bytes", "depth_per_process", "processes"))
    stack = record["stack"].split()[0]
    name = f"980pro/reads/{record['group']}-{size}-{processes}x{depth}-{stack}"
    drive = "Samsung 980 PRO"
    figures = {"kiops": float(record["iops_per_drive"]) / 1000}
    figures |= {f"read_p{p}_us": float(record[f"p{p}_us"]) for p in PERCENTILES if record[f"p{p}_us"]}
    doubt = ""
    if record["group"] != "plain":
        doubt = "a mix with other processes is not run"
    elif record["drives"] != "1":
        doubt = "several drives behind one host"
    elif record["experiment"].startswith("block size"):
        doubt = "the drive was probably not written before"
    elif record["cores"] == "1" or (stack == "io_uring" and depth * processes > 48 * processes):
        doubt = "the host's processor limits the rate"
    return Row(name, drive, RandomReads(size, depth, processes), figures, doubt)


def _handles(record: Mapping[str, str]) -> Row:
    """Read a row of write amplification with or without placement handles."""
    workload, soc = record["workload"], record["soc_percent"]
    handles = "own" if record["mode"] == "FDP" else "none"
    name = "-".join(part for part in (workload, f"soc{soc}" if soc else "", handles) if part)
    times = float(record["overwrites_of_capacity"])
    figures = {"waf": float(record["waf_last_quarter"])}
    bounds = {"waf": (float(record["waf_lo_of_4_parts"]), float(record["waf_hi_of_4_parts"]))}
    doubts = [reason for word, reason in NOT_GENERATED.items() if word in workload]
    load = None if doubts else streams_of(workload, soc, handles, times)
    doubt = "" if load else "".join(doubts[:1]) or f"the load {workload} is not generated"
    return Row(
        f"{record['drive_key']}/placement/{name}", f"WARP {record['drive']}", load, figures, doubt, bounds
    )


_READERS = (
    ({"nominal_rate_kiops", "pass", "read_p99.9_us", "write_p99.9_us", "device_key"}, _latency),
    ({"used_gib", "overwrites_of_used", "waf_last_quarter", "device_key"}, _fill),
    ({"pattern", "initial_state", "waf_last_quarter", "overwrites", "device_key"}, _pattern),
    ({"pattern", "details", "write_kiops_last_quarter", "device_key"}, _iops),
    ({"io_bytes", "depth_per_process", "processes", "stack", "p99.9_us"}, _reads),
    (
        {"workload", "soc_percent", "mode", "overwrites_of_capacity", "waf_last_quarter", "drive_key"},
        _handles,
    ),
)
