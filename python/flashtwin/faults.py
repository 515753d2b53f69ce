"""Members of an array that fail and are replaced during a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from .errors import FlashtwinError


@dataclass(frozen=True)
class Fail:
    """A member of an array fails and loses its contents.

    Attributes:
        member: number of the member, from 0.
        at_s: time in seconds of virtual time from the start of the measurement.
    """

    member: int
    at_s: float
    replaces: ClassVar[bool] = False


@dataclass(frozen=True)
class Replace:
    """A new, empty drive replaces a failed member and is rebuilt.

    Attributes:
        member: number of the member, from 0.
        at_s: time in seconds of virtual time from the start of the measurement.
    """

    member: int
    at_s: float
    replaces: ClassVar[bool] = True


Fault: TypeAlias = Fail | Replace


def check(faults: Sequence[Fault]) -> None:
    """Reject values that are not faults, and members and times that no array has."""
    for fault in faults:
        if not isinstance(fault, Fail | Replace):
            raise FlashtwinError(f"faults: {fault!r}: give Fail(member, at_s) or Replace(member, at_s)")
        if not 0 <= fault.member < 1 << 32:
            raise FlashtwinError(f"faults: {fault}: members are numbered from 0")
        if not 0 <= fault.at_s <= _LATEST_S:
            raise FlashtwinError(f"faults: {fault}: at_s is a number of seconds from 0 to {_LATEST_S}")


#: Latest permitted time of a fault, in seconds. Virtual time ends a little later.
_LATEST_S = 10_000_000
