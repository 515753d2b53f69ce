"""A device of a given size: fewer or more blocks, all else as it is (docs/live.md)."""

from __future__ import annotations

import re
import sys
from math import ceil
from pathlib import Path

from .devices import Overrides, Spec
from .errors import DeviceError, FlashtwinError
from .policies import Choice
from .words import read_size
from .words import size as as_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SHORT = re.compile(r"(\d+)\s*([kKMGT])")


def read(text: str | int) -> int:
    """Read a size: bytes, or as in "16G", "16 GiB" (both binary) or "16 GB"."""
    if isinstance(text, int):
        given: int | None = text
    else:
        short = _SHORT.fullmatch(text.strip())
        given = read_size(f"{short[1]}{short[2].upper()}iB") if short else read_size(text.strip())
    if not given:
        raise FlashtwinError(f"size {text}: give a size above 0, as in 16G or 500MiB")
    return given


def sized(name: str | Path, size_bytes: int, choice: Choice, overrides: Overrides) -> Spec:
    """Read a device and give it as few blocks as hold `size_bytes` (D-125).

    Raises:
        DeviceError: there is no such device: what keeps it from being so small or so large.
    """
    as_it_is = choice.spec(name, overrides)
    key = "geometry.blocks_per_plane"
    table = tomllib.loads(as_it_is.to_toml())
    if "array" in table:
        key, table = f"member.{key}", table.get("member", {})
    if "geometry" not in table:
        raise DeviceError(f"size: {name} has members of several kinds; give their sizes with --set")
    blocks: int = table["geometry"]["blocks_per_plane"]

    def spec(n: int) -> Spec:
        try:
            return choice.spec(name, {**overrides, key: n})
        except DeviceError as e:
            larger = "; larger pages hold more (--set geometry.page_bytes=64KiB)" if n > blocks else ""
            raise DeviceError(
                f"size {as_text(size_bytes)}: {name} cannot have it with {n} blocks a plane: {e}{larger}"
            ) from None

    n = max(1, ceil(blocks * size_bytes / as_it_is.exported_bytes))
    found = spec(n)
    while found.exported_bytes < size_bytes:
        n += max(1, n * (size_bytes - found.exported_bytes) // (size_bytes * 2))
        found = spec(n)
    while n > 1:
        try:
            fewer = choice.spec(name, {**overrides, key: n - 1})
        except DeviceError:
            break
        if fewer.exported_bytes < size_bytes:
            break
        n, found = n - 1, fewer
    return found
