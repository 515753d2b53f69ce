"""Placement schemes and victim rules of your own, written in Python."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core

PlacementPage = _core.PlacementPage
Survivor = _core.Survivor
PlacementUnit = _core.PlacementUnit
VictimUnit = _core.VictimUnit
PoolView = _core.PoolView


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
        """Return the class of a page that the host writes. Called once per program, in their order."""
        raise NotImplementedError

    def moved(self, page: Survivor) -> int:
        """Return the class of a page that collection moves: it goes to the open unit of that class.

        Without this method, the device determines the class. Classes that `host` never returns hold moved
        pages only.
        """
        raise NotImplementedError

    def closed(self, unit: PlacementUnit, clock: int) -> None:
        """Handle that a unit is full, or was closed before it was full."""

    def erased(self, unit: PlacementUnit, valid: int, clock: int) -> None:
        """Handle that a unit was collected and erased; `valid` of its pages were moved."""

    def trimmed(self, lpn: int) -> None:
        """Handle that the host trimmed a page."""

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
