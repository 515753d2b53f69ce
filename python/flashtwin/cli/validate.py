"""`flashtwin validate`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from .. import CaseReport
from .. import validate as validate_cases
from .._support import words
from .commands import summary_of
from .common import note
from .forms import Commands, new
from .grammar import add_json


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "validate",
        summary_of("validate"),
        """\
example:
  flashtwin validate cases/

A case is NAME.json with NAME.trace.csv and NAME.events.txt, or with NAME.responses.csv. Files may be
compressed (.zst). The exit code is 1 if a case is not within its tolerance.
""",
        command=command,
    )
    p.add_argument("directory", metavar="DIR")
    add_json(p, "the reports")


def command(args: argparse.Namespace) -> int:
    """Replay all cases of a directory and print the comparisons."""
    seen = 0

    def each(report: CaseReport, cases: int) -> None:
        nonlocal seen
        seen += 1
        if not args.json:
            _show(report, f"{seen}/{cases}", first=seen == 1)

    reports = validate_cases(args.directory, each)
    failed = [report.name for report in reports if not report.passed]
    if args.json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        compared = words.count(sum(report.operations_compared for report in reports))
        matched = words.count(sum(report.matched for report in reports))
        print(f"{len(reports)} cases: {compared} compared, {matched} matched; {len(failed)} cases not met")
    if failed:
        note(f"flashtwin: not met: {', '.join(failed)}")
    return 1 if failed else 0


def _show(report: CaseReport, at: str, first: bool) -> None:
    if first:
        print(f"{'':>7} {'case':<24} {'requests':>9} {'compared':>10} {'matched':>10} {'mismatched':>10}")
    numbers = (report.requests, report.operations_compared, report.matched, report.mismatched)
    widths = (9, 10, 10, 10)
    columns = " ".join(f"{words.count(n):>{w}}" for n, w in zip(numbers, widths, strict=True))
    print(f"{at:>7} {report.name:<24} {columns}  {'met' if report.passed else 'NOT MET'}", flush=True)
    if report.first_mismatch:
        print(f"{'':>7} first mismatch: {report.first_mismatch}", flush=True)
