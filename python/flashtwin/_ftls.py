"""Flash translation layers (FTLs): their names and descriptions, and step-by-step runs on one small chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._devices import Value, as_toml
from ._support import words
from .errors import FlashtwinError


def ftls() -> list[str]:
    """Return the names of the translation layers that `trace_ftl` can run step by step."""
    return _core.ftl_names()


class FtlInfo(dict[str, Any]):
    """Description of a translation layer: a dict that prints as text."""

    def __repr__(self) -> str:
        source, example = self["source"], self["example"]
        parts = [
            f"{self['name']}: {self['title']}",
            words.wrapped(self["description"]),
            "",
            words.wrapped(f"{source['authors']}: {source['title']}. {source['venue']}, {source['year']}."),
            f"Rule: {self['provenance']}.",
            "",
            *(words.wrapped(sentence, "- ", "  ") for sentence in self["rule"]),
        ]
        for parameter in self["parameters"]:
            default = "optional" if parameter["default"] == "none" else f"default {parameter['default']}"
            parts += [
                "",
                words.wrapped(f"{parameter['key']} ({default}; {parameter['provenance']})"),
                words.wrapped(f"{parameter['description']} Takes {parameter['takes']}.", "  ", "  "),
            ]
        steps = trace_ftl(self["name"], example["accesses"], set=example["set"])
        return "\n".join([*parts, "", words.wrapped(f"State: {self['state']}"), "", repr(steps)])


def _check_name(name: str) -> None:
    known = _core.ftl_names()
    if name not in known:
        raise FlashtwinError(f'ftl: found "{name}"; {words.known_names(name, known)}')


def ftl_info(name: str) -> FtlInfo:
    """Describe a translation layer: rule, source, parameters with their defaults, an example.

    Args:
        name: one of `ftls()`.

    Raises:
        FlashtwinError: there is no such translation layer; the message lists the existing ones.
    """
    _check_name(name)
    return FtlInfo(_core.ftl_info(name))


class FtlTrace(list[dict[str, Any]]):
    """Flash operations of each step of a trace: a list of dicts that prints as a table.

    Attributes:
        total: sum over all steps, under the names of the counters.
    """

    def __init__(self, steps: list[dict[str, Any]], total: dict[str, int], text: str) -> None:
        super().__init__(steps)
        self.total = total
        self._text = text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


def trace_ftl(
    name: str,
    accesses: str | Sequence[str],
    *,
    set: Mapping[str, Value] | None = None,
    blocks: int = 16,
    pages_per_block: int = 4,
    logical_pages: int | None = None,
    empty: bool = False,
) -> FtlTrace:
    """Apply a string of accesses to a translation layer, and count flash operations.

    Args:
        name: one of `ftls()`.
        accesses: tokens such as "0 4x3 R5 T3 F". "0" writes page 0, "4x3" writes pages 4 to 6, "R5" reads
            page 5, "T3" trims page 3, and "F" writes the changed part of the map to flash.
        set: parameters, as in {"rw_log_blocks": 2}.
        blocks: blocks of the chip.
        pages_per_block: pages per erase block.
        logical_pages: number of logical pages; by default half of the chip's pages.
        empty: whether all blocks are erased at first; otherwise every logical page was written once, in
            order.

    Returns:
        One dict per token: `op`, `host_reads`, `host_programs`, `copies` (a read and a program each),
        `map_reads`, `map_writes`, `erases`, `switch_merges`, `partial_merges`, `full_merges` and `state`
        (docs/ftls.md describes the notation).

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place.
    """
    _check_name(name)
    text = accesses if isinstance(accesses, str) else " ".join(accesses)
    numbers = {"blocks": blocks, "pages_per_block": pages_per_block, "logical_pages": logical_pages}
    for what, number in numbers.items():
        if number is not None and not 1 <= number < 1 << 32:
            raise FlashtwinError(f"{what}: found {number}; must be a whole number from 1")
    settings = [(key, as_toml(value)) for key, value in (set or {}).items()]
    steps, total, table = _core.trace_ftl(
        name,
        text,
        set=settings,
        blocks=blocks,
        pages_per_block=pages_per_block,
        logical_pages=logical_pages,
        empty=empty,
    )
    return FtlTrace(steps, total, table)
