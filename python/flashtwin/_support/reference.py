"""Holding the model against event logs and replays of the reference simulator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..errors import Interrupted
from .watch import Task, run_all


@dataclass(frozen=True)
class CaseReport:
    """Result of the comparison of one case.

    Attributes:
        name: of the case's files.
        kind: "msr" (event log) or "replay" (response times).
        requests: replayed.
        operations_compared: operations of the reference that were looked at.
        matched: those the model agrees with.
        mismatched: those it does not.
        parts: the same, kind by kind of operation.
        first_mismatch: what was expected and what came, or None.
        passed: the case meets the measure of the reference.
    """

    name: str
    kind: str
    requests: int
    operations_compared: int
    matched: int
    mismatched: int
    parts: list[dict[str, Any]]
    first_mismatch: str | None
    passed: bool


def validate(
    directory: str | os.PathLike[str], progress: Callable[[CaseReport, int], None] | None = None
) -> list[CaseReport]:
    """Replay every reference case of a directory and compare.

    Args:
        directory: with NAME.json + NAME.trace.csv + NAME.events.txt, or NAME.json +
            NAME.responses.csv, plain or `.zst`.
        progress: called with each report as it is made, and the number of cases in all.

    Raises:
        Interrupted: on Ctrl-C.
    """
    reports: list[CaseReport] = []

    def work(control: _core.Control) -> None:
        def each(as_json: str, cases: int) -> None:
            report = CaseReport(**json.loads(as_json))
            reports.append(report)
            if progress:
                progress(report, cases)
            if control.stopped:
                raise _StoppedError

        with suppress(_StoppedError):
            _core.validate(directory, each)

    _, interrupted = run_all([Task("validating", work)], 1, None)
    if interrupted:
        raise Interrupted(None)
    return reports


class _StoppedError(Exception):
    """Ends a validation between two cases."""
