"""Closed forms of a device and a load: write amplification, hit ratio, response time, lifetime."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _core
from .._devices import DEFAULT_DEVICE, Overrides
from .._devices import device as read_device
from .._support import words
from ..errors import FlashtwinError
from ..workloads import generated
from .conditions import Case, of_collection, of_hits, of_response, of_writes

#: Quantities in the order of the output, with their headings.
QUANTITIES: dict[str, str] = {
    "gc_write_amplification": "GC write amplification",
    "hit_ratio": "hit ratio of the buffer",
    "read_response_us": "mean response time of reads",
    "host_tb_written": "TB written by the host until the rated erases",
}
#: Victim rules with closed forms under uniform writes.
RULES = ("greedy", "fifo", "random", "d-choices")
#: Number of blocks that d-choices compares, if the device has another rule and does not give this number.
_CHOICES = 10
#: The best split of the flash between classes of pages is computed for at most this number of classes.
_SPLIT_MAX = 64
_MANY = "many blocks, a long run, all pages of the host written before, no host writes during a collection"
_FRONTIER = "host and collection write to one open block a pool"


@dataclass(frozen=True)
class Form:
    """A closed form of a quantity, or the reason why it does not apply.

    Attributes:
        quantity: one of `QUANTITIES`.
        name: the rule, policy or queue of the form.
        value: value of the quantity; None if the form does not apply.
        relation: `about`, or `at least` if the form is a lower bound.
        own: True if the form is for the rule or policy of the device, False if it is for another one.
        assumptions: assumptions of the form that were not checked.
        source: paper in which the form was published.
        reason: reason why the form does not apply.
    """

    quantity: str
    name: str
    value: float | None = None
    relation: str = "about"
    own: bool = False
    assumptions: str = ""
    source: str = ""
    reason: str | None = None


class Theory(list[Form]):
    """The closed forms for a device and a load: a list of `Form`, which prints as a table.

    Attributes:
        device: name of the device.
        load: the load.
        pool: pools of blocks of the device: number of pools (`pools`), blocks of a pool (`units`), pages of a
            block (`unit_pages`), free blocks at which collection begins (`low`), blocks in use
            (`units_in_use`), and the fraction of the pages in these blocks that is live (`load`).
    """

    def __init__(self, forms: list[Form], device: str, load: str, pool: dict[str, Any]) -> None:
        super().__init__(forms)
        self.device = device
        self.load = load
        self.pool = pool

    def own(self, quantity: str) -> Form | None:
        """Return the closed form of a quantity for the rule or policy of the device; None if none applies."""
        found = (form for form in self if form.quantity == quantity and form.own and form.value is not None)
        return next(found, None)

    def to_json(self) -> str:
        """Return everything as JSON."""
        fields = {
            "device": self.device,
            "load": self.load,
            "pool": self.pool,
            "forms": [asdict(form) for form in self],
        }
        return json.dumps(fields, indent=2)

    def __repr__(self) -> str:
        lines = [f"{self.device}; {self.load}"]
        if "units" in self.pool:
            lines.append(_pool(self.pool))
        for quantity, heading in QUANTITIES.items():
            forms = [form for form in self if form.quantity == quantity]
            lines += ["", heading]
            applying = [form for form in forms if form.value is not None]
            width = max((len(form.name) for form in applying), default=0) + 4
            last = None
            for form in applying:
                name = form.name + (" *" if form.own else "")
                relation = "at least " if form.relation == "at least" else ""
                lines.append(f"  {name:<{width}}{relation}{_shown(form)}  ({form.source})")
            for form in applying:
                if form.assumptions != last:
                    lines.append(words.wrapped(f"assumes {form.assumptions}", "  ", "    "))
                last = form.assumptions
            for form in forms:
                if form.value is None:
                    lines.append(words.wrapped(f"{form.name}: does not apply: {form.reason}", "  ", "    "))
        if any(form.own and form.value is not None for form in self):
            lines += ["", "* the rule or policy of the device"]
        return "\n".join(lines)


def _shown(form: Form) -> str:
    value = form.value or 0.0
    if form.quantity == "hit_ratio":
        return words.percent(value)
    return words.time(value) if form.quantity == "read_response_us" else words.digits(value)


def _pool(pool: dict[str, Any]) -> str:
    return (
        f"{words.count(pool['pools'])} pools of {words.count(pool['units'])} blocks of "
        f"{words.count(pool['unit_pages'])} pages, {pool['units_in_use']:.1f} in use; "
        f"live share of these {words.percent(pool['load'])}"
    )


def theory(
    load: str,
    device: str | Path = DEFAULT_DEVICE,
    *,
    set: Overrides | None = None,
    fill: float | None = None,
) -> Theory:
    """Compute write amplification, hit ratio, response time and lifetime in closed form (docs/theory.md).

    Args:
        load: generated load, as for `run`.
        device: as for `run`.
        set: keys of the device to change, as for `run`.
        fill: fraction of live pages in the blocks in use; by default that of the device, from its effective
            reserve.

    Returns:
        Closed forms of a device under a generated load: those that apply, with their assumptions, and those
        that do not apply, with the reason.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the remedy.
    """
    if fill is not None and not 0 < fill < 1:
        raise FlashtwinError(f"fill: {fill}: give a share above 0 and below 1")
    spec = read_device(device, set)
    case = Case(spec, generated(load).text)
    return theory_of(case, fill)


def theory_of(case: Case, fill: float | None = None) -> Theory:
    """Compute the closed forms of a case. `fill`, if given, replaces the device's fraction of live pages."""
    pool = dict(case.pool)
    if fill is not None and "units" in pool:
        pool["load"] = fill
    hits = _hits(case)
    collection = _collection(case, pool)
    forms = [*collection, *hits, _response(case, hits), _lifetime(case, pool, collection, hits)]
    return Theory(forms, case.spec.name, case.load or "trace", pool)


def _collection(case: Case, pool: dict[str, Any]) -> list[Form]:
    quantity = "gc_write_amplification"
    none = of_collection(case) or of_writes(case)
    of = case.popularity
    if none is not None or of is None:
        return [Form(quantity, "victim rules", reason=none)]
    rule = case.section("gc").get("victim", "greedy")
    choices = case.section("gc").get("choices", _CHOICES) if rule == "d-choices" else _CHOICES
    greedy, fifo, random, some, permuted = _core.theory_uniform(pool["load"], pool["unit_pages"], choices)
    uniform = dict(zip(RULES, (greedy, fifo, random, some), strict=True))
    sources = dict(zip(RULES, ("Desnoyers 2012", "Desnoyers 2012", "exact", "Van Houdt 2013"), strict=True))
    classes = of["classes"]
    live = [pages / case.pages * pool["load"] * pool["units_in_use"] for pages, _ in classes]
    writes = [share for _, share in classes]
    forms = []
    for name in RULES:
        label = f"{name} of {choices}" if name == "d-choices" else name
        own = name == rule
        if case.is_uniform:
            value: float | None = uniform[name]
            kind, source, reason = "uniform writes", sources[name], None
        elif name == "fifo" and of["permuted"]:
            value, kind, source, reason = permuted, "each page once a pass", "docs/placement.md", None
        elif name == "fifo":
            value = _core.theory_mixed(live, writes, pool["units_in_use"])
            kind, source = f"{len(classes)} classes of pages, mixed in each block", "docs/theory.md"
            reason = None if value is not None else "the live pages fill the blocks in use"
        else:
            value, kind, source = None, "", ""
            reason = (
                "each page is written once a pass: blocks are not alike"
                if of["permuted"]
                else "pages differ in popularity, and so do blocks of equal fill; known for fifo only"
            )
        assumptions = f"{kind}; {_MANY}; {_FRONTIER}"
        forms.append(
            Form(
                quantity,
                label,
                value,
                own=own,
                assumptions=assumptions if value is not None else "",
                source=source,
                reason=reason,
            )
        )
    if rule not in RULES:
        forms.append(Form(quantity, rule, own=True, reason="no closed form of this rule is known"))
    if 1 < len(classes) <= _SPLIT_MAX and not of["permuted"]:
        best = _core.placement_split(live, writes, pool["units_in_use"])
        if best is not None:
            forms.append(
                Form(
                    quantity,
                    "fifo, separate classes",
                    best[1],
                    "at least",
                    assumptions="each class in blocks of its own, and the best split of the flash among them",
                    source="docs/placement.md",
                )
            )
    return forms


def _hits(case: Case) -> list[Form]:
    quantity = "hit_ratio"
    none = of_hits(case)
    of = case.popularity
    if none is not None or of is None:
        return [Form(quantity, "lru, fifo, random", reason=none)]
    lru, fifo = _core.theory_hits(of["classes"], float(case.buffer_pages))
    policy = case.spec.policy
    assumes = "independent accesses, a warm buffer, every miss enters it"
    forms = [
        Form(quantity, "lru", lru, own=policy == "lru", assumptions=assumes, source="Che 2002"),
        Form(
            quantity, "fifo, random", fifo, own=policy == "fifo", assumptions=assumes, source="Gelenbe 1973"
        ),
    ]
    if policy not in ("lru", "fifo"):
        forms.append(Form(quantity, f"{policy}", own=True, reason="no closed form of this policy is known"))
    return forms


def _response(case: Case, hits: list[Form]) -> Form:
    quantity, name = "read_response_us", "M/G/1 of a chip"
    none = of_response(case)
    of = case.popularity
    if none is not None or of is None:
        return Form(quantity, name, reason=none)
    hit = next((form.value for form in hits if form.own and form.value is not None), None)
    if hit is None and case.buffer_pages:
        # No form applies to this policy. Under uniform reads, however, all policies have this hit ratio.
        hit = case.buffer_pages / case.pages
    rate = of["poisson_rate"] * (1 - (hit or 0.0)) / case.pool["chips"] * 1e-6
    times = case.section("timing").get("read_us")
    times = times if isinstance(times, list) else [times]
    response = _core.theory_response(rate, [(float(time), 1 / len(times)) for time in times])
    if response is None:
        utilisation = rate * sum(times) / len(times)
        return Form(quantity, name, reason=f"the chips are overloaded: utilisation {utilisation:.2f}")
    return Form(
        quantity,
        name,
        response * (1 - (hit or 0.0)),
        "at least",
        own=True,
        assumptions="reads in order of arrival at each chip; link, channels and controller only add to it",
        source="Pollaczek and Khinchine",
    )


def _lifetime(case: Case, pool: dict[str, Any], collection: list[Form], hits: list[Form]) -> Form:
    quantity, name = "host_tb_written", "rated erases"
    own = next((form for form in collection if form.own and form.value is not None), None)
    rated = case.section("wear").get("rated_erases", 0)
    if not rated:
        reason = "wear.rated_erases is not set (--set wear.rated_erases=3000)"
        return Form(quantity, name, reason=reason)
    if own is None or own.value is None:
        return Form(quantity, name, reason="write amplification of the device has no closed form here")
    hit = next((form.value for form in hits if form.own and form.value is not None), 0.0) or 0.0
    pages = rated * pool["units"] * pool["pools"] * pool["unit_pages"]
    written = case.popularity["request_bytes"] if case.popularity else 0
    # A smaller request programs a whole page.
    host_bytes = pages * written / (own.value * (1 - hit))
    return Form(
        quantity,
        name,
        host_bytes * 1e-12,
        own=True,
        assumptions=f"equal shares of erases for all blocks; write amplification {words.digits(own.value)}",
        source="flashtwin lifetime",
    )
