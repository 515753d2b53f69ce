"""`flashtwin study`."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .. import Interrupted, study
from .._support import terminal
from .._support.files import write_text
from ..errors import FlashtwinError
from ..study.definition import claims_of
from ..study.figure import draw, marks
from ..study.loads import Loads
from ..study.page import markdown, overview, write_html
from ..study.show import summary, tables
from ..study.verdicts import OPEN, VERDICTS, counts_of
from .commands import summary_of
from .common import note
from .forms import Commands, family, new
from .grammar import add_workers
from .sweep import SweepBar


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "study", summary_of("study"))
    p = new(
        inner, "list", "List the studies that come with flashtwin, with their verdicts.", command=list_all
    )
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print them as JSON")
    form.add_argument("--markdown", action="store_true", help="print the summary of the documentation")
    p = new(
        inner,
        "show",
        "Print the claims of a study with their measured values.",
        """\
examples:
  flashtwin study show gcar
  flashtwin study show gcar.study
  flashtwin study show gcar --markdown > gcar.md
  flashtwin study show gcar --figure gcar.svg
  flashtwin study show ecr --claim ECR-F13
  flashtwin study show ecr --toml > mine.toml
""",
        command=show,
    )
    p.add_argument("study", metavar="NAME|DIR", help="study, or the directory of a run of one")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the outcome as JSON")
    form.add_argument("--markdown", action="store_true", help="print the page of the documentation")
    form.add_argument("--figure", metavar="FILE", help="draw printed and measured values (.svg, .pdf, .png)")
    form.add_argument(
        "--toml", action="store_true", help="print the file of the study, to copy matrices from"
    )
    p.add_argument(
        "--claim", metavar="A,B,...", help="claims to print, with source and reason (default: all)"
    )
    p = new(
        inner,
        "run",
        "Run the unfinished cells of a study and judge its claims.",
        """\
examples:
  flashtwin study run gcar
  flashtwin study run gcar --full --dask tcp://head:8786 -o gcar-full
  flashtwin study run gcar --traces ~/msr
  flashtwin study run headlines --matrix ecr,cbm
  flashtwin study run ecr --claim ECR-F13

Each matrix of a study is a sweep. Finished cells are saved at once, and the same command continues an
interrupted study. The directory receives study.json, study.md, study.html and a figure. The exit code is 1 if
cells failed.
""",
        command=run,
    )
    p.add_argument("study", metavar="NAME|FILE", help="study, or a TOML file of one")
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one to three seeds, some minutes (default)")
    size.add_argument(
        "--full",
        action="store_true",
        help="ten seeds, three for explanatory matrices, up to an hour",
    )
    part = p.add_mutually_exclusive_group()
    part.add_argument(
        "--matrix", metavar="A,B,...", help="matrices to run, with their measures (default: all)"
    )
    part.add_argument(
        "--claim", metavar="A,B,...", help="claims to judge, from their matrices (default: all)"
    )
    p.add_argument("-o", "--output", metavar="DIR", help="directory for the results (default: NAME.study)")
    p.add_argument(
        "--traces",
        metavar="DIR",
        help="folder of traces that replace stand-ins (default: $FLASHTWIN_TRACES)",
    )
    add_workers(p)


def list_all(args: argparse.Namespace) -> int:
    """List the studies that come with flashtwin, with the verdicts of their published outcomes."""
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
    if args.toml:
        print(study.source(args.study), end="")
        return 0
    outcome = study.outcome(args.study)
    if args.claim is not None:
        ids = claims_of(args.claim.split(","), [claim["id"] for claim in outcome["claims"]], args.study)
        chosen = [claim for claim in outcome["claims"] if claim["id"] in ids]
        nothing: dict[str, Any] = {key: [] for key in ("cases", "pins", "checks", "changes", "figures")}
        outcome = {**outcome, **nothing, "claims": chosen}
    if args.json:
        print(json.dumps(outcome, indent=1))
    elif args.markdown:
        print(markdown(outcome), end="")
    elif args.figure is not None:
        draw(outcome, args.figure)
    else:
        _print(outcome)
        for claim in outcome["claims"] if args.claim is not None else []:
            print(f"{claim['id']} ({claim['source']}): {claim['text']}")
            if claim["reason"]:
                print(claim["reason"].strip())
    return 0


def run(args: argparse.Namespace) -> int:
    """Run a study."""
    read = study.read(args.study)
    if args.matrix is not None:
        read = read.only(args.matrix.split(","))
    if args.claim is not None:
        read = read.only_claims(args.claim.split(","))
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
            note("flashtwin: interrupted: finished cells are kept; repeat the command to continue")
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
    if variant == "quick" and counts_of(outcome["claims"])[OPEN]:
        note("open: intervals of so few seeds are too wide; --full runs ten seeds")
    return int(any(matrix["failed"] for matrix in outcome["matrices"]))


def _print(outcome: dict[str, Any]) -> None:
    console = terminal.console()
    print(outcome["paper"].strip())
    for table in tables(outcome, console.width):
        console.print(table)
    print(summary(outcome))
