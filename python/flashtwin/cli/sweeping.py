"""The grammar of the commands around many runs: `sweep`, `study`, `leaderboard`, `results` and `report`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from . import leaderboard, report, results, study, sweep

#: Adds a command: to whom, its name, what it does, examples.
_New = Callable[[Any, str, str, str], argparse.ArgumentParser]


def add(commands: Any, new: _New) -> None:  # noqa: ANN401 (argparse has no public name for it)
    """Add the commands."""
    _sweep(commands, new)
    _study(commands, new)
    _leaderboard(commands, new)
    _results(commands, new)
    _report(commands, new)


def _sweep(commands: Any, new: _New) -> None:  # noqa: ANN401
    p = new(
        commands,
        "sweep",
        "Run every cell of an experiment, or what an earlier call left undone.",
        """\
examples:
  flashtwin sweep experiment.toml
  flashtwin sweep experiment.toml -o results --threads 8
  flashtwin sweep experiment.toml --dask tcp://head:8786

An experiment is a TOML file: devices, policies, workloads, [parameters] and seeds, each a list
(docs/sweeps.md). Finished cells are kept at once: after Ctrl-C, a crash or a full disk the same
command goes on. The dataset has the same bytes however the cells were run. Exit code 1 if cells
failed.
""",
    )
    p.add_argument("experiment", metavar="FILE", help="TOML file of the experiment")
    p.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="directory or URL for the results (default: FILE with .sweep instead of .toml)",
    )
    _add_workers(p)
    p.set_defaults(command=sweep.command)


def _add_workers(p: argparse.ArgumentParser) -> None:
    who = p.add_mutually_exclusive_group()
    who.add_argument("--threads", type=int, metavar="N", help="runs at a time (default: number of cores)")
    who.add_argument(
        "--dask",
        metavar="WHERE",
        help="run on Dask: an address, local:WORKERS, ssh:HOST,HOST or slurm:JOBS",
    )


def _study(commands: Any, new: _New) -> None:  # noqa: ANN401
    p = new(commands, "study", "Reproduce a paper: run its study and judge its claims.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=type(p))
    listing = new(inner, "list", "List the studies that come with flashtwin, with their verdicts.", "")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print them as JSON")
    form.add_argument("--markdown", action="store_true", help="print the summary of the documentation")
    listing.set_defaults(command=study.list_all)
    show = new(
        inner,
        "show",
        "Print the claims of a study with what was measured.",
        """\
examples:
  flashtwin study show gcar
  flashtwin study show gcar.study
  flashtwin study show gcar --markdown > gcar.md
  flashtwin study show gcar --figure gcar.svg
""",
    )
    show.add_argument("study", metavar="NAME|DIR", help="study, or the directory of a run of one")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the outcome as JSON")
    form.add_argument("--markdown", action="store_true", help="print the page of the documentation")
    form.add_argument("--figure", metavar="FILE", help="draw printed and measured values (.svg, .pdf, .png)")
    show.set_defaults(command=study.show)
    run = new(
        inner,
        "run",
        "Run a study, or what an earlier call left undone, and judge its claims.",
        """\
examples:
  flashtwin study run gcar
  flashtwin study run gcar --full --dask tcp://head:8786 -o gcar-full
  flashtwin study run gcar --traces ~/msr
  flashtwin study run headlines --matrix ecr,cbm

Each matrix is a sweep: finished cells are kept at once, and the same command goes on. The directory
receives study.json, study.md, study.html and a figure. Exit code 1 if cells failed.
""",
    )
    run.add_argument("study", metavar="NAME|FILE", help="study, or a TOML file of one")
    size = run.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one to three seeds, some minutes (default)")
    size.add_argument(
        "--full",
        action="store_true",
        help="ten seeds of the same runs, three of those beside them, up to an hour",
    )
    run.add_argument(
        "--matrix", metavar="A,B,...", help="matrices to run, with what is measured in them (default: all)"
    )
    run.add_argument("-o", "--output", metavar="DIR", help="directory for the results (default: NAME.study)")
    run.add_argument(
        "--traces",
        metavar="DIR",
        help="folder of traces that take the place of stand-ins (default: $FLASHTWIN_TRACES)",
    )
    _add_workers(run)
    run.set_defaults(command=study.run)


def _leaderboard(commands: Any, new: _New) -> None:  # noqa: ANN401
    p = new(
        commands,
        "leaderboard",
        "Rank all buffer policies under a common set of loads on two devices.",
        """\
examples:
  flashtwin leaderboard
  flashtwin leaderboard --policies cflru,cflru:window=64,gcar-cflru -o windows
  flashtwin leaderboard --full --dask tcp://head:8786

Each situation is a sweep: finished cells are kept at once, and the same command goes on. The directory
receives leaderboard.json, leaderboard.md and leaderboard.html, whose rows have the command that runs
them again. Exit code 1 if cells failed.
""",
    )
    p.add_argument(
        "--policies",
        default="all",
        metavar="A,B,...",
        help="policies beside lru, optionally with parameters (default: all)",
    )
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="short runs, a few minutes (default)")
    size.add_argument("--full", action="store_true", help="long runs with more seeds, hours")
    p.add_argument(
        "-o",
        "--output",
        default="leaderboard",
        metavar="DIR",
        help="directory for the results (default: leaderboard)",
    )
    p.add_argument(
        "--traces",
        metavar="DIR",
        help="folder of traces that take the place of stand-ins (default: $FLASHTWIN_TRACES)",
    )
    p.add_argument("--json", action="store_true", help="print only the outcome, as JSON")
    _add_workers(p)
    p.set_defaults(command=leaderboard.command)


def _results(commands: Any, new: _New) -> None:  # noqa: ANN401
    p = new(commands, "results", "Show and query the results of a sweep.", "")
    inner = p.add_subparsers(metavar="COMMAND", required=True, parser_class=type(p))
    show = new(
        inner,
        "show",
        "Print statistics over seeds, and ratios to the baseline.",
        """\
examples:
  flashtwin results show experiment.sweep
  flashtwin results show experiment.sweep --figures all_p9999_us,flash_gc_share_mean
  flashtwin results show experiment.sweep --csv > statistics.csv
""",
    )
    show.add_argument("directory", metavar="DIR", help="directory of a sweep")
    show.add_argument(
        "--figures", metavar="A,B,...", help="columns to show (default: those of the experiment)"
    )
    show.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="P",
        help="confidence of the intervals (default: 0.95)",
    )
    _add_form(show)
    show.set_defaults(command=results.show)
    query = new(
        inner,
        "query",
        "Query in SQL with DuckDB. The tables are cells and statistics.",
        """\
examples:
  flashtwin results query experiment.sweep "select policy, avg(all_p99_us) from cells group by policy"
  flashtwin results query experiment.sweep "describe cells"
""",
    )
    query.add_argument("directory", metavar="DIR", help="directory of a sweep")
    query.add_argument("sql", metavar="SQL")
    _add_form(query)
    query.set_defaults(command=results.query)


def _report(commands: Any, new: _New) -> None:  # noqa: ANN401
    p = new(
        commands,
        "report",
        "Write a run, several runs or a sweep as one page that needs no network.",
        """\
examples:
  flashtwin run trace.csv.gz --device demo --record lru.json
  flashtwin report lru.json -o report.html
  flashtwin report lru.json gcar.json -o both.html
  flashtwin report experiment.sweep -o sweep.html

Several runs are compared with the first.
""",
    )
    p.add_argument(
        "what",
        nargs="+",
        metavar="RUN|SWEEP",
        help="files written by run --record, or the directory of a sweep",
    )
    p.add_argument(
        "-o",
        "--output",
        default="report.html",
        metavar="FILE",
        help="HTML file to write (default: report.html)",
    )
    p.add_argument("--title", metavar="TEXT", help="title of the page")
    p.set_defaults(command=report.command)


def _add_form(p: argparse.ArgumentParser) -> None:
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print rows as JSON")
    form.add_argument("--csv", action="store_true", help="print rows as CSV")
