"""A policy of your own, written in Python."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from . import _core
from .errors import FlashtwinError

Access = _core.Access
PolicyDevice = _core.PolicyDevice


class Policy(ABC):
    """A replacement policy: it ranks the cached pages and names victims, and does nothing else.

    Subclass it and give the class to `run`, `compare` or `hits`. It is made anew for every run, with
    the capacity in pages if its first argument has no default or is called `capacity`. A page is a
    small number, the same as long as the page is cached, and used for another one later. An `Access`
    has `lpn` (the logical page), `write`, `dirty` (the page differs from flash after it), `request`
    (number of the host request, the same for all its pages) and `request_pages`.

    The order of calls: on a hit `hit`. On a miss first `evict`, if the buffer is full, then `insert`.

    Attributes:
        capacity: pages of the buffer; set before the first call.
        device: what may be asked of the device, within insert, hit, evict and cleaned:
            `lpn(page)`, `dirty(page)` (false also while it is being written back), `chip(page)` (None
            if no chip holds a copy), `in_flight(page)` (its slot or data have not arrived), `chips`,
            `in_gc(chip)`, `drain_time_us(chip)` (ECR's CQCT), `chip_idle(chip)`, `free_blocks(chip)`,
            `now_us`. Set before the first call.
    """

    capacity: int
    device: PolicyDevice

    @abstractmethod
    def insert(self, page: int, access: Access) -> None:
        """A page came in."""

    @abstractmethod
    def hit(self, page: int, access: Access) -> None:
        """A cached page was accessed."""

    @abstractmethod
    def evict(self, incoming: Access) -> int | Sequence[int]:
        """Evict a page, or several, to make room for another, and return it.

        A page in flight cannot be evicted. If one is returned, the device calls `evict` again for another
        page, and inserts the first page again when its data have arrived.
        """

    @abstractmethod
    def forget(self, page: int) -> None:
        """A page was trimmed: it leaves without having been evicted."""

    def cleaned(self, page: int) -> None:  # noqa: B027 (most policies do not care)
        """A dirty page was written back and stays, clean."""


#: Makes a policy, from the capacity in pages or from nothing.
Factory: TypeAlias = Callable[..., Policy]


def label_of(factory: object) -> str:
    """Name of a user's policy in results: its `name`, or the name of the class or function."""
    if isinstance(factory, Policy):
        raise FlashtwinError(
            f"policy: give the class {type(factory).__name__}, not an object of it: every run needs a new one"
        )
    if not callable(factory):
        raise FlashtwinError(
            f"policy: found {factory!r}; must be a name, a subclass of flashtwin.Policy, or what makes one"
        )
    inner: Any = factory
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "name", None)
    return name if isinstance(name, str) else str(getattr(inner, "__name__", type(inner).__name__))


def instantiate(factory: Factory, capacity_pages: int) -> _core.UserPolicy:
    """Make a user's policy for a buffer of that size."""
    label = label_of(factory)
    policy = factory(capacity_pages) if _takes_capacity(factory) else factory()
    if not isinstance(policy, Policy):
        raise FlashtwinError(f"policy {label}: made {policy!r}, which is not a flashtwin.Policy")
    policy.capacity = capacity_pages
    policy.device = PolicyDevice()
    return _core.UserPolicy(policy, label, type(policy).cleaned is not Policy.cleaned)


def _takes_capacity(factory: Factory) -> bool:
    try:
        first = next(iter(inspect.signature(factory).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return False
    return first.default is first.empty or first.name == "capacity"
