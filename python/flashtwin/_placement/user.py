"""Base classes of placement schemes and victim rules that users write in Python."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core

PlacementPage = _core.PlacementPage
Survivor = _core.Survivor
PlacementUnit = _core.PlacementUnit
VictimUnit = _core.VictimUnit
PoolView = _core.PoolView


class Placement:
    """A placement scheme: it assigns a class to each page. Different classes fill different units.

    Subclass it and pass the class to `placement_waf`, or name it on the command line as FILE.py:CLASS. If a
    method raises an exception, the run stops and raises it.

    Attributes:
        classes: number of classes; `host` returns a number from 0 to `classes` - 1.
        needs: the optional properties of a page that the device records, out of "age", "moves", "future"
            (the next write, `next`; the load is then read in advance) and "old_class". Properties that are
            not in this list are None or 0.
        isolated: whether survivors (pages that collection moves) of a class are kept apart from survivors of
            other classes.
    """

    classes: int = 1
    needs: Sequence[str] = ()
    isolated: bool = False

    def host(self, page: PlacementPage) -> int:
        """Return the class of a page that the host writes.

        Called once per program, in the order of programs.
        """
        raise NotImplementedError

    def moved(self, page: Survivor) -> int:
        """Return the class of a page that collection moves. The page goes to the open unit of that class.

        Without this method, the device determines the class. This method may return classes that `host` never
        returns. Such a class has only moved pages.
        """
        raise NotImplementedError

    def closed(self, unit: PlacementUnit, clock: int) -> None:
        """Called when a unit is full, or was closed before it was full."""

    def erased(self, unit: PlacementUnit, valid: int, clock: int) -> None:
        """Called when a unit was collected and erased. `valid` of its pages were moved."""

    def trimmed(self, lpn: int) -> None:
        """Called when the host has trimmed a page."""

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Placement, name)


class Victim:
    """A victim rule: it chooses the unit to collect.

    Subclass it and pass the class to `placement_waf`, or name it on the command line as FILE.py:CLASS.
    `choose` is called once per victim. If it raises an exception, the run stops and raises it.
    """

    def choose(self, pool: PoolView) -> VictimUnit | None:
        """Return one of `pool.units`, or None to collect no unit now.

        The units are in the order of their opening. A unit has `valid`, `pages`, `written`, `age` (number of
        units opened after it), `owner` ("h0", "g1", "s"), `class_`, `erases`, `opened_at` and `last_death`.
        `opened_at` and `last_death` (when a page of the unit last became invalid) are values of `clock`. The
        pool has `class_` (class of the page that needs room), `group`, `free`, `low`, `clock`, `pages` and
        `in_use(class)`.
        """
        raise NotImplementedError
