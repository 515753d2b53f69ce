"""`flashtwin plot`: figures for papers, from recorded runs or a sweep."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import FlashtwinError, plot
from ..plot.runs import MEASURES
from ..plot.style import kind_of
from .commands import summary_of
from .forms import Commands, family, new
from .options import pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add(commands: Commands) -> None:
    """Add the command and its kinds of figures."""
    inner = family(
        commands,
        "plot",
        summary_of("plot"),
        """\
examples:
  flashtwin run trace.csv.gz --device demo --policy lru --record lru.json
  flashtwin run trace.csv.gz --device demo --policy gcar-lru --record gcar.json
  flashtwin plot percentiles lru.json gcar.json -o percentiles.pdf
  flashtwin plot breakdown lru.json gcar.json --columns 2 -o breakdown.pdf
  flashtwin plot bars experiment.sweep --figure all.p99_us --normalized -o p99.pdf
  flashtwin plot lines experiment.sweep --figure all.mean_us --over buffer.capacity -o mean.png
  flashtwin plot heat x.sweep --figure all.p99_us --over buffer.capacity --by gc.low_percent -o p99.pdf

Lines differ in dashes and markers, bars in hatching: figures can be read in grey.
""",
        metavar="KIND",
    )

    _add_runs(inner)
    _add_sweeps(inner)


def _add_runs(inner: Commands) -> None:
    for name, draw, what, requests in (
        ("cdf", plot.cdf, "Draw the distribution of response times.", True),
        ("percentiles", plot.percentiles, "Draw response times from the median to p99.99.", True),
        ("breakdown", plot.breakdown, "Draw where the mean response time went.", True),
        (
            "amplification",
            plot.amplification,
            "Draw pages programmed by cause for a page of the host.",
            False,
        ),
        ("gc", plot.gc_map, "Draw when each chip collected, as a heat map over time.", False),
        ("time", plot.over_time, "Draw measures over virtual time.", False),
    ):
        kind = new(inner, name, what, f"example:\n  flashtwin plot {name} lru.json gcar.json -o {name}.pdf\n")
        kind.add_argument("runs", nargs="+", metavar="RUN", help="files written by flashtwin run --record")
        kind.add_argument(
            "--labels", metavar="A,B,...", help="names of the runs (default: the settings that differ)"
        )
        if requests:
            kind.add_argument(
                "--requests",
                choices=["all", "read", "write"],
                default="all",
                help="requests to include (default: all)",
            )
        if name == "time":
            kind.add_argument(
                "--measures",
                default="iops,mean_us,gc_write_amplification",
                metavar="A,B,...",
                help=f"measures: {', '.join(MEASURES)} (default: iops,mean_us,gc_write_amplification)",
            )
        _add_output(kind)
        kind.set_defaults(command=_of_runs, draw=draw)


def _add_sweeps(inner: Commands) -> None:
    for name, draw_sweep, what in (
        ("bars", plot.bars, "Draw a figure of a sweep as bars in groups, with intervals over seeds."),
        ("lines", plot.lines, "Draw a figure of a sweep over a parameter, with intervals over seeds."),
        ("heat", plot.heat, "Draw a figure of a sweep over two parameters as a heat map."),
    ):
        over = " --over buffer.capacity"
        if name == "heat":
            over += " --by geometry.reserve_percent"
        example = (
            f"example:\n  flashtwin plot {name} experiment.sweep --figure all.p99_us{over} -o {name}.pdf\n"
        )
        kind = new(inner, name, what, example)
        kind.add_argument("sweep", metavar="SWEEP", help="directory of a sweep")
        kind.add_argument("--figure", required=True, metavar="NAME", help="column, such as all.p99_us")
        kind.add_argument(
            "--by",
            metavar="AXIS",
            help="axis from bottom to top (default: the second parameter that varies)"
            if name == "heat"
            else "axis of bars or lines (default: the policy, if it varies)",
        )
        if name == "lines":
            kind.add_argument("--panels", metavar="AXIS", help="axis with a panel for each of its values")
        kind.add_argument(
            "--over",
            required=name == "lines",
            metavar="AXIS",
            help="axis of the figure"
            + {
                "bars": " (default: the next that varies)",
                "heat": " (default: the first parameter that varies)",
            }.get(name, ""),
        )
        kind.add_argument(
            "--where",
            action="append",
            default=[],
            metavar="AXIS=VALUE",
            help="value of a further axis; may be repeated",
        )
        kind.add_argument("--normalized", action="store_true", help="draw ratios to the sweep's baseline")
        if name != "heat":
            kind.add_argument(
                "--confidence",
                type=float,
                default=0.95,
                metavar="P",
                help="confidence of the intervals (default: 0.95)",
            )
        _add_output(kind)
        kind.set_defaults(command=_of_sweep, draw=draw_sweep)


def _add_output(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--columns",
        type=int,
        choices=[1, 2],
        default=1,
        help="width in columns of a paper, 3.5 or 7.16 in (default: 1)",
    )
    p.add_argument("-o", "--output", required=True, metavar="FILE", help="figure file: .pdf, .png or .svg")


def _of_runs(args: argparse.Namespace) -> int:
    runs: Any = args.runs
    if args.labels:
        labels = [label.strip() for label in args.labels.split(",")]
        if len(labels) != len(runs) or len(set(labels)) != len(labels):
            raise FlashtwinError(f"--labels {args.labels}: give {len(runs)} names, all different")
        runs = dict(zip(labels, runs, strict=True))
    more = {"requests": args.requests} if "requests" in args else {}
    if "measures" in args:
        more["measures"] = [name.strip() for name in args.measures.split(",")]
    return _write(args, lambda: args.draw(runs, columns=args.columns, **more))


def _of_sweep(args: argparse.Namespace) -> int:
    where = pairs("--where", "AXIS=VALUE, as in policy=lru", args.where)
    names = ("by", "over", "panels", "normalized", "confidence", "columns")
    more = {name: getattr(args, name) for name in names if name in args}
    return _write(args, lambda: args.draw(args.sweep, args.figure, where=where, **more))


def _write(args: argparse.Namespace, draw: Callable[[], Figure]) -> int:
    # A file name with an unknown type is rejected before the work begins.
    kind_of(Path(args.output))
    plot.save(draw(), args.output)
    print(args.output)
    return 0
