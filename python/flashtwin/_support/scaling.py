"""A smaller device with the same ratios, which predicts the results of a large one (docs/scaling.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._devices import Overrides, Spec, Value
from .._policies import Choice
from ..errors import DeviceError
from .sizing import flash_of
from .sizing import read as read_size

#: Keys of `[ftl]` that are numbers of blocks or map entries. Without a value, they follow from the device.
_COUNTS = (
    "cmt_entries",
    "protected_entries",
    "low_blocks",
    "log_blocks",
    "rw_log_blocks",
    "isolation_blocks",
)
#: A buffer raises a doubt if it has fewer pages than this multiple of the pages that may be written back at
#: a time.
_PAGES_PER_WRITE_BACK = 4


@dataclass(frozen=True)
class Scaled:
    """A smaller device.

    Attributes:
        spec: the smaller device.
        full: the device whose results it predicts.
        doubt: reason why response times may differ; None if none is known.
    """

    spec: Spec
    full: Spec
    doubt: str | None

    @property
    def factor(self) -> float:
        """Return the capacity of the device as a multiple of that of the smaller one."""
        return self.full.exported_bytes / self.spec.exported_bytes


def scaled(name: str | Path, factor: int, choice: Choice, overrides: Overrides, full: Spec) -> Scaled:
    """Return a device with about 1/`factor` of the blocks of `full` and the same ratios (D-234).

    Raises:
        DeviceError: the device cannot be scaled; the message gives the reason and the remedy.
    """
    prefix, flash, whole = flash_of(name, full, "scale")
    if flash.get("placement", {}).get("scheme", "off") != "off":
        raise DeviceError(f"scale: {name} writes by units (placement.scheme), which are not scaled")
    smaller = full.smaller(factor)
    if smaller is None:
        most = next((n for n in range(factor - 1, 1, -1) if full.smaller(n)), 1)
        raise DeviceError(
            f"scale {factor}: {name} would have fewer than 64 blocks in a pool (the blocks among which a "
            f"victim is chosen); the maximum is {most}. --size gives the device more blocks"
        )
    keys: dict[str, Value] = {
        prefix + key: int(value) if value.is_integer() else value for key, value in smaller
    }
    of_blocks = dict(smaller)["geometry.blocks_per_plane"] / flash["geometry"]["blocks_per_plane"]
    counts = {key: n for key in _COUNTS if (n := flash.get("ftl", {}).get(key)) is not None}
    keys |= {f"{prefix}ftl.{key}": max(min(n, 1), round(n * of_blocks)) for key, n in counts.items()}
    ratio = _checked(name, factor, choice, {**overrides, **keys}).exported_bytes / full.exported_bytes
    page_bytes = read_size(flash["geometry"]["page_bytes"])
    doubt = None
    for start, file in {prefix: flash, "": whole}.items():
        if buffer := file.get("buffer"):
            of_buffer, pages = _buffer(buffer, page_bytes, ratio)
            keys |= {start + key: n for key, n in of_buffer.items()}
            doubt = doubt or _doubt(buffer, pages)
    return Scaled(_checked(name, factor, choice, {**overrides, **keys}), full, doubt)


def _checked(name: str | Path, factor: int, choice: Choice, keys: Overrides) -> Spec:
    try:
        return choice.spec(name, keys)
    except DeviceError as e:
        raise DeviceError(
            f"scale {factor}: {name} is not possible at this scale; another one may be: {e}"
        ) from None


def _buffer(section: dict[str, Any], page_bytes: int, ratio: float) -> tuple[dict[str, Value], int]:
    """Return the keys of a smaller buffer, and its number of pages."""
    pages = max(1, round(read_size(section["capacity"]) / page_bytes * ratio))
    keys: dict[str, Value] = {"buffer.capacity": pages * page_bytes}
    cache = section.get("read_cache")
    if isinstance(cache, int):
        keys["buffer.read_cache"] = round(cache * ratio)
    return keys, pages


def _doubt(section: dict[str, Any], pages: int) -> str | None:
    depth = section["background_depth"] if section["evict"] == "background" else 0
    if pages >= depth * _PAGES_PER_WRITE_BACK:
        return None
    return (
        f"the buffer has {pages} pages, and {depth} may be written back at a time: writes wait longer for "
        "the buffer than on the device itself"
    )
