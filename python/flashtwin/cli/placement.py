"""`flashtwin placement list`, `show`, `trace`, `waf` and `theory`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .. import placement_info, placement_theory, placement_waf, placements, trace_placement
from .._placement import DEVICES, FORMS
from .._placement.rules import split_rules
from .._support.files import write_text
from ..errors import FlashtwinError
from .commands import summary_of
from .common import ProgressBar, note
from .forms import Commands, family, new
from .grammar import add_json
from .options import overrides


def add(commands: Commands) -> None:
    """Add the commands."""
    inner = family(commands, "placement", summary_of("placement"))
    p = new(inner, "list", "List placement schemes, victim rules and scopes.", command=list_all)
    add_json(p, "them")
    p = new(
        inner,
        "show",
        "Describe a scheme, victim rule or scope: rule, source, parameters.",
        "example:\n  flashtwin placement show sepbit\n",
        command=show,
    )
    p.add_argument("name", metavar="NAME")
    add_json(p, "it")
    _add_trace(inner)
    _add_waf(inner)
    _add_theory(inner)


def _add_setup(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="WORD=VALUE",
        help="word of the setup, such as handles=ii,pi or scope=noisy (docs/placement.md lists them)",
    )


def _add_trace(inner: Commands) -> None:
    p = new(
        inner,
        "trace",
        "Step a small device through writes and commands, and print what each one did.",
        """\
examples:
  flashtwin placement trace --set units=8 --set handles=ii,ii --set low=2 "W 0 4 0; W 4 4 1; W 0 2 0; S; L"
  flashtwin placement trace --set units=6 "W 0 2 0; U 0; S"

Operations: W LPN PAGES ID writes with a placement id (- for no id), T LPN PAGES trims, U ID... closes the
units of these ids early. S shows the status, L the totals in pages, E the events of the host. P is a power
loss. A state lists the units in the order of their opening, as owner:unit[pages]. There, - is a page that is
not live, . is a page that is not written, and * marks an open unit.
""",
        command=trace,
    )
    p.add_argument("ops", metavar="OPS", help='operations with ; between, such as "W 0 4 0; S"')
    _add_setup(p)
    add_json(p, "the steps")


def _add_waf(inner: Commands) -> None:
    p = new(
        inner,
        "waf",
        "Measure write amplification of a load under placement schemes and victim rules, without time.",
        f"""\
examples:
  flashtwin placement waf warp-3stream:dist=zoned --device warp-a2 --scale 64
  flashtwin placement waf warp-3stream --device warp-a2 --scale 64 --victims greedy,greedy@noisy
  flashtwin placement waf zipf:theta=0.9,write=1 --device warp-a2 --scale 64 --schemes none,gc,sepbit

A victim rule may have a scope after @, and parameters after a colon: greedy@noisy:quota=optimal. A class of
your own is FILE.py:CLASS. Sizes come from the device, on which a unit is one block of every die, or from
{", ".join(DEVICES)}; --scale divides the pages of a unit and the logical pages.
""",
        command=waf,
    )
    p.add_argument("workload", metavar="WORKLOAD", help="generated load, or a trace")
    p.add_argument("--device", metavar="DEVICE", help="device, or one of " + ", ".join(DEVICES))
    _add_setup(p)
    p.add_argument(
        "--schemes", default="handle", metavar="A;B", help="schemes, with ; or , between (default: handle)"
    )
    p.add_argument(
        "--victims",
        default="greedy",
        metavar="A;B",
        help="victim rules, with ; or , between (default: greedy)",
    )
    p.add_argument("--scale", type=int, default=1, metavar="N", help="divide the pages by N (default: 1)")
    p.add_argument(
        "--warm",
        type=float,
        metavar="N",
        help="capacities before the measurement (default: until write amplification is level)",
    )
    p.add_argument(
        "--capacities", type=float, default=2.0, metavar="N", help="capacities measured (default: 2)"
    )
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of a generated load (default: 1)")
    p.add_argument(
        "--threads", type=int, metavar="N", help="runs at a time (default: the number of processors)"
    )
    g = p.add_argument_group("output")
    add_json(g, "the rows")
    g.add_argument("-o", "--output", metavar="FILE", help="JSON file for the rows")
    g.add_argument("--placement-log", metavar="FILE", help="JSON file for log pages 20h to 23h of each row")
    g.add_argument(
        "--figure", metavar="FILE", help="figure of pages moved by owner and cause: .png, .pdf or .svg"
    )


def _add_theory(inner: Commands) -> None:
    p = new(
        inner,
        "theory",
        "Compute write amplification in closed form, before any run.",
        """\
examples:
  flashtwin placement theory --fill 0.875
  flashtwin placement theory --fill 0.8 --split 20/80

--fill is the share of the pages in used units that is live. With --split 20/80, a class with 20 % of the
pages receives 80 % of the writes, and a second class has all other pages and writes.
""",
        command=theory,
    )
    p.add_argument("--fill", type=float, required=True, metavar="SHARE", help="from 0 to below 1")
    p.add_argument(
        "--unit-pages", type=int, default=4096, metavar="N", help="pages of a unit (default: 4096)"
    )
    p.add_argument("--split", metavar="PAGES/WRITES", help="percent of pages and writes of the first class")
    add_json(p, "the values")


def list_all(args: argparse.Namespace) -> int:
    """List schemes, victim rules and scopes."""
    every = placements()
    if args.json:
        keys = ("kind", "name", "line")
        print(json.dumps([{key: info[key] for key in keys} for info in every], indent=2))
        return 0
    for info in every:
        print(f"{info['kind']:<8}{info['name']:<17}{info['line']}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print the description of a scheme, victim rule or scope."""
    info = placement_info(args.name)
    print(json.dumps(info, indent=2) if args.json else repr(info))
    return 0


def trace(args: argparse.Namespace) -> int:
    """Apply operations to a small device."""
    steps = trace_placement(args.ops, **overrides(args))
    print(json.dumps(steps, indent=2) if args.json else repr(steps))
    return 0


def waf(args: argparse.Namespace) -> int:
    """Measure write amplification without time."""
    if args.figure:
        from ..plot.style import kind_of

        kind_of(Path(args.figure))
    with ProgressBar() as bar:
        found = placement_waf(
            args.workload,
            args.device,
            schemes=split_rules(args.schemes),
            victims=split_rules(args.victims),
            setup=overrides(args),
            scale=args.scale,
            warm=args.warm,
            capacities=args.capacities,
            seed=args.seed,
            threads=args.threads,
            progress=bar,
        )
    print(found.to_json() if args.json else repr(found))
    if args.output:
        write_text(Path(args.output), found.to_json() + "\n", "the rows")
    if args.placement_log:
        logs = [{"scheme": row.scheme, "victim": row.victim, "logs": row.logs()} for row in found]
        write_text(Path(args.placement_log), json.dumps(logs, indent=2) + "\n", "the log pages")
    if args.figure:
        found.figure(args.figure)
        note(f"figure: {args.figure}")
    return 0


def theory(args: argparse.Namespace) -> int:
    """Compute closed forms."""
    forms = placement_theory(args.fill, args.unit_pages, _split(args.split))
    if args.json:
        print(json.dumps(forms, indent=2))
        return 0
    for name, value in forms.items():
        print(f"{FORMS[name]:<48}{value:>8.3f}")
    return 0


def _split(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        pages, writes = (float(part) / 100 for part in text.split("/"))
    except ValueError:
        raise FlashtwinError(
            f"--split: found {text!r}; must be PAGES/WRITES in percent, as in 20/80"
        ) from None
    if not (0 < pages < 1 and 0 < writes < 1):
        raise FlashtwinError(f"--split: found {text!r}; both must be above 0 and below 100")
    return pages, writes
