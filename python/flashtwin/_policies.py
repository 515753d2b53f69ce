"""Buffer policies: names, descriptions, step-by-step runs, and parsing of arguments that select a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from . import _core
from ._devices import Overrides, Spec, Value, as_toml, device
from ._support import words
from .errors import DeviceError, FlashtwinError
from .user_policy import Factory, Policy, instantiate, is_in_file, label_of, load

#: A policy as an argument of `run`, `compare` and `hits`: a name, which may have parameters
#: (`cflru:window=0.5`); a class of the user; or the name of such a class, as in `mine.py:Mine`.
PolicyLike = str | type[Policy] | Factory


def policies() -> list[str]:
    """Return the names of the buffer policies. Each of them also has a GC-aware variant, `gcar-NAME`."""
    return _core.policy_names()


class PolicyInfo(dict[str, Any]):
    """Description of a policy: a dict that prints as text."""

    def __repr__(self) -> str:
        source, cost = self["source"], self["cost"]
        parts = [
            f"{self['name']}: {self['title']}",
            words.wrapped(self["description"]),
            "",
            words.wrapped(f"{source['authors']}: {source['title']}. {source['venue']}, {source['year']}."),
            f"Rule: {self['provenance']}.",
            "",
            *(words.wrapped(sentence, "- ", "  ") for sentence in self["rule"]),
        ]
        if self["drawing"]:
            parts += ["", self["drawing"]]
        miss, here = cost["miss_published"], cost["miss_here"]
        parts += ["", f"Cost: hit {cost['hit']}; miss {miss} as published, {here} here."]
        for parameter in self["parameters"]:
            default = "required" if parameter["default"] is None else f"default {parameter['default']}"
            parts += [
                "",
                f"{parameter['key']} ({default}; {parameter['provenance']})",
                words.wrapped(f"{parameter['description']} Takes {parameter['takes']}.", "  ", "  "),
            ]
        example = self["example"]
        if example:
            options = {key: value for key, value in example.items() if key not in ("policy", "accesses")}
            steps = trace_policy(example["policy"], example["accesses"], **options)
            parts += ["", words.wrapped(f"State: {self['state']}"), "", repr(steps)]
        return "\n".join(parts)


def policy_info(name: str) -> PolicyInfo:
    """Describe a policy: rule, source, parameters with their defaults, cost, an example.

    Args:
        name: one of `policies()`, `gcar-` followed by one of them, or "min".

    Raises:
        FlashtwinError: there is no such policy; the message names the most similar one.
    """
    check_name(name)
    return PolicyInfo(_core.policy_info(name))


def check_name(name: str) -> None:
    """Reject a policy that does not exist, and name the most similar one. Only `hits` accepts `min`."""
    names = [*_core.catalog_names(), *policies()]
    if name in names or _core.is_policy(name):
        return
    given = name.lower()
    base = given.removeprefix("gcar-")
    near = [base] if base in names else get_close_matches(base, names, 1)
    hint = ""
    if given == "gcar":
        hint = "; gcar is a filter over a policy: gcar-lru, gcar-cflru and so on"
    elif near:
        hint = f'; did you mean "{"gcar-" if base != given else ""}{near[0]}"?'
    elif given.endswith(".py"):
        hint = f"; name its class, as in {name}:MyPolicy"
    raise DeviceError(f'policy: found "{name}"; must be a policy that `flashtwin policy list` knows{hint}')


class PolicyTrace(list[dict[str, Any]]):
    """Hits and evictions of each step of a trace: a list of dicts that prints as a table."""

    def __init__(self, steps: list[dict[str, Any]], text: str) -> None:
        super().__init__(steps)
        self._text = text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


def trace_policy(
    policy: PolicyLike,
    accesses: str | Sequence[str],
    *,
    capacity: int,
    set: Mapping[str, Value] | None = None,
    chips: int = 1,
    stride_pages: int = 1,
    pages_per_block: int = 4,
) -> PolicyTrace:
    """Apply a string of accesses to a policy, as examples in papers do.

    Args:
        policy: as for `run`. For a class of the user, `state` in the result is what its method `state`
            returns; without that method, the buffered pages, the page inserted last first.
        accesses: tokens such as "W1 R2 W4x3 trim1". "W1" writes page 1, "R2" reads page 2, "W4x3" writes
            pages 4 to 6 in one request, and "trim1" trims page 1. "gc+0" begins a garbage collection on chip
            0, and "gc-0" ends it. "drain0=500" gives chip 0 pending work of 500 us, and "idle0" makes it
            idle. "t+100" lets 100 ms pass.
        capacity: pages of the buffer.
        set: parameters, as in {"window": 2}.
        chips: number of chips over which the pages are striped.
        stride_pages: number of consecutive pages on a chip.
        pages_per_block: pages per erase block.

    Returns:
        One dict per token: `op`, `hit` (None if the token is not an access), `evicted` ("2c" is page 2,
        clean) and `state` (docs/policies.md describes the notation). If an eviction also writes or reads
        other pages, `written` and `read` list them.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place.
    """
    text = accesses if isinstance(accesses, str) else " ".join(accesses)
    for what, number in (("capacity", capacity), ("chips", chips), ("stride_pages", stride_pages)):
        _whole(what, number)
    _whole("pages_per_block", pages_per_block)
    choice = Choice.read(policy)
    if choice.user and set:
        raise FlashtwinError(f"set: {choice.label} is a class of your own; give its parameters to it")
    settings = [(key, as_toml(value)) for key, value in {**(set or {}), **choice.settings}.items()]
    steps, table = _core.trace_policy(
        choice.name or "lru",
        choice.instance(capacity),
        text,
        capacity=capacity,
        set=settings,
        chips=chips,
        stride_pages=stride_pages,
        pages_per_block=pages_per_block,
    )
    return PolicyTrace(steps, table)


def _whole(what: str, number: int) -> None:
    if not 1 <= number < 1 << 32:
        raise FlashtwinError(f"{what}: found {number}; must be a whole number from 1")


@dataclass(frozen=True)
class Choice:
    """A policy, parsed from the form in which the user gave it.

    Attributes:
        label: name of the policy in results; None for the device's own policy, which keeps its name.
        name: name of the policy; None for the device's own policy, or for a class of the user.
        settings: parameters that were given with the name, by their keys in a device file (`buffer.window`).
        user: policy class of the user, or a function that creates a policy; None for an included policy.
    """

    label: str | None
    name: str | None
    settings: dict[str, str]
    user: Factory | None

    @staticmethod
    def read(policy: PolicyLike | None) -> Choice:
        """Read one policy."""
        if policy is None:
            return Choice(None, None, {}, None)
        if isinstance(policy, str) and is_in_file(policy):
            policy = load(policy)
        if not isinstance(policy, str):
            return Choice(label_of(policy), None, {}, policy)
        name, colon, text = policy.partition(":")
        check_name(name)
        settings = _settings(policy, name, text) if colon else {}
        return Choice(policy, name, settings, None)

    def knows(self, key: str) -> bool:
        """Whether a key of the section `buffer` is a parameter of this policy."""
        return self.name is not None and key in _core.policy_parameters(self.name)

    def spec(self, name: str | Path, overrides: Overrides) -> Spec:
        """Read the device with this policy, or with LRU as a placeholder for a policy of the user."""
        merged = {**overrides, **self.settings}
        try:
            return device(name, merged, "lru" if self.user else self.name)
        except DeviceError as e:
            if not self.settings:
                raise
            raise DeviceError(f"policy {self.label}: {e}") from None

    def instance(self, capacity_pages: int, spec: Spec | None = None) -> _core.UserPolicy | None:
        """Create the user's policy for a buffer of the given size; None for an included policy.

        `spec` is the device, if there is one.
        """
        return instantiate(self.user, capacity_pages, spec) if self.user else None


def read_choices(policies: Sequence[PolicyLike]) -> list[Choice]:
    """Read the policies of a comparison: at least one, and no policy twice."""
    choices = [Choice.read(policy) for policy in policies]
    if not choices:
        raise FlashtwinError(f"policies: none given; known: {', '.join(_core.policy_names())}")
    labels = [str(choice.label) for choice in choices]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise FlashtwinError(f"policies: {twice} is named twice")
    return choices


def overrides_for(choice: Choice, among: Sequence[Choice], overrides: Overrides) -> Overrides:
    """Return the overrides, except parameters that other policies of the comparison have and this one lacks.

    Keys that no policy has are kept, so that the device reports an error.
    """
    if len(among) == 1:
        return overrides
    known_elsewhere = {key for key in overrides if any(other.knows(key) for other in among)}
    return {k: v for k, v in overrides.items() if k not in known_elsewhere or choice.knows(k)}


def split_names(text: str, everything: Sequence[str]) -> list[str]:
    """Split a list such as "lru,cbm:theta=0.2,merge=false,all".

    A part with "=" and without ":" is a parameter of the policy before it. "all" stands for all policies that
    the list has not named before.
    """
    names: list[str] = []
    for piece in (part.strip() for part in text.split(",")):
        if not piece:
            continue
        if "=" in piece and ":" not in piece and names and ":" in names[-1]:
            names[-1] += f",{piece}"
        elif piece == "all":
            names += [name for name in everything if name not in names]
        else:
            names.append(piece)
    return names


def _settings(label: str, name: str, text: str) -> dict[str, str]:
    """Read the parameters after the name of a policy, as in "cflru:window=0.5"."""
    known = [key.removeprefix("buffer.") for key in _core.policy_parameters(name)]
    settings = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise FlashtwinError(f"policy {label}: give NAME:KEY=VALUE,..., as in cflru:window=0.5")
        key = key.removeprefix("buffer.")
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
            raise FlashtwinError(f"policy {label}: {name} has no parameter {key}; {hint}")
        if f"buffer.{key}" in settings:
            raise FlashtwinError(f"policy {label}: {key} is given twice; leave one out")
        settings[f"buffer.{key}"] = value
    return settings
