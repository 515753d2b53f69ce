"""Comparison of the model with event logs and replays of the reference simulator (docs/devices.md)."""

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
    """Result of one reference case.

    Attributes:
        name: name of the case's files.
        kind: "msr" (event log) or "replay" (response times).
        requests: number of replayed requests.
        operations_compared: number of compared operations of the reference.
        matched: number of operations on which the model agrees.
        mismatched: number of operations on which the model does not agree.
        parts: by kind of operation, the numbers of compared, matched and mismatched operations.
        first_mismatch: the first difference, with the expected and the found operation; None if there is
            none.
        passed: whether the case is within its tolerance.
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
    """Replay all cases of a directory with the model, and compare the results with the reference simulator.

    Args:
        directory: directory of cases. A case is NAME.json, and either NAME.trace.csv and NAME.events.txt or
            NAME.responses.csv. Files may be compressed as `.zst`.
        progress: function to call with each report, and with the total number of cases.

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
