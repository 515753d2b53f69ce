"""Runs without time: write amplification of a load under schemes and victim rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import _core
from .._devices import device as read_device
from .._support.memory import need
from .._support.watch import OnProgress, Task, run_all
from ..errors import FlashtwinError, Interrupted
from ..traces import TraceOptions
from ..workloads import Source, WorkloadLike, source
from .rules import Rule, SchemeLike, VictimLike, scheme_of, victim_of
from .waf import Waf, Wafs
from .words import Value, as_words

#: Sizes of published devices by name, as words (keys and values) of a setup.
DEVICES: dict[str, dict[str, Value]] = {
    # The emulated device of class A2 of WARP (FAST 2026): 448 GiB in pages of 4 KiB, units of 128 MiB. `low`
    # was fitted to one figure of the paper.
    "warp-a2": {
        "units": 4086,
        "unit_pages": 32768,
        "logical_pages": 117440512,
        "low": 96,
        "handles": 8,
    },
}


def placement_waf(
    workload: WorkloadLike,
    device: str | Path | None = None,
    *,
    schemes: Sequence[SchemeLike] = ("handle",),
    victims: Sequence[VictimLike] = ("greedy",),
    setup: Mapping[str, Value] | None = None,
    scale: int = 1,
    warm: float | None = None,
    capacities: float = 2.0,
    points: int = 10,
    seed: int = 1,
    page_bytes: int | None = None,
    threads: int | None = None,
    trace_options: TraceOptions | None = None,
    progress: OnProgress | None = None,
) -> Wafs:
    """Measure the write amplification of a load under each scheme with each victim rule, without time.

    Args:
        workload: a generated load such as "warp-3stream:dist=zoned", a trace or a table, as for `run`.
        device: a device file or profile, on which a unit is one block of every die; or the name of one of
            `placement.DEVICES`; or None if `setup` describes the device completely.
        schemes: names, which may have parameters as in "sepbit:sample=8", or classes of the user.
        victims: rules, which may have a scope, as in "greedy", "fifo", "greedy@noisy:quota=optimal", or
            classes of the user.
        setup: further words, such as {"handles": 8, "survivors": "same"}; docs/placement.md lists them.
        scale: divisor of the pages of a unit and of the logical pages; the number of units stays the same.
        warm: amount of writes before the measurement, in multiples of the logical capacity; by default, the
            load runs until write amplification is level.
        capacities: amount of writes that is measured, in multiples of the logical capacity.
        points: number of points of the time series per logical capacity written.
        seed: seed of the generated load.
        page_bytes: bytes of a page; None for those of the device, or 4096 without a device.
        threads: number of runs at the same time; by default the number of processors.
        trace_options: how to read a trace.
        progress: function to call about ten times a second during each run.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the remedy.
        Interrupted: on Ctrl-C; its `partial` has the finished rows, or is None.
    """
    opened = source(workload, trace_options)
    base, own_bytes = base_words(device, setup or {}, scale)
    page_bytes = page_bytes or own_bytes
    choices = [(scheme_of(scheme), victim_of(victim)) for scheme in schemes for victim in victims]

    def work(scheme: Rule, victim: Rule) -> Callable[[_core.Control], object]:
        load = Load(opened, page_bytes, seed)
        return lambda control: measure(
            load, base, scheme, victim, warm=warm, capacities=capacities, points=points, control=control
        )

    threads = min(threads or os.cpu_count() or 1, len(choices))
    need(
        table_bytes(base),
        devices=threads,
        less="fewer threads, or pages divided by a scale, take less",
    )
    tasks = [Task(f"{s.label}, {v.label}", work(s, v)) for s, v in choices]
    results, interrupted = run_all(tasks, threads, progress)
    table = Wafs(row for row in results if isinstance(row, Waf))
    name = device if device is not None else "setup"
    scaled = f", 1/{scale} of its pages" if scale > 1 else ""
    table.heading = f"{opened.text} on {name}{scaled}, seed {seed}"
    if interrupted:
        raise Interrupted(table if table else None)
    return table


@dataclass(frozen=True)
class Load:
    """A load of a device without time.

    Attributes:
        workload: the opened workload.
        page_bytes: bytes of a page.
        seed: seed of a generated load.
    """

    workload: Source
    page_bytes: int
    seed: int


def measure(
    load: Load,
    base: Mapping[str, str],
    scheme: Rule,
    victim: Rule,
    *,
    warm: float | None,
    capacities: float,
    points: int,
    control: _core.Control,
) -> Waf:
    """Measure write amplification under one scheme and one victim rule. `base` describes the device.

    Raises:
        FlashtwinError: a word of the setup is wrong; the message gives the remedy.
    """
    setup_words = {**base, **scheme.words, **victim.words}
    opened, page_bytes = load.workload, load.page_bytes
    range_bytes = int(setup_words.get("logical_pages", "8")) * page_bytes
    of_load = opened.text if opened.path is None else None
    raw = _core.run_placement(
        list(setup_words.items()),
        opened.open(range_bytes, load.seed),
        _core.Workload.fill(of_load, range_bytes, page_bytes, load.seed),
        page_bytes=page_bytes,
        warm=warm,
        capacities=capacities,
        points=points,
        control=control,
        scheme=scheme.make(),
        victim=victim.make(),
    )
    raw["page_bytes"] = page_bytes
    return Waf(scheme.label, victim.label, setup_words, raw)


def base_words(
    device: str | Path | None, setup: Mapping[str, Value], scale: int
) -> tuple[dict[str, str], int]:
    """Return the setup words (keys and values) that describe a device, and the bytes of a page.

    Words in `setup` replace those of the device. Then the pages of a unit and the logical pages are divided
    by `scale`.

    Raises:
        FlashtwinError: there is no such device, or its pages cannot be divided by the scale.
    """
    found: Mapping[str, str] | list[tuple[str, str]] = {}
    page_bytes = 4096
    if device is not None and str(device) in DEVICES:
        found = as_words(DEVICES[str(device)])
    elif device is not None:
        found, page_bytes = _core.placement_words_of(read_device(device))
    base = {**dict(found), **dict(as_words(setup))}
    if scale < 1:
        raise FlashtwinError(f"scale: {scale}: give 1 or more")
    if scale > 1:
        for key in ("unit_pages", "logical_pages"):
            number = base.get(key, "")
            if not number.isdigit() or int(number) < scale:
                raise FlashtwinError(
                    f"scale: {scale}: {key} is {number or 'not given'}; it must be at least {scale}"
                )
            base[key] = str(int(number) // scale)
    return base, page_bytes


def table_bytes(setup: Mapping[str, str]) -> int:
    """Return the memory in bytes that the tables of a simulated device need.

    The result is 0 if a size is not a number. Such a size is reported elsewhere.
    """
    sizes = [setup.get(key, "1") for key in ("units", "groups", "unit_pages", "logical_pages")]
    if not all(size.isdigit() for size in sizes):
        return 0
    units, groups, unit_pages, logical_pages = map(int, sizes)
    return 4 * logical_pages + 5 * units * groups * unit_pages
