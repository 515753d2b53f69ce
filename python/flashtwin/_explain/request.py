"""Explanation of one request: the chain of steps from arrival to completion, and the main cause."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._support import words
from .._support.tables import PARTS
from .events import Die, Event, Events, Work, die_text

#: Parts with the same cause.
CAUSES = {
    "garbage collection": ("queue_gc", "slot_queue_gc"),
    "other host work": ("queue_host", "slot_queue_host"),
    "write-backs and accesses before it": ("slot_order",),
    "the write-back that freed its buffer slot": ("slot_transfer", "slot_array"),
    "its own flash operation": ("transfer", "array"),
    "the host link": ("link",),
    "a command slot of the controller": ("submission",),
    "the controller's processor": ("controller",),
    "the buffer memory": ("buffer",),
}
#: Largest number of pieces of work that the text lists for a die. If there are more, the longest are listed.
_WORK_SHOWN = 8


@dataclass(frozen=True)
class Step:
    """A step of the chain from arrival to completion. Times count from the arrival of the request.

    Attributes:
        begin_ps: beginning of the step.
        end_ps: end of the step.
        where: host link, controller, buffer, or a die.
        what: description of the step.
    """

    begin_ps: int
    end_ps: int
    where: str
    what: str


@dataclass(frozen=True)
class RequestExplanation:
    """Explanation of a request. Print it to read the chain of steps in words.

    Attributes:
        request: the request's row of the request log; times are in picoseconds.
        cause: the main reason for the response time, in one line.
        steps: the steps of the chain, in order of time.
        dies: for each die, the fraction of the response time that it spent on each kind of work.
        die: die for which the request waited longest; None if it waited for no die.
        work: work of the die `die` from the arrival to the completion, in order; times count from the
            arrival.
        recorded_ps: operations are known from this time after the arrival on. It is 0, or more if the
            timeline was too small for the whole response time.
    """

    request: dict[str, Any]
    cause: str
    steps: list[Step]
    dies: dict[str, dict[str, float]]
    die: str | None
    work: list[Work]
    recorded_ps: int

    @property
    def parts_ps(self) -> dict[str, int]:
        """Return the parts of the response time, which sum to it."""
        return {part: self.request[f"{part}_ps"] for part in PARTS}

    def to_json(self) -> str:
        """Return everything as JSON; equal runs give the same bytes."""
        return json.dumps({**asdict(self), "parts_ps": self.parts_ps}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw the request, and the work of the die that it waited for, into a file (PNG, PDF, SVG ...)."""
        from .picture import draw

        draw(path, f"request {self.request['request']}", self.parts_ps, self.die, self.work)

    def __repr__(self) -> str:
        lines = [self.cause, ""]
        for step in self.steps:
            span = f"{_time(step.begin_ps):>9} +{_time(step.end_ps - step.begin_ps):<9}"
            lines.append(f"  {span} {step.where}: {step.what}")
        lines += ["", "  parts: " + ", ".join(_parts(self.parts_ps))]
        if self.dies:
            lines.append("  dies during the request, on average: " + _shares_text(_mean(self.dies)))
            busiest = max(self.dies, key=lambda die: sum(self.dies[die].values()))
            lines.append(f"  busiest: {busiest}: " + _shares_text(self.dies[busiest]))
        if self.recorded_ps > 0:
            lines.append(
                f"  The timeline has room only for what began from {_time(self.recorded_ps)} on: chain and "
                "shares of the dies lack what was before."
            )
        return "\n".join(lines)


def _time(ps: int) -> str:
    return words.time(ps * 1e-6)


def _parts(parts_ps: dict[str, int]) -> list[str]:
    return [f"{part.replace('_', ' ')} {_time(ps)}" for part, ps in parts_ps.items() if ps]


def _mean(dies: dict[str, dict[str, float]]) -> dict[str, float]:
    kinds = {kind for shares in dies.values() for kind in shares}
    return {kind: sum(shares.get(kind, 0.0) for shares in dies.values()) / len(dies) for kind in kinds}


def _shares_text(shares: dict[str, float]) -> str:
    by_share = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    idle = max(0.0, 1 - sum(shares.values()))
    return ", ".join(f"{kind} {words.percent(share)}" for kind, share in [*by_share, ("idle", idle)])


def explain(
    row: dict[str, Any], events: Events, start_ps: int, recorded_ps: int, depth: int | None
) -> RequestExplanation:
    """Explain the request of a row of the request log.

    `start_ps` is the time in the request log at which the clock of the events is zero.

    Events are known from `recorded_ps` on. `depth` is the limit of write-backs in flight of a buffer that
    evicts in the background.
    """
    return _Chain(row, events, start_ps, depth).explanation(recorded_ps)


class _Chain:
    """Builds the chain of one request."""

    def __init__(self, row: dict[str, Any], events: Events, start_ps: int, depth: int | None) -> None:
        self.row = row
        self.events = events
        self.depth = depth
        self.arrival = row["arrival_ps"] - start_ps
        self.done = self.arrival + row["response_ps"]
        self.parts = {part: row[f"{part}_ps"] for part in PARTS}
        self.slot_ps = sum(ps for part, ps in self.parts.items() if part.startswith("slot_"))
        self.steps: list[Step] = []
        # The die that it waited longest for.
        self.die: Die | None = None
        self.waited_ps = 0
        request = events.request(row["request"])
        self.caused = list(events.caused_by(request)) if request else []

    def explanation(self, recorded_ps: int) -> RequestExplanation:
        """Build the chain, and describe it in words."""
        row = self.row
        hits = f", {row['hits']} of them in the buffer" if row["pages"] else ""
        pages = f"{row['pages']} page{'s' if row['pages'] != 1 else ''}{hits}"
        self.add(self.arrival, self.arrival, "host", f"{_name(row)} arrives: {pages}")
        self.before_dispatch()
        dispatched = self.arrival + self.before_ps
        own_end = self.done - self.parts["buffer"] - self.after_ps
        slot_end = dispatched + self.slot_ps
        if self.slot_ps:
            self.slot(dispatched, slot_end)
        if own_end > slot_end:
            self.own(slot_end, own_end)
        if self.parts["buffer"]:
            self.add(own_end, own_end + self.parts["buffer"], "buffer", "access to the buffer memory")
        if self.after_ps:
            self.add(
                self.done - self.after_ps,
                self.done,
                "host link",
                "the data of a read, with the wait for the bus",
            )
        self.add(self.done, self.done, "host", "it completes")
        since = max(self.arrival, recorded_ps)
        dies = {die_text(die): self.events.shares(die, since, self.done) for die in self.events.dies()}
        work = self.events.work(self.die, self.arrival, self.done) if self.die else []
        return RequestExplanation(
            request=row,
            cause=self.cause(),
            steps=self.steps,
            dies=dies,
            die=die_text(self.die) if self.die else None,
            work=[self.from_arrival(each) for each in work],
            recorded_ps=max(0, recorded_ps - self.arrival),
        )

    def from_arrival(self, work: Work) -> Work:
        begin, end = work.begin_ps - self.arrival, work.end_ps - self.arrival
        return Work(begin, end, work.kind, work.operations)

    def add(self, begin: int, end: int, where: str, what: str) -> None:
        self.steps.append(Step(begin - self.arrival, end - self.arrival, where, what))

    def before_dispatch(self) -> None:
        """Add the steps on the link and in the controller that precede the access to buffer and flash.

        For a read, the data cross the link at the end; that step is added later.
        """
        access = next(iter(self.events.accesses(self.row["request"])), None)
        controller = self.parts["submission"] + self.parts["controller"]
        link = self.parts["link"]
        # An access may also start some time after the work on link and controller has ended.
        until_access = access.begin_ps - self.arrival if access else controller + link
        before_link = min(link, max(0, until_access - controller))
        self.after_ps = link - before_link
        at = self.arrival
        for ps, where, what in [
            (before_link, "host link", "the command, and the data of a write, with the wait for the bus"),
            (self.parts["submission"], "controller", "waits in the submission queue for a command slot"),
            (self.parts["controller"], "controller", "the processor's work"),
        ]:
            if ps:
                self.add(at, at + ps, where, what)
                at += ps
        self.before_ps = at - self.arrival

    def slot(self, begin: int, end: int) -> None:
        """Add the wait for a buffer slot, with the operation that freed the slot."""
        evicted = [e for e in self.events.accesses(self.row["request"]) if e.name.startswith("evict")]
        pages = ", ".join(str(e.lpns[0]) for e in evicted[:4]) + (" ..." if len(evicted) > 4 else "")
        what = f"waits {_time(end - begin)} for a buffer slot"
        self.add(begin, end, "buffer", what + (f"; evicts page {pages} for it" if evicted else ""))
        freed_by = self.freed_by(end)
        order = self.parts["slot_order"]
        if order:
            text = f"waits {_time(order)} for its turn, behind accesses and pages before it"
            if self.depth is not None:
                at_once = self.events.write_backs(begin + order)
                text = (
                    f"waits {_time(order)} for its turn: {at_once} or more write-backs in flight at its end "
                    f"(limit: buffer.background_depth = {self.depth})"
                )
            self.add(begin, begin + order, "buffer", text)
        if freed_by is None:
            return
        self.operation(freed_by, begin + order, "it frees the slot")

    def freed_by(self, end: int) -> Event | None:
        """Find the flash operation at whose end the slot became free; None if there is none."""
        ended = self.events.ended(end)
        own = [e for e in self.caused if e.die is not None and e.end_ps == end]
        if own:
            return own[0]
        for write_back in ended:
            found = self.events.operation(write_back.name, write_back.lpns[0], end)
            if found and found.end_ps == end:
                return found
        return None

    def own(self, begin: int, end: int) -> None:
        """Add the flash operation of the request itself."""
        on_dies = [e for e in self.caused if e.die is not None and begin <= e.begin_ps and e.end_ps <= end]
        last = max(on_dies, key=lambda e: e.end_ps, default=None)
        if last is None:
            text = "its own flash operations: " + ", ".join(
                _parts({part: self.parts[part] for part in ("queue_host", "queue_gc", "transfer", "array")})
            )
            return self.add(begin, end, "flash", text)
        return self.operation(last, begin, "its last page")

    def operation(self, event: Event, since: int, purpose: str) -> None:
        """Add the steps of a flash operation: the work that it waited for on its die, then the operation."""
        assert event.die is not None
        die = (event.member, event.die)
        where = die_text(die)
        if event.end_ps - since > self.waited_ps:
            self.die, self.waited_ps = die, event.end_ps - since
        before = [work for work in self.events.work(die, since, event.begin_ps) if work.end_ps > since]
        longest = sorted(before, key=lambda work: work.begin_ps - work.end_ps)[:_WORK_SHOWN]
        for work in before:
            if work in longest:
                s = "s" if work.operations != 1 else ""
                text = f"{work.kind}, {work.operations} operation{s}"
                self.add(work.begin_ps, work.end_ps, where, text)
        left = [work for work in before if work not in longest]
        if left:
            total = sum(work.end_ps - work.begin_ps for work in left)
            operations = sum(work.operations for work in left)
            self.add(
                since, event.begin_ps, where, f"in between, {operations} more operations of {_time(total)}"
            )
        pages = ", ".join(map(str, event.lpns[:4])) + (" ..." if len(event.lpns) > 4 else "")
        self.add(event.begin_ps, event.end_ps, where, f"{event.name} of page {pages}: {purpose}")

    def cause(self) -> str:
        """Return the main reason for the response time, in one line."""
        row = self.row
        by_cause = {cause: sum(self.parts[p] for p in parts) for cause, parts in CAUSES.items()}
        cause = max(by_cause, key=lambda each: by_cause[each])
        ps = by_cause[cause]
        share = words.percent(ps / row["response_ps"]) if row["response_ps"] else "-"
        of_slot = sum(self.parts[p] for p in CAUSES[cause] if p.startswith("slot_"))
        where = ""
        if self.die and cause in ("garbage collection", "other host work"):
            where = f" on {die_text(self.die)}"
        if cause == "write-backs and accesses before it" and self.depth is not None:
            where = f", at the limit of {self.depth} write-backs (buffer.background_depth)"
        slot = ""
        if of_slot > ps // 2 and cause in ("garbage collection", "other host work"):
            slot = ", before the write-back that freed its buffer slot"
        head = f"request {row['request']} ({_name(row)}) took {_time(row['response_ps'])}"
        return f"{head}: {_time(ps)} ({share}) for {cause}{where}{slot}"


def _name(row: dict[str, Any]) -> str:
    size = f" of {words.size(row['size_bytes'])} at {row['offset_bytes']}" if row["size_bytes"] else ""
    return f"{row['op']}{size}"
