"""A run on disk: summary, histograms and history as JSON, for reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import FlashtwinError
from .files import write_text

if TYPE_CHECKING:
    from ._core import Histogram

_FORMAT = 1


@dataclass(frozen=True)
class Record:
    """A run as it was kept.

    Attributes:
        summary: as in `Result.summary`.
        histograms: of reads, writes and all: upper ends of buckets in ns, and counts.
        history: windows of virtual time; empty if none were kept.
    """

    summary: dict[str, Any]
    histograms: dict[str, Histogram]
    history: list[dict[str, Any]]


def save_record(path: Path, record: Record) -> None:
    """Write a record, whole or not at all."""
    values = {
        "flashtwin_record": _FORMAT,
        "summary": record.summary,
        "histograms_ns": record.histograms,
        "history": record.history,
    }
    write_text(path, json.dumps(values, separators=(",", ":")) + "\n", "the record of the run")


def load_record(path: Path) -> Record:
    """Read a record.

    Raises:
        FlashtwinError: it is none, or of another version.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["flashtwin_record"] != _FORMAT:
            raise FlashtwinError(
                f"{path}: a record of format {values['flashtwin_record']}; this flashtwin "
                f"({values['summary']['flashtwin_version']} made it) reads {_FORMAT}: run it again"
            )
        kinds = {kind: [(ns, n) for ns, n in pairs] for kind, pairs in values["histograms_ns"].items()}
        return Record(values["summary"], kinds, values["history"])
    except OSError as e:
        raise FlashtwinError(f"{path}: cannot read this record: {e.strerror}") from e
    except (ValueError, KeyError, TypeError) as e:
        if isinstance(e, FlashtwinError):
            raise
        raise FlashtwinError(
            f"{path}: no record of a run; write one with flashtwin run --record FILE"
        ) from None
