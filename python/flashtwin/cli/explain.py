"""`flashtwin explain`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flashtwin

from ..errors import FlashtwinError
from ..options import RunOptions
from .commands import summary_of
from .common import ProgressBar, run_arguments
from .forms import Commands, new
from .grammar import add_json, add_options, add_workload


def add(commands: Commands) -> None:
    """Add the command."""
    p = new(
        commands,
        "explain",
        summary_of("explain"),
        """\
examples:
  flashtwin explain trace.csv.gz --device demo --request slowest
  flashtwin explain trace.csv.gz --device demo --request 2176 --figure request.svg
  flashtwin explain trace.csv.gz --policy arc --request slowest:5 --json
  flashtwin explain trace.csv.gz --policy arc --request 12.5s
  flashtwin explain trace.csv.gz --device demo --seeds 5
""",
        command=command,
    )
    add_workload(p)
    add_options(p, RunOptions, of_recordings=True)
    g = p.add_argument_group("what to explain (default: what holds the device back in the run)")
    g.add_argument(
        "--request",
        metavar="WHICH",
        help="requests: a number of the request log, slowest, slowest:N, or a time since the start of the "
        "measurement such as 12.5s (the slowest in the device then)",
    )
    g.add_argument(
        "--seeds", type=int, metavar="N", help="runs of each device, without --request (default: 3)"
    )
    g = p.add_argument_group("output")
    add_json(g, "the explanation")
    g.add_argument("--figure", metavar="FILE", help="picture of the request (.svg, .pdf, .png)")


def command(args: argparse.Namespace) -> int:
    """Explain requests of a run, or the run."""
    if args.request is None:
        return _explain_run(args)
    if args.seeds is not None:
        raise FlashtwinError(f"--seeds {args.seeds}: a request is explained from one run; leave it out")
    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
        if ":" in args.request:
            raise FlashtwinError(
                f"--figure {args.figure}: a figure is of one request, not of {args.request}; "
                "give --request NUMBER"
            )
    arguments = run_arguments(args, RunOptions)
    with ProgressBar() as bar:
        found = flashtwin.explain_request(**arguments, request=args.request, progress=bar)
    if args.json:
        print("[" + ",\n".join(each.to_json() for each in found) + "]")
    else:
        print("\n\n".join(map(repr, found)))
    if args.figure:
        found[0].figure(args.figure)
    return 0


def _explain_run(args: argparse.Namespace) -> int:
    if args.figure:
        raise FlashtwinError(f"--figure {args.figure}: a figure is of one request; add --request WHICH")
    arguments = run_arguments(args, RunOptions)
    with ProgressBar() as bar:
        found = flashtwin.explain_run(
            **arguments, seeds=3 if args.seeds is None else args.seeds, progress=bar
        )
    print(found.to_json() if args.json else found)
    return 0
