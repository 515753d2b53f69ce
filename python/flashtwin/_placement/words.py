"""Descriptions of schemes, victim rules and scopes, and a small device that is run step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from .. import _core
from .._support import words
from ..errors import FlashtwinError

Kind: TypeAlias = Literal["scheme", "victim", "scope"]
#: Value of a word of a setup.
Value: TypeAlias = str | int | float | bool

_KINDS: dict[Kind, str] = {"scheme": "placement scheme", "victim": "victim rule", "scope": "scope"}


class PlacementInfo(dict[str, Any]):
    """Description of a scheme, victim rule or scope: a dict that prints as text."""

    def __repr__(self) -> str:
        parts = [f"{self['name']}: {_KINDS[self['kind']]}", words.wrapped(self["line"] + ".")]
        if "source" in self:
            of = self["source"]
            parts += ["", words.wrapped(f"{of['authors']}: {of['title']}. {of['venue']}, {of['year']}.")]
        parts += ["", *(words.wrapped(sentence, "- ", "  ") for sentence in self.get("rule", []))]
        for parameter in self["parameters"]:
            parts += [
                "",
                words.wrapped(
                    f"{parameter['key']} (default {parameter['default']}; {parameter['provenance']})"
                ),
                words.wrapped(f"{parameter['description']} Takes {parameter['takes']}.", "  ", "  "),
            ]
        return "\n".join(parts).rstrip()


def placements() -> list[PlacementInfo]:
    """Describe all schemes, victim rules and scopes."""
    return [PlacementInfo(kind=kind, **info) for kind in _KINDS for info in _core.placement_components(kind)]


def placement_info(name: str) -> PlacementInfo:
    """Describe a scheme, victim rule or scope.

    Raises:
        FlashtwinError: no component has this name; the message lists the existing names.
    """
    every = placements()
    found = [info for info in every if info["name"] == name]
    if not found:
        known = words.known_names(name, [info["name"] for info in every])
        raise FlashtwinError(f'placement: found "{name}"; {known}')
    return found[0]


class PlacementTrace(list[dict[str, Any]]):
    """Results of the operations: a list of dicts that prints as in docs/placement.md."""

    def __repr__(self) -> str:
        def text(step: dict[str, Any]) -> str:
            did = "; ".join([*filter(None, [step["status"]]), *step["did"], *filter(None, [step["output"]])])
            return f"{step['op']}{' -> ' + did if did else ''}\n    {step['state']}"

        return "\n".join(map(text, self))


def trace_placement(ops: str, **setup: Value) -> PlacementTrace:
    """Apply operations to a small device.

    Args:
        ops: operations separated by ";". "W 0 4 0" writes 4 pages from page 0 on with placement id 0 ("-" for
            no id), "T 0 2" trims, "U 0 1" closes units early, "S" shows the status, "L" the totals in pages,
            "E" the events of the host. "P" is a power loss.
        setup: words of the setup, such as units=8, unit_pages=4, logical_pages=8, handles="ii,ii", low=2;
            docs/placement.md lists them.

    Returns:
        One dict per operation: `op`, `status` (an error), `did`, `output` and `state`.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the remedy.
    """
    return PlacementTrace(_core.trace_placement(as_words(setup), ops))


def as_words(setup: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Return the words of a setup as text."""

    def text(value: Value) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [(key, text(value)) for key, value in setup.items()]
