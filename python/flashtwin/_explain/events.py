"""The timeline around a request, with indexes by which operations and write-backs are found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: A die: the number of its member (None if the device is not an array), and its number within it.
Die = tuple[int | None, int]

#: Kinds of work with the names of their operations. An operation that is not listed is a kind of its own.
KINDS = {
    "garbage collection": ("gc_move", "erase", "fold", "migration", "merge_copy", "summary", "gc"),
    "writes": ("host_write", "destage", "flush", "write_back", "padding", "merge"),
    "reads": ("host_read", "partial_read", "fill", "padding_read"),
    "map": ("map_read", "map_write"),
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}


@dataclass(frozen=True)
class Event:
    """An event of the timeline: a slice with a duration, or an instant, whose end equals its beginning."""

    number: int
    track: str
    name: str
    member: int | None
    die: int | None
    begin_ps: int
    end_ps: int
    lpns: list[int]
    request: int | None
    causes: list[int]

    @property
    def kind(self) -> str:
        """Kind of work of an operation on a die."""
        return _KIND_OF.get(self.name, self.name)


@dataclass(frozen=True)
class Work:
    """Consecutive operations of one kind on a die."""

    begin_ps: int
    end_ps: int
    kind: str
    operations: int


def die_text(die: Die) -> str:
    """Return the name of a die."""
    member, number = die
    return f"die {number}" if member is None else f"die {number} of member {member}"


class Events:
    """Events of a timeline. Times count from the start of the measurement."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._on_die: dict[Die, list[Event]] = defaultdict(list)
        self._by_leaf: dict[str, list[Event]] = defaultdict(list)
        self._children: dict[int, list[Event]] = defaultdict(list)
        for number, begin in enumerate(columns["begin_ps"]):
            event = Event(
                number,
                columns["track"][number],
                columns["name"][number],
                columns["member"][number],
                columns["die"][number],
                begin,
                begin + (columns["duration_ps"][number] or 0),
                columns["lpn"][number],
                columns["request"][number],
                columns["causes"][number],
            )
            leaf = event.track.rsplit("/", 1)[-1]
            if event.die is None:
                self._by_leaf[leaf].append(event)
            elif leaf not in ("garbage collection", "second register"):
                self._on_die[event.member, event.die].append(event)
            for cause in event.causes:
                self._children[cause].append(event)

    def request(self, number: int) -> Event | None:
        """Return the host request with this number, not a request to a member; None if not recorded."""
        requests = self._by_leaf["requests"]
        return next((e for e in requests if e.member is None and e.request == number), None)

    def caused_by(self, event: Event) -> Iterator[Event]:
        """Return all events that an event caused, directly or through other events."""
        for child in self._children[event.number]:
            yield child
            yield from self.caused_by(child)

    def accesses(self, request: int) -> list[Event]:
        """Return the hits, misses and evictions of a request, in order."""
        return [e for e in self._by_leaf["accesses"] if e.member is None and e.request == request]

    def slot_waits(self, end_ps: int) -> list[Event]:
        """Return the waits for a buffer slot that end at an instant."""
        return [e for e in self._by_leaf["waiting for a slot"] if e.end_ps == end_ps]

    def write_backs(self, at_ps: int) -> int:
        """Return the number of write-backs in flight at an instant."""
        return sum(e.begin_ps <= at_ps < e.end_ps for e in self._by_leaf["write-backs"])

    def ended(self, at_ps: int) -> list[Event]:
        """Return the write-backs that end at an instant."""
        return [e for e in self._by_leaf["write-backs"] if e.end_ps == at_ps]

    def dies(self) -> list[Die]:
        """Return the dies that did any work."""
        return sorted(self._on_die, key=lambda die: (die[0] or 0, die[1]))

    def operation(self, name: str | None, lpn: int, end_ps: int) -> Event | None:
        """Return the last operation on a page, on any die, that has ended by an instant, or None.

        If `name` is given, only operations with this name are considered.
        """
        found = [
            e
            for events in self._on_die.values()
            for e in events
            if e.end_ps <= end_ps and lpn in e.lpns and name in (None, e.name)
        ]
        return max(found, key=lambda e: e.end_ps, default=None)

    def work(self, die: Die, begin_ps: int, end_ps: int) -> list[Work]:
        """Return the operations of a die in a time span. Consecutive ones of the same kind are combined."""
        overlapping = (e for e in self._on_die[die] if e.begin_ps < end_ps and e.end_ps > begin_ps)
        found: list[Work] = []
        for e in sorted(overlapping, key=lambda e: e.begin_ps):
            begin, end = max(e.begin_ps, begin_ps), min(e.end_ps, end_ps)
            last = found[-1] if found else None
            if last and last.kind == e.kind:
                found[-1] = Work(last.begin_ps, max(last.end_ps, end), e.kind, last.operations + 1)
            else:
                found.append(Work(begin, end, e.kind, 1))
        return found

    def shares(self, die: Die, begin_ps: int, end_ps: int) -> dict[str, float]:
        """Return the fraction of a time span that a die spent on each kind of work.

        Operations that overlap on the die (on its planes or other parts) count once.
        """
        total: dict[str, int] = defaultdict(int)
        at = begin_ps
        for work in self.work(die, begin_ps, end_ps):
            total[work.kind] += max(0, work.end_ps - max(at, work.begin_ps))
            at = max(at, work.end_ps)
        return {kind: ps / max(end_ps - begin_ps, 1) for kind, ps in total.items()}
