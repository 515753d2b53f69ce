"""Placement: schemes, victim rules and scopes, stepped by hand or run without time."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

from . import _core
from ._devices import device as read_device
from ._support import words
from ._support.watch import OnProgress, Task, run_all
from .errors import FlashtwinError, Interrupted
from .traces import TraceOptions
from .user_policy import is_in_file, load
from .workloads import WorkloadLike, source

PlacementPage = _core.PlacementPage
Survivor = _core.Survivor
PlacementUnit = _core.PlacementUnit
VictimUnit = _core.VictimUnit
PoolView = _core.PoolView

Kind: TypeAlias = Literal["scheme", "victim", "scope"]
#: Value of a word of a setup.
Value: TypeAlias = str | int | float | bool

_KINDS: dict[Kind, str] = {"scheme": "placement scheme", "victim": "victim rule", "scope": "scope"}
_WIDTH = 96

#: Sizes of published devices, as words of a setup.
DEVICES: dict[str, dict[str, Value]] = {
    # WARP (FAST 2026), emulated device of class A2: 448 GiB in pages of 4 KiB, units of 128 MiB. `low` was
    # fitted to one of its figures.
    "warp-a2": {
        "units": 4086,
        "unit_pages": 32768,
        "logical_pages": 117440512,
        "low": 96,
        "handles": 8,
    },
}


class Placement:
    """A placement scheme: it gives each page a class, and pages of a class fill units of their own.

    Subclass it and give the class to `placement_waf`, or name it on the command line as FILE.py:CLASS. An
    exception stops the run and is raised from it.

    Attributes:
        classes: number of classes; `host` returns one from 0 to below it.
        needs: what must be kept of each page: "age", "moves", "future" (the load is read in advance),
            "old_class". Values that are not kept are None or 0.
        isolated: survivors of a class do not mix with those of other classes.
    """

    classes: int = 1
    needs: Sequence[str] = ()
    isolated: bool = False

    def host(self, page: PlacementPage) -> int:
        """Return the class of a page that the host writes. Called once a program, in program order."""
        raise NotImplementedError

    def moved(self, page: Survivor) -> int | tuple[str, int] | str:
        """Return where a page goes that collection moves.

        A class: to the open unit of the host's pages of that class. ("own", class): to that of its
        survivors. "shared": to that of all survivors. Without this method the device decides.
        """
        raise NotImplementedError

    def closed(self, unit: PlacementUnit, clock: int) -> None:
        """A unit is full, or was closed."""

    def erased(self, unit: PlacementUnit, valid: int, clock: int) -> None:
        """A unit was collected and erased; `valid` of its pages were moved."""

    def trimmed(self, lpn: int) -> None:
        """The host trimmed a page."""

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Placement, name)


class Victim:
    """A victim rule: it chooses the unit to collect.

    Subclass it and give the class to `placement_waf`, or name it on the command line as FILE.py:CLASS. Called
    once for each victim. An exception stops the run and is raised from it.
    """

    def choose(self, pool: PoolView) -> VictimUnit | None:
        """Return one of `pool.units` (in the order of their opening), or None: no collection now.

        A unit has `valid`, `pages`, `written`, `age` (units opened after it), `owner` ("h0", "g1", "s"),
        `class_`, `erases`, `opened_at` and `last_death` (host pages written by then). The pool has
        `class_` (of the page that needs room), `group`, `free`, `low`, `clock`, `pages` and
        `in_use(class)`.
        """
        raise NotImplementedError


#: A scheme or rule: its name, a class of your own, an instance, or FILE.py:CLASS.
SchemeLike: TypeAlias = str | type[Placement] | Placement
VictimLike: TypeAlias = str | type[Victim] | Victim


class PlacementInfo(dict[str, Any]):
    """A scheme, victim rule or scope in words: a dict whose printed form is meant for people."""

    def __repr__(self) -> str:
        parts = [f"{self['name']}: {_KINDS[self['kind']]}", _wrap(self["line"] + ".")]
        if "source" in self:
            of = self["source"]
            parts += ["", _wrap(f"{of['authors']}: {of['title']}. {of['venue']}, {of['year']}.")]
        parts += ["", *(_wrap(sentence, "- ", "  ") for sentence in self.get("rule", []))]
        for parameter in self["parameters"]:
            parts += [
                "",
                _wrap(f"{parameter['key']} (default {parameter['default']}; {parameter['provenance']})"),
                _wrap(f"{parameter['description']} Takes {parameter['takes']}.", "  ", "  "),
            ]
        return "\n".join(parts).rstrip()


def _wrap(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=others)


def placements() -> list[PlacementInfo]:
    """Describe all schemes, victim rules and scopes."""
    return [PlacementInfo(kind=kind, **info) for kind in _KINDS for info in _core.placement_components(kind)]


def placement_info(name: str) -> PlacementInfo:
    """Describe a scheme, victim rule or scope.

    Raises:
        FlashtwinError: there is none of this name; the message names those there are.
    """
    every = placements()
    found = [info for info in every if info["name"] == name]
    if not found:
        known = words.known_names(name, [info["name"] for info in every])
        raise FlashtwinError(f'placement: found "{name}"; {known}')
    return found[0]


class PlacementTrace(list[dict[str, Any]]):
    """Results of the operations: a list of dicts whose printed form is that of the documentation."""

    def __repr__(self) -> str:
        def text(step: dict[str, Any]) -> str:
            did = "; ".join([*filter(None, [step["status"]]), *step["did"], *filter(None, [step["output"]])])
            return f"{step['op']}{' -> ' + did if did else ''}\n    {step['state']}"

        return "\n".join(map(text, self))


def trace_placement(ops: str, **setup: Value) -> PlacementTrace:
    """Step a small device through operations.

    Args:
        ops: operations with ; between: "W 0 4 0" writes 4 pages from page 0 on with id 0 (- for none),
            "T 0 2" trims, "U 0 1" closes units early, "S" status, "L" totals in pages, "E" events of the
            host, "P" power loss.
        setup: words of the setup, such as units=8, unit_pages=4, logical_pages=8, handles="ii,ii", low=2
            (docs/placement.md lists them).

    Returns:
        One dict an operation: `op`, `status` (an error), `did`, `output` and `state`.

    Raises:
        FlashtwinError: what is wrong, and what would be right.
    """
    return PlacementTrace(_core.trace_placement(_as_words(setup), ops))


def _as_words(setup: Mapping[str, Value]) -> list[tuple[str, str]]:
    def text(value: Value) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [(key, text(value)) for key, value in setup.items()]


@dataclass(frozen=True)
class Waf:
    """Write amplification of a load under one scheme, victim rule and scope.

    Attributes:
        scheme: name of the scheme.
        victim: name of the victim rule, with its scope unless that is all units.
        device: words of the setup.
        raw: the reports: at the end of the fill and after each part of the run (`series`), and at the
            beginning and the end of the measurement (`before`, `after`).
    """

    scheme: str
    victim: str
    device: dict[str, str]
    raw: dict[str, Any]

    @property
    def waf(self) -> float:
        """Return pages programmed for each page that the host wrote, over the measurement."""
        return 1 + self._change("moves") / self._change("host_pages")

    @property
    def level(self) -> bool:
        """Return whether write amplification was level when the measurement began."""
        level: bool = self.raw["level"]
        return level

    def _change(self, name: str) -> int:
        change: int = self.raw["after"][name] - self.raw["before"][name]
        return change

    def by_owner(self) -> list[dict[str, Any]]:
        """Return for each owner its counts over the measurement, and the pages and units that it holds.

        An owner is "h0" (pages of the host of class 0), "g0" (its survivors) or "s" (survivors of all
        classes).
        """
        before = {owner["name"]: owner for owner in self.raw["before"]["owners"]}
        rows = []
        for owner in self.raw["after"]["owners"]:
            old = before.get(owner["name"], {})
            counts = ("host_pages", "moved_in", "moved_out", "erases")
            row = {name: owner[name] - old.get(name, 0) for name in counts}
            rows.append({"name": owner["name"], **row, "live": owner["live"], "units": owner["units"]})
        return rows

    def caused(self) -> list[list[int]]:
        """Return the pages moved over the measurement, by class that waited for room and owner.

        The owners are in the order of `by_owner`.
        """
        before, after = self.raw["before"], self.raw["after"]
        at = {owner["name"]: i for i, owner in enumerate(before["owners"])}
        rows = []
        for old, new in zip(before["caused"], after["caused"], strict=True):
            names = [owner["name"] for owner in after["owners"]]
            rows.append(
                [n - (old[at[name]] if name in at else 0) for n, name in zip(new, names, strict=True)]
            )
        return rows

    def series(self) -> list[tuple[float, float]]:
        """Return capacities written since the fill, and write amplification of the part that ended there."""
        points = []
        pages = self.raw["logical_pages"]
        reports = self.raw["series"]
        for last, now in pairwise(reports):
            host = now["host_pages"] - last["host_pages"]
            if host:
                written = (now["host_pages"] - reports[0]["host_pages"]) / pages
                points.append((written, 1 + (now["moves"] - last["moves"]) / host))
        return points

    def closed_forms(self) -> dict[str, float]:
        """Return write amplification in closed form: of uniform writes at this fill, and of the best split.

        `uniform_greedy` and `uniform_fifo` are for uniform writes to all live pages, mixed;
        `best_split` for separate classes, each written uniformly, that share the flash in the best way.
        """
        return _closed_forms(self)

    def logs(self) -> list[dict[str, Any]]:
        """Return log pages 20h to 23h of flexible data placement, since the device was made.

        Field names are those of NVMe; sums of bytes are decimal text. Events have `clock`, pages written by
        the host before, in place of a time. `mbmw` of a handle is our addition, as in FEMU: pages programmed
        into units of its class.
        """
        return _logs(self.raw)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a dict of plain values."""
        return {
            "scheme": self.scheme,
            "victim": self.victim,
            "device": self.device,
            "waf": self.waf,
            "level": self.level,
            "warm_capacities": self.raw["warm_capacities"],
            "capacities": self.raw["capacities"],
            "by_owner": self.by_owner(),
            "caused": self.caused(),
            "closed_forms": self.closed_forms(),
            "series": self.series(),
            "scope_fallbacks": self._change("scope_fallbacks"),
            "redirected": self._change("redirected"),
        }


_ISOLATION = {"ii": "initially-isolated", "pi": "persistently-isolated"}


def _logs(raw: dict[str, Any]) -> list[dict[str, Any]]:
    page_bytes = raw["page_bytes"]
    programmed: dict[int, int] = {}
    for owner in raw["after"]["owners"]:
        if owner["class"] is not None:
            pages = owner["host_pages"] + owner["moved_in"]
            programmed[owner["class"]] = programmed.get(owner["class"], 0) + pages
    configuration = {
        "valid": True,
        "volatile_write_cache": False,
        "rgif": raw["group_bits"],
        "nrg": raw["groups"],
        "nruh": len(raw["handles"]),
        "maxpids": raw["placement_handles"] - 1,
        "runs": raw["unit_pages"] * page_bytes,
        "erutl_s": 0,
        "ruh": [{"type": _ISOLATION[kind]} for kind in raw["handles"]],
    }
    usage = [
        {
            "ruhid": handle,
            "attributes": "host-specified" if handle < raw["placement_handles"] else "unused",
            "hbmw": str(accepted * page_bytes),
            "mbmw": str(programmed.get(handle, 0) * page_bytes),
        }
        for handle, accepted in enumerate(raw["after"]["accepted"])
    ]
    host, media, erased = (str(pages * page_bytes) for pages in raw["totals"])
    codes = {"host": ("00h", "02h", "03h"), "controller": ("80h", "81h")}
    return [
        {"log": "20h", "configurations": [configuration]},
        {"log": "21h", "ruh": usage},
        {"log": "22h", "hbmw": host, "mbmw": media, "mbe": erased},
        *(
            {
                "log": "23h",
                "kind": kind,
                "total": sum(raw["events"][code] for code in codes[kind]),
                "events": raw["last_events"][kind],
            }
            for kind in codes
        ),
    ]


def _closed_forms(of: Waf) -> dict[str, float]:
    pages, owners = of.raw["unit_pages"], of.by_owner()
    live = sum(owner["live"] for owner in owners) / pages
    # Collection leaves one more than `low` free, and each open unit is half full on average.
    usable = of.raw["units"] - of.raw["low"] - 1 - len(owners) / 2
    if not 0 < live < usable:
        return {}
    forms = _core.placement_theory(live / usable, pages)
    found = {name: forms[name] for name in ("uniform_greedy", "uniform_fifo")}
    classes = {owner["name"][1:]: [0.0, 0.0] for owner in owners if owner["name"] != "s"}
    for owner in owners:
        if owner["name"] != "s":
            classes[owner["name"][1:]][0] += owner["live"] / pages
            classes[owner["name"][1:]][1] += owner["host_pages"]
    # Pages in shared units are of no known class.
    if len(classes) > 1 and all(owner["name"] != "s" for owner in owners):
        written = sum(writes for _, writes in classes.values())
        split = _core.placement_split(
            [held for held, _ in classes.values()],
            [writes / written for _, writes in classes.values()],
            usable,
        )
        if split is not None:
            found["best_split"] = split[1]
    return found


class Wafs(list[Waf]):
    """Write amplification of a load under several schemes and victim rules, as a table for people.

    Attributes:
        heading: load, device, scale and seed.
    """

    heading: str = ""

    def to_json(self) -> str:
        """Return the rows as JSON."""
        return json.dumps({"heading": self.heading, "rows": [row.to_dict() for row in self]}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw write amplification, a bar per row, with pages moved by owner and cause, into a file."""
        from . import plot

        plot.save(plot.placements(self), path)

    def __repr__(self) -> str:
        lines = [self.heading, ""]
        width = 2 + max([6, *(len(row.scheme) for row in self)])
        rules = 2 + max([6, *(len(row.victim) for row in self)])
        lines.append(f"{'scheme':<{width}}{'victim':<{rules}}{'WAF':>7}  level")
        for row in self:
            level = "yes" if row.level else "no"
            lines.append(f"{row.scheme:<{width}}{row.victim:<{rules}}{row.waf:>7.3f}  {level}")
        for row in self:
            lines += ["", *_details(row)]
        return "\n".join(lines)


#: Closed forms in words.
FORMS: dict[str, str] = {
    "uniform_greedy": "uniform writes, greedy",
    "uniform_fifo": "uniform writes, first in first out",
    "permuted_fifo": "each page once a pass, first in first out",
    "best_split": "separate classes, best split",
    "first_class_units": "  units of the first class, share",
}


def theory(fill: float, unit_pages: int = 4096, split: tuple[float, float] | None = None) -> dict[str, float]:
    """Compute write amplification in closed form (docs/placement.md).

    Args:
        fill: share of the units in use that hold live pages.
        unit_pages: pages of a unit.
        split: shares of the pages and of the writes of the first of two classes, each written uniformly.

    Returns:
        Values by the names of `FORMS`; with `split` that of the best split of the flash, too.

    Raises:
        FlashtwinError: `fill` is not from 0 to below 1, or a unit has no page.
    """
    if not 0 <= fill < 1:
        raise FlashtwinError(f"fill: found {fill}; must be from 0 to below 1")
    if not 1 <= unit_pages < 1 << 24:
        raise FlashtwinError(f"unit_pages: found {unit_pages}; must be from 1 to {(1 << 24) - 1}")
    found: dict[str, float] = _core.placement_theory(fill, unit_pages)
    found = {name: found[name] for name in FORMS if name in found}
    if split is not None:
        pages, writes = split
        best = _core.placement_split([fill * pages, fill * (1 - pages)], [writes, 1 - writes], 1.0)
        if best is not None:
            found["best_split"], found["first_class_units"] = best[1], best[0][0]
    return found


def _details(row: Waf) -> list[str]:
    lines = [f"{row.scheme}, {row.victim}:"]
    host = sum(owner["host_pages"] for owner in row.by_owner())
    lines.append(f"  {'owner':<6}{'host':>8}{'moved in':>10}{'moved out':>11}{'live':>8}{'units':>7}")
    total = sum(owner["live"] for owner in row.by_owner())
    for owner in row.by_owner():
        lines.append(
            f"  {owner['name']:<6}{owner['host_pages'] / host:>8.3f}{owner['moved_in'] / host:>10.3f}"
            f"{owner['moved_out'] / host:>11.3f}{owner['live'] / max(total, 1):>8.3f}{owner['units']:>7}"
        )
    names = [owner["name"] for owner in row.by_owner()]
    if len(row.caused()) > 1:
        lines.append("  moved while a page of the class needed room, from units of")
        lines.append(f"  {'':<6}" + "".join(f"{name:>9}" for name in names))
        for n, moved in enumerate(row.caused()):
            if any(moved):
                cells = "".join(f"{pages / host:>9.3f}" for pages in moved)
                lines.append(f"  {'h' + str(n):<6}{cells}")
    for name, value in row.closed_forms().items():
        lines.append(f"  closed form, {FORMS[name]}: {value:.3f}")
    return lines


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
    """Measure write amplification of a load under each scheme with each victim rule, without time.

    Args:
        workload: a generated load, a trace or a table, as for `run`; such as "warp-3stream:dist=zoned".
        device: a device, of which a block of every die is a unit, or one of `placement.DEVICES`. None: the
            words of `setup` alone.
        schemes: names, with parameters as in "sepbit:sample=8", or classes of your own.
        victims: rules with a scope, as in "greedy", "fifo", "greedy@noisy:quota=optimal", or classes of your
            own.
        setup: further words, such as {"handles": 8, "survivors": "same"} (docs/placement.md lists them).
        scale: divide pages of a unit and logical pages by it: the same number of units.
        warm: capacities written before the measurement; None: until write amplification is level.
        capacities: capacities measured.
        points: reports kept of each capacity.
        seed: that of the generated load.
        page_bytes: bytes of a page; None: those of the device, or 4096.
        threads: runs at a time; as many as there are processors if not given.
        trace_options: how to read a trace.
        progress: called about ten times a second for each run.

    Raises:
        FlashtwinError: what is wrong, and what would be right.
        Interrupted: on Ctrl-C; its `partial` holds the finished rows, or None.
    """
    opened = source(workload, trace_options)
    base, own_bytes = _base_words(device)
    page_bytes = page_bytes or own_bytes
    base |= dict(_as_words(setup or {}))
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
    choices = [(_scheme(scheme), _victim(victim)) for scheme in schemes for victim in victims]

    def work(scheme: _Choice, victim: _Choice) -> Callable[[_core.Control], object]:
        def measure(control: _core.Control) -> object:
            setup_words = {**base, **scheme.words, **victim.words}
            pages = int(setup_words.get("logical_pages", "8"))
            range_bytes = pages * page_bytes
            fill = None
            if opened.path is None:
                fill = _core.Workload.fill(opened.text, range_bytes, page_bytes, seed)
            raw = _core.run_placement(
                list(setup_words.items()),
                opened.open(range_bytes, seed),
                fill,
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

        return measure

    tasks = [Task(f"{s.label}, {v.label}", work(s, v)) for s, v in choices]
    results, interrupted = run_all(tasks, threads or os.cpu_count() or 1, progress)
    table = Wafs(row for row in results if isinstance(row, Waf))
    name = device if device is not None else "setup"
    scaled = f", 1/{scale} of its pages" if scale > 1 else ""
    table.heading = f"{opened.text} on {name}{scaled}, seed {seed}"
    if interrupted:
        raise Interrupted(table if table else None)
    return table


def _base_words(device: str | Path | None) -> tuple[dict[str, str], int]:
    """Return the words of a device, and the bytes of a page."""
    if device is None:
        return {}, 4096
    if str(device) in DEVICES:
        return dict(_as_words(DEVICES[str(device)])), 4096
    found, page_bytes = _core.placement_words_of(read_device(device))
    return dict(found), page_bytes


@dataclass(frozen=True)
class _Choice:
    """A scheme or rule: its label, its words, and the user's object, if it is one."""

    label: str
    words: dict[str, str]
    factory: Callable[[], object] | None = None

    def make(self) -> object | None:
        return None if self.factory is None else self.factory()


def _parameters(text: str) -> tuple[str, dict[str, str]]:
    """Split "name:key=value,key=value"; a value may have commas: what follows one without = belongs to it."""
    name, _, rest = text.partition(":")
    found: dict[str, str] = {}
    last = None
    for part in rest.split(",") if rest else []:
        key, is_pair, value = part.partition("=")
        if is_pair:
            found[key.strip()], last = value.strip(), key.strip()
        elif last is not None:
            found[last] += f",{part.strip()}"
        else:
            raise FlashtwinError(f'{text}: found "{part}"; must be KEY=VALUE')
    return name.strip(), found


def _own(found: object, base: type, what: str) -> _Choice | None:
    """Read a user's class, instance or FILE.py:CLASS."""
    if isinstance(found, str) and is_in_file(found):
        found = load(found, base, what)
    if isinstance(found, base):
        return _Choice(type(found).__name__, {}, lambda: found)
    if isinstance(found, str):
        return None
    if not callable(found):
        raise FlashtwinError(f"{what} {found!r}: must be a name, or a subclass of flashtwin.{base.__name__}")
    factory = found

    def make() -> object:
        made = factory()
        if not isinstance(made, base):
            raise FlashtwinError(f"{what}: made {made!r}, which is not a flashtwin.{base.__name__}")
        return made

    return _Choice(getattr(found, "__name__", what), {}, make)


def _scheme(scheme: SchemeLike) -> _Choice:
    own = _own(scheme, Placement, "scheme")
    if own is not None:
        return own
    name, parameters = _parameters(str(scheme))
    return _Choice(str(scheme), {"scheme": name, **parameters})


def _victim(victim: VictimLike) -> _Choice:
    own = _own(victim, Victim, "victim")
    if own is not None:
        return own
    rule, at, scope = str(victim).partition("@")
    name, parameters = _parameters(rule)
    found = {"victim": name, **parameters}
    if at:
        scope_name, of_scope = _parameters(scope)
        found |= {"scope": scope_name, **of_scope}
    return _Choice(str(victim), found)
