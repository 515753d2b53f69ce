"""A device of a given size: only the number of its blocks is changed (docs/live.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

from .._devices import Overrides, Spec, device, devices
from .._policies import Choice
from ..errors import DeviceError, FlashtwinError
from .words import read_size
from .words import size as as_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SHORT = re.compile(r"(\d+)\s*([kKMGT])")


def read(text: str | int) -> int:
    """Read a size: a number of bytes, or text such as "16G", "16 GiB" (binary) or "16 GB" (decimal)."""
    if isinstance(text, int):
        given: int | None = text
    else:
        short = _SHORT.fullmatch(text.strip())
        given = read_size(f"{short[1]}{short[2].upper()}iB") if short else read_size(text.strip())
    if not given:
        raise FlashtwinError(f"size {text}: give a size above 0, as in 16G or 500MiB")
    return given


def sized(name: str | Path, size_bytes: int, choice: Choice, overrides: Overrides) -> Spec:
    """Read a device, and give it the smallest number of blocks with which it exports `size_bytes` (D-125).

    Raises:
        DeviceError: the device cannot have this size; the message gives the reason.
    """
    as_it_is = choice.spec(name, overrides)
    key, blocks = _blocks(name, as_it_is)

    def spec(n: int) -> Spec:
        return choice.spec(name, {**overrides, key: n})

    n = max(1, ceil(blocks * size_bytes / as_it_is.exported_bytes))
    try:
        found = spec(n)
        while found.exported_bytes < size_bytes:
            n += max(1, n * (size_bytes - found.exported_bytes) // (size_bytes * 2))
            found = spec(n)
    except DeviceError as e:
        # The message omits positions in files that come with flashtwin, which the caller has not opened.
        shipped = "|".join(map(re.escape, devices()))
        why = re.sub(rf"^(?:{shipped}):\d+:\d+: ", "", str(e), flags=re.MULTILINE)
        size = f"size {as_text(size_bytes)}"
        refused = f"{name} cannot have it with {n} blocks a plane: {why}"
        if n > blocks:
            larger = "larger pages hold more (--set geometry.page_bytes=64KiB)"
            raise DeviceError(f"{size}: {larger}: {refused}") from None
        n, found = _first_valid(spec, n, blocks)
        if found.exported_bytes < size_bytes:
            raise DeviceError(f"{size}: {refused}") from None
        fewest, least = _first_valid(spec, 1, blocks)
        if size_bytes < least.exported_bytes * (fewest - 1) // fewest:
            mib = ceil(least.exported_bytes / (1 << 20))
            raise DeviceError(
                f"{size}: the minimum is --size {mib}MiB ({fewest} blocks a plane): {refused}"
            ) from None
    while n > 1:
        try:
            fewer = spec(n - 1)
        except DeviceError:
            break
        if fewer.exported_bytes < size_bytes:
            break
        n, found = n - 1, fewer
    return found


def _blocks(name: str | Path, spec: Spec) -> tuple[str, int]:
    """Return the key for the number of blocks per plane and its value; for an array, those of its members."""
    prefix, table, _ = flash_of(name, spec, "size")
    blocks: int = table["geometry"]["blocks_per_plane"]
    return f"{prefix}geometry.blocks_per_plane", blocks


def flash_of(name: str | Path, spec: Spec, option: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the prefix of the keys of the flash, the file of an SSD, and the file of the whole device.

    The SSD is a member if the device is an array. `option` is the name of the option, for messages.
    """
    table = tomllib.loads(spec.to_toml())
    if "array" not in table:
        return "", table, table
    kinds = {kind.partition("*")[0].strip() for kind in table["array"]["members"].split(",")}
    if len(kinds) > 1:
        raise DeviceError(f"{option}: {name} has members of several kinds; give their sizes with --set")
    name_of_kind = kinds.pop()
    kind = table.get("drives", {}).get(name_of_kind) or tomllib.loads(device(name_of_kind).to_toml())
    flash = dict(kind)
    for key, value in table.get("member", {}).items():
        if value == "none":
            flash.pop(key, None)
        elif isinstance(value, dict):
            flash[key] = {**kind.get(key, {}), **value}
    return "member.", flash, table


def _first_valid(spec: Callable[[int], Spec], first: int, enough: int) -> tuple[int, Spec]:
    """Return the smallest valid number of blocks per plane that is at least `first`, and its device.

    Numbers are tried one by one, because with some translation layers valid and invalid numbers alternate.
    """
    for n in range(first, enough):
        try:
            return n, spec(n)
        except DeviceError:
            continue
    return enough, spec(enough)
