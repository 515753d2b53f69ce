"""`flashtwin study`."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .. import Interrupted, study, terminal
from ..errors import FlashtwinError
from ..files import write_text
from ..study.figure import draw, marks
from ..study.loads import Loads
from ..study.page import markdown, overview, write_html
from ..study.show import summary, tables
from ..study.verdicts import VERDICTS, counts_of
from .common import note
from .sweep import SweepBar


def list_all(args: argparse.Namespace) -> int:
    """List the studies with the verdicts of their shipped outcomes."""
    outcomes = [study.outcome(name) for name in study.names()]
    if args.markdown:
        print(overview(outcomes), end="")
        return 0
    found: list[dict[str, Any]] = []
    for outcome in outcomes:
        name = outcome["study"]
        found.append({"study": name, "title": outcome["title"], "verdicts": counts_of(outcome["claims"])})
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    rows = [
        [each["study"], each["title"], *(str(each["verdicts"][verdict]) for verdict in VERDICTS)]
        for each in found
    ]
    console = terminal.console()
    for table in terminal.tables(["study", "title", *VERDICTS], rows, 2, console.width):
        console.print(table)
    return 0


def show(args: argparse.Namespace) -> int:
    """Print an outcome."""
    outcome = study.outcome(args.study)
    if args.json:
        print(json.dumps(outcome, indent=1))
    elif args.markdown:
        print(markdown(outcome), end="")
    elif args.figure is not None:
        draw(outcome, args.figure)
    else:
        _print(outcome)
    return 0


def run(args: argparse.Namespace) -> int:
    """Run a study."""
    read = study.read(args.study)
    if args.matrix is not None:
        read = read.only(args.matrix.split(","))
    directory = Path(args.output or f"{read.name}.study")
    variant = "full" if args.full else "quick"
    for message in Loads(read.loads, args.traces).missing():
        note(message)
    with ExitStack() as bars:

        def progress(name: str) -> SweepBar:
            bars.close()
            matrices = list(read.matrices)
            if name in matrices:
                note(f"matrix {name} ({matrices.index(name) + 1} of {len(matrices)})")
            else:
                note(f"claim {name}: more seeds, as those of its matrix leave it undecided")
            return bars.enter_context(SweepBar())

        try:
            outcome = study.run_study(
                read,
                directory,
                variant=variant,
                threads=args.threads,
                dask=args.dask,
                traces=args.traces,
                progress=progress,
            )
        except Interrupted:
            bars.close()
            note("flashtwin: interrupted: finished cells are kept; the same command goes on")
            return 130
    write_text(directory / "study.md", markdown(outcome), "the page")
    write_html(outcome, directory / "study.html")
    written = ["study.json", "study.md", "study.html"]
    if marks(outcome):
        try:
            draw(outcome, directory / f"{outcome['study']}.svg")
            written.append(f"{outcome['study']}.svg")
        except FlashtwinError as e:
            note(f"no figure: {e}")
    _print(outcome)
    print(f"{directory}: {', '.join(written)}")
    return int(any(matrix["failed"] for matrix in outcome["matrices"]))


def _print(outcome: dict[str, Any]) -> None:
    console = terminal.console()
    print(outcome["paper"].strip())
    for table in tables(outcome, console.width):
        console.print(table)
    print(summary(outcome))
