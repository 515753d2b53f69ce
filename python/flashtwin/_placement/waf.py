"""Write amplification of a load under placement schemes and victim rules: counts, closed forms, tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import _core
from .theory import FORMS


@dataclass(frozen=True)
class Waf:
    """Write amplification of a load under one scheme, victim rule and scope.

    Attributes:
        scheme: name of the scheme.
        victim: name of the victim rule, with its scope if that is not all units.
        device: words of the setup.
        raw: reports of the model, each with all counts so far. `series` has one report at the end of the fill
            and one after each part of the run. `before` and `after` are the reports at the beginning and at
            the end of the measurement.
    """

    scheme: str
    victim: str
    device: dict[str, str]
    raw: dict[str, Any]

    @property
    def waf(self) -> float:
        """Return write amplification over the measurement: pages programmed per page that the host wrote."""
        return 1 + self._change("moves") / self._change("host_pages")

    @property
    def level(self) -> bool | None:
        """Return whether write amplification was level at the start of the measurement.

        The result is None if `warm` gave the number of capacities before the measurement.
        """
        level: bool | None = self.raw["level"]
        return level

    def _change(self, name: str) -> int:
        change: int = self.raw["after"][name] - self.raw["before"][name]
        return change

    def by_owner(self) -> list[dict[str, Any]]:
        """Return the counts of each owner of units over the measurement, and its live pages and units.

        An owner is a group of pages that fills units of its own: "h0" (pages that the host wrote to class 0),
        "g0" (moved pages of class 0, if these are kept apart from other classes) or "s" (moved pages of all
        classes that share units).
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
        """Return the pages moved over the measurement, as a table by cause and owner.

        A row is the class of the page that waited for room when units were collected. A column is the owner
        of the collected units, in the order of `by_owner`.
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
        """Return two values for each part of the run.

        The first is the amount written by the end of the part, in multiples of the logical capacity. The
        second is the write amplification of the part.
        """
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
        """Return write amplification in closed form.

        `uniform_greedy` and `uniform_fifo` are for uniform writes to all live pages in shared units.
        `best_split` is for classes in separate units that are each written uniformly, with the division of
        the flash between them that is best for write amplification.
        """
        return _closed_forms(self)

    def logs(self) -> list[dict[str, Any]]:
        """Return log pages 20h to 23h of flexible data placement. They count from the device's creation on.

        Names of fields are those of NVMe. Sums of bytes are decimal text. Instead of a time, events have
        `clock`: the number of pages that the host had written. `mbmw` of a handle is not in the standard; as
        in FEMU, it is the number of bytes programmed into units of the handle's class.
        """
        found: list[dict[str, Any]] = json.loads(self.raw["logs"])
        return found

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


class Wafs(list[Waf]):
    """Write amplification of a load under several schemes and victim rules. Prints as a table.

    Attributes:
        heading: load, device, scale and seed.
    """

    heading: str = ""

    def to_json(self) -> str:
        """Return the rows as JSON."""
        return json.dumps({"heading": self.heading, "rows": [row.to_dict() for row in self]}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw write amplification into a file: one bar per row, with moved pages by owner and cause."""
        from .. import plot

        plot.save(plot.placements(self), path)

    def __repr__(self) -> str:
        lines = [self.heading, ""]
        width = 2 + max([6, *(len(row.scheme) for row in self)])
        rules = 2 + max([6, *(len(row.victim) for row in self)])
        lines.append(f"{'scheme':<{width}}{'victim':<{rules}}{'WAF':>7}  level")
        for row in self:
            level = {True: "yes", False: "no", None: "-"}[row.level]
            lines.append(f"{row.scheme:<{width}}{row.victim:<{rules}}{row.waf:>7.3f}  {level}")
        for row in self:
            lines += ["", *_details(row)]
        return "\n".join(lines)


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


def _closed_forms(of: Waf) -> dict[str, float]:
    pages, owners = of.raw["unit_pages"], of.by_owner()
    live = sum(owner["live"] for owner in owners) / pages
    # Collection keeps `low` + 1 units free. Each owner has an open unit, which is half full on average.
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
    # The closed form `best_split` needs the live pages of each class. In shared units (owner "s"), the class
    # of a page is not known.
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
