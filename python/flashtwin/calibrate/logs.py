"""Logs that fio writes with `--write_lat_log` and `--write_bw_log`, and percentiles as CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .._support.inputs import open_regular
from ..errors import FlashtwinError
from .figures import BEYOND_MIN, PERCENTILES, Figures

#: Name of a log, such as NAME_clat.1.log, where 1 is the number of the job.
LOG_NAME = re.compile(r"(?P<experiment>.+)_(?P<what>clat|lat|bw)(\.\d+)?\.log")
#: Kinds of requests that are figures, by the number that fio logs for them. Others, such as trims, are
#: ignored.
_KINDS = {0: "read", 1: "write"}
#: Minimum length of a log in ms. Its times are whole milliseconds. From a shorter log, the bandwidth cannot
#: be computed within 1 %.
_ELAPSED_MIN_MS = 100
#: Maximum number of characters that are read of a line. A longer line is rejected.
_LINE_MAX = 4096
_CSV_HEAD = ["experiment", "figure", "value"]
_FIGURES = ["mb_per_s", *(f"{kind}.p{percent:g}_us" for kind in _KINDS.values() for percent in PERCENTILES)]


def of_logs(paths: list[Path]) -> tuple[Figures, int]:
    """Return the figures in the logs of one experiment, and its number of requests.

    Latencies are fio's completion latencies (clat), from which fio also computes its percentiles. If only
    total latencies (lat) were logged, they are used.
    """
    by_what: dict[str, list[Path]] = {}
    for path in paths:
        match = LOG_NAME.fullmatch(path.name)
        if match:
            by_what.setdefault(match["what"], []).append(path)
    figures: Figures = {}
    requests = 0
    latencies = by_what.get("clat", by_what.get("lat", []))
    by_kind: dict[str, list[int]] = {}
    for path in latencies:
        for number, (_, ns, kind, size) in _lines(path):
            if not size:
                raise FlashtwinError(
                    f"{path}:{number}: an average, without percentiles: run it again without log_avg_msec"
                )
            by_kind.setdefault(kind, []).append(ns)
    for kind, found in sorted(by_kind.items()):
        requests += len(found)
        found.sort()
        for percent in PERCENTILES:
            if len(found) * (100 - percent) >= 100 * BEYOND_MIN:
                figures[f"{kind}.p{percent:g}_us"] = found[math.ceil(len(found) * percent / 100) - 1] / 1e3
    rates = [rate for path in by_what.get("bw", latencies) if (rate := _bandwidth(path))]
    if rates:
        figures["mb_per_s"] = math.fsum(rates)
    return figures, requests


def of_csv(path: Path) -> dict[str, Figures]:
    """Return figures by experiment from a table with the columns experiment, figure and value."""
    found: dict[str, Figures] = {}
    rows = _rows(path)
    if next(rows, (1, []))[1] != _CSV_HEAD:
        raise FlashtwinError(f"{path}:1: give a first line of {','.join(_CSV_HEAD)}")
    for number, row in rows:
        where = f"{path}:{number}"
        if len(row) != len(_CSV_HEAD):
            raise FlashtwinError(f"{where}: {len(row)} columns: give {','.join(_CSV_HEAD)}")
        experiment, figure, text = row
        if figure not in _FIGURES:
            raise FlashtwinError(f"{where}: {figure!r} is not a figure; available: {', '.join(_FIGURES)}")
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < math.inf:
            raise FlashtwinError(f"{where}: value {text!r}: give a number above 0")
        figures = found.setdefault(experiment, {})
        if figure in figures:
            raise FlashtwinError(f"{where}: {experiment}, {figure} is given twice: remove one")
        figures[figure] = value
    return found


def _open(path: Path) -> IO[str]:
    try:
        return io.TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace", newline="")
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot read this log: {e.strerror}") from e


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of the line on which it ends."""
    with _open(path) as file:
        rows = csv.reader(iter(lambda: file.readline(_LINE_MAX), ""))
        try:
            for row in rows:
                if row:
                    yield rows.line_num, [cell.strip() for cell in row]
        except csv.Error as e:
            raise FlashtwinError(f"{path}:{rows.line_num}: no CSV: {e}") from None


def _lines(path: Path) -> Iterator[tuple[int, tuple[int, int, str, int]]]:
    """Yield, for each line of a log, its number, time (ms), value, kind and size."""
    with _open(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LINE_MAX), ""), 1):
            try:
                time_ms, value, direction, size = (int(field) for field in line.split(",")[:4])
            except ValueError:
                raise FlashtwinError(
                    f"{path}:{number}: no line of a log of fio (time, value, direction, size); run it again"
                ) from None
            if direction in _KINDS:
                yield number, (time_ms, value, _KINDS[direction], size)


def _bandwidth(path: Path) -> float | None:
    """Return the bandwidth of a log in MB/s; None if the log is too short.

    A line with a size stands for one request. A line without a size has the average bandwidth in KiB/s since
    the previous line of its kind (read or write).
    """
    bytes_ = 0.0
    elapsed_ms = 0
    before: dict[str, int] = {}
    for _, (time_ms, value, kind, size) in _lines(path):
        bytes_ += size or (time_ms - before.get(kind, 0)) * value * 1024 / 1e3
        before[kind] = time_ms
        elapsed_ms = max(elapsed_ms, time_ms)
    return bytes_ / elapsed_ms / 1e3 if elapsed_ms >= _ELAPSED_MIN_MS else None
