"""The record of a run: its summary, histograms and history as JSON, from which reports are made."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from ..errors import FlashtwinError
from .files import write_text
from .inputs import RESULTS_MAX, parse_json, read_bytes
from .record_file import RecordFile
from .schema import check, shortened

if TYPE_CHECKING:
    from .._core import Histogram

#: Kinds of requests of a run.
Kind = Literal["all", "read", "write"]

_FORMAT = 3
#: Digits of a number in a chart.
DIGITS = 6
#: Number of points of a percentile curve per factor of ten in 1 / (1 - fraction), and number of such factors:
#: the curve ends at p99.99.
_STEPS, _NINES = 40, 4


@dataclass(frozen=True)
class Record:
    """A recorded run.

    Attributes:
        summary: as in `Result.summary`.
        histograms: for reads, writes and all requests, the upper ends of buckets in ns, and their counts.
        history: values by window of virtual time; empty if no history was recorded.
        batches: sums over ten batches of consecutive requests; empty if no history was recorded or there are
            too few requests.
    """

    summary: dict[str, Any]
    histograms: dict[str, Histogram]
    history: list[dict[str, Any]]
    batches: list[dict[str, Any]]


@runtime_checkable
class Recorded(Protocol):
    """A result of a run."""

    @property
    def summary(self) -> dict[str, Any]:
        """Return the summary of the run."""

    @property
    def policy(self) -> str:
        """Return the name of the buffer's policy."""

    def record(self) -> Record:
        """Return the record of the run."""


def save_record(path: Path, record: Record) -> None:
    """Write a record completely or not at all."""
    values = {
        "flashtwin_record": _FORMAT,
        "summary": record.summary,
        "histograms_ns": record.histograms,
        "history": record.history,
        "batches": record.batches,
    }
    write_text(path, json.dumps(values, separators=(",", ":")) + "\n", "the record of the run")


def load_record(path: Path) -> Record:
    """Read a record.

    Raises:
        FlashtwinError: the text is not a record, or has another version.
    """
    data = read_bytes(path, "record", RESULTS_MAX)
    try:
        values = parse_json(data)
    except ValueError:
        values = None
    if not isinstance(values, dict) or "flashtwin_record" not in values:
        raise FlashtwinError(f"{path}: no record of a run; write one with flashtwin run --record FILE")
    if values["flashtwin_record"] != _FORMAT:
        raise FlashtwinError(
            f"{path}: a record of format {shortened(values['flashtwin_record'])}; this flashtwin reads "
            f"{_FORMAT}: run it again"
        )
    try:
        check(values, RecordFile, "record")
        _check_parts(values)
    except FlashtwinError as e:
        raise FlashtwinError(f"{path}: {e}; run it again with flashtwin run --record FILE") from None
    kinds = values["histograms_ns"]
    histograms = {kind: [(ns, n) for ns, n in kinds[kind]] for kind in get_args(Kind)}
    return Record(values["summary"], histograms, values["history"], values["batches"])


def _check_parts(values: dict[str, Any]) -> None:
    """Check conditions that the types do not express."""
    if len({len(window["gc_share_by_chip"]) for window in values["history"]}) > 1:
        raise FlashtwinError("record.history: windows have different numbers of chips")
    for kind in get_args(Kind):
        buckets = values["histograms_ns"][kind]
        if not all(count for _, count in buckets):
            raise FlashtwinError(f"record.histograms_ns.{kind}: a bucket is empty")


def record_of(what: object) -> Record:
    """Return the record of a `Result` or of a file; a `Record` is returned unchanged.

    Raises:
        FlashtwinError: `what` is neither a result, a file nor a record, or the file cannot be read.
    """
    if isinstance(what, Record):
        return what
    if isinstance(what, Recorded):
        return what.record()
    if isinstance(what, (str, os.PathLike)):
        return load_record(Path(what))
    raise FlashtwinError(f"found {what!r}; give a Result, or a file of Result.save")


#: Settings that can label runs, in order of preference. Settings in which the runs differ are added to the
#: label until no two labels are equal.
_NAMING = (
    "policy",
    "scheme",
    "victim",
    "device",
    "buffer_pages",
    "seed",
    "workload",
    "pacing",
    "precondition",
)


def _setting(summary: dict[str, Any], key: str) -> str:
    if key in ("scheme", "victim"):
        return str(summary.get("placement", {}).get(key, ""))
    return str(summary[key])


def labels_of(records: Sequence[Record]) -> list[str]:
    """Return a label for each run: the values of the settings in which the runs differ."""
    ways: list[list[str]] = []
    for key in _NAMING:
        values = [_setting(record.summary, key) for record in records]
        if len(set(values)) > 1:
            if key == "workload":
                values = [Path(value.split(": ")[0]).name for value in values]
            form = {"buffer_pages": "{} pages", "seed": "seed {}"}.get(key, "{}")
            ways.append([form.format(value) for value in values])
        named = [", ".join(parts) for parts in zip(*ways, strict=True)]
        if ways and len(set(named)) == len(records):
            return named
    if len(records) == 1:
        return [str(records[0].summary["policy"])]
    named = [", ".join(parts) for parts in zip(*ways, strict=True)] or [
        str(r.summary["policy"]) for r in records
    ]
    return [f"{name} ({number})" for number, name in enumerate(named, 1)]


def percentile_curve(histogram: Histogram) -> list[list[float]]:
    """Return pairs of 1 / (1 - fraction) and response time in us, up to p99.99 or the last request."""
    total = sum(count for _, count in histogram)
    points: list[list[float]] = []
    buckets = iter(histogram)
    seen, ns = 0, 0
    for step in range(_STEPS * _NINES + 1):
        nines = 10 ** (step / _STEPS)
        if nines > total:
            break
        rank = max(1, math.ceil(total * (1 - 1 / nines)))
        while seen < rank:
            ns, count = next(buckets)
            seen += count
        points.append([float(f"{nines:.5g}"), float(f"{ns * 1e-3:.{DIGITS}g}")])
    return points
