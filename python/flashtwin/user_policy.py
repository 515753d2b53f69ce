"""A policy of your own, written in Python."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, SupportsIndex, TypeAlias

from . import _core
from ._devices import Spec
from .errors import FlashtwinError

Access = _core.Access
Page = _core.Page
PolicyDevice = _core.PolicyDevice


class Policy(ABC):
    """A replacement policy: it ranks the pages in the buffer and selects victims.

    The device handles write-backs, waits for buffer slots, and statistics.

    Subclass it and pass the class to `run`, `compare` or `hits`, or name it on the command line as
    FILE.py:CLASS. Each run creates a new instance. If the first argument of the class has no default or is
    called `capacity`, it is set to the number of pages of the buffer.

    As long as a page is in the buffer, its `Page` is the same object. A `Page` can be a key of dicts and
    sets, and an index (a small number) of lists and arrays. After `evict` or `forget`, the index is used for
    another page. Comparing the old `Page`, hashing it or using it as an index then raises an error. A list of
    evicted pages (ghosts) must therefore store logical pages: `access.lpn` or `device.lpn(page)`.

    An `Access` has `lpn` (the logical page), `write`, `dirty` (whether the page differs from flash after the
    access), `request` (number of the host request, the same for all its pages) and `request_pages`.

    On a hit, the device calls `hit`. On a miss, the device first calls `evict` if the buffer is full, and
    then `insert`.

    Attributes:
        capacity: size of the buffer in pages; set before the first call.
        ahead_after_us: `ahead` is called when the host has made no access for this number of microseconds.
        device: view of the device, for use within insert, hit, evict, cleaned, ahead and state. It is set
            before the first call. It has `lpn(page)`; `dirty(page)` (also false while the page is being
            written back); `programming(page)` (whether the page is being written back); `chip(page)` (None if
            no chip has a copy); `in_flight(page)` (whether its slot or data have not arrived); `text(page)`
            ("7d" or "7c": logical page 7, dirty or clean, as in `trace_policy`); `chips`; `in_gc(chip)`;
            `drain_time_us(chip)` (ECR's CQCT); `chip_idle(chip)`; `free_blocks(chip)`; `now_us`;
            `spare_blocks` (blocks of each pool that the logical pages do not need; None for arrays and for
            `hits`). A pool is a chip, or a plane if GC moves pages by copy-back.
    """

    ahead_after_us: int = 1000
    capacity: int
    device: PolicyDevice

    @abstractmethod
    def insert(self, page: Page, access: Access) -> None:
        """Called when a page has been inserted into the buffer."""

    @abstractmethod
    def hit(self, page: Page, access: Access) -> None:
        """Called when a page in the buffer is accessed."""

    @abstractmethod
    def evict(self, incoming: Access) -> SupportsIndex | Sequence[SupportsIndex]:
        """Evict one or several pages to make room for another page, and return them.

        A page in flight cannot be evicted. If such a page is returned, the device calls `evict` again for
        another page. The device inserts the page into the policy again when it is no longer in flight.
        """

    @abstractmethod
    def forget(self, page: Page) -> None:
        """Called when a page was trimmed. The page must be removed without an eviction."""

    def cleaned(self, page: Page) -> None:  # noqa: B027 (most policies do not care)
        """Called when a dirty page was written back and stays in the buffer as a clean page."""

    def ahead(self, in_flight: int) -> SupportsIndex | None:
        """Return a dirty page that is written back although it is not yet evicted, or None.

        The page stays in the buffer, and `cleaned` is called when it has been written. The device calls this
        method whenever a chip becomes idle, and when the host has made no access for `ahead_after_us`. The
        device then repeats the call until the method returns None. `in_flight` is the number of write-backs
        of such pages that are in flight.
        """
        raise NotImplementedError

    def is_hot(self, lpn: int) -> bool:
        """Whether logical page `lpn` is hot. Hot pages are written to an open block of their own.

        Called when the page is about to be written back. The page may already have been evicted, and `device`
        must not be used in this method. The method has an effect only with `ftl.separation=policy`, or on a
        device with placement. On the latter, a hot page without a placement id of the host has placement id
        1.
        """
        raise NotImplementedError

    def state(self) -> str:
        """Return the lists of the policy in one line, for `trace_policy` and `flashtwin policy trace`.

        If a policy lacks this method, the pages in the policy are shown, the page inserted last first.
        """
        raise NotImplementedError


#: A function or class that creates a policy. It is called with the capacity in pages or without arguments.
Factory: TypeAlias = Callable[..., Policy]


def label_of(factory: object) -> str:
    """Return the name of a user's policy in results: its `name`, or the name of its class or function."""
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


#: Largest `ahead_after_us`: a minute.
_AHEAD_AFTER_US_MAX = 60_000_000


def instantiate(factory: Factory, capacity_pages: int, spec: Spec | None) -> _core.UserPolicy:
    """Create a user's policy for a buffer of the given size. `spec` is the device, if there is one."""
    label = label_of(factory)
    policy = factory(capacity_pages) if _takes_capacity(factory) else factory()
    if not isinstance(policy, Policy):
        raise FlashtwinError(f"policy {label}: made {policy!r}, which is not a flashtwin.Policy")
    policy.capacity = capacity_pages
    policy.device = PolicyDevice(spec.spare_blocks if spec else None)
    optional = [
        name
        for name in ("cleaned", "state", "ahead", "is_hot")
        if getattr(type(policy), name) is not getattr(Policy, name)
    ]
    if "is_hot" in optional and spec and not spec.takes_streams:
        remedy = "the device does not call is_hot; set ftl.separation=policy"
        ignored = "is_hot has no effect on an array" if spec.spare_blocks is None else remedy
        raise FlashtwinError(f"policy {label}: {ignored}")
    after_us = policy.ahead_after_us
    if not isinstance(after_us, int) or not 0 <= after_us <= _AHEAD_AFTER_US_MAX:
        must = f"must be a whole number from 0 to {_AHEAD_AFTER_US_MAX}"
        raise FlashtwinError(f"policy {label}: ahead_after_us = {after_us!r}; {must}")
    return _core.UserPolicy(policy, label, optional, after_us)


#: Separator of file and class in the name of a policy.
_IN_FILE = ".py:"


def is_in_file(text: str) -> bool:
    """Whether the name of a policy has the form FILE.py:CLASS."""
    return _IN_FILE in text


def load(text: str, base: type = Policy, what: str = "policy") -> Callable[..., Any]:
    """Read a class of a Python file, given as FILE.py:CLASS. It must be a subclass of `base`."""
    before, _, name = text.partition(_IN_FILE)
    path = Path(before + ".py")
    module = _module(f"{what} {text}", path)
    found = getattr(module, name, None)
    if found is None:
        classes = [
            each
            for each, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
        ]
        there = (
            f"it has {', '.join(classes)}" if classes else f"it has no subclass of flashtwin.{base.__name__}"
        )
        raise FlashtwinError(
            f"{what} {text}: there is no {name or 'name behind the colon'} in {path}; {there}"
        )
    if not callable(found):
        message = f"{what} {text}: {name} is {found!r}; it must be a subclass of flashtwin.{base.__name__}"
        raise FlashtwinError(message)
    return found  # type: ignore[no-any-return]


def _module(text: str, path: Path) -> ModuleType:
    """Run a Python file and return it as a module. It can import files from its own directory."""
    if not path.is_file():
        raise FlashtwinError(f"{text}: there is no file {path}")
    # The module does not have the name of the file, because an installed module may have that name.
    name = f"flashtwin_policy_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FlashtwinError(f"{text}: {path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    beside = str(path.resolve().parent)
    sys.path.insert(0, beside)
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        frames = [
            each for each in traceback.extract_tb(e.__traceback__) if each.filename == str(path.absolute())
        ]
        line = e.lineno if isinstance(e, SyntaxError) else frames[-1].lineno if frames else None
        place = f"{path}:{line}" if line else str(path)
        raise FlashtwinError(f"{text}: {place}: {type(e).__name__}: {e}") from e
    finally:
        sys.path.remove(beside)
    return module


def _takes_capacity(factory: Factory) -> bool:
    try:
        first = next(iter(inspect.signature(factory).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return False
    return first.default is first.empty or first.name == "capacity"
