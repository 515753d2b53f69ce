"""Counters of drives: reads the bytes written by the host and to the flash from output of nvme-cli.

Known logs are those of the Open Compute Project (OCP), of Solidigm and Intel, of endurance groups, and of
flexible data placement. A file may have the output of several commands, one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FlashtwinError

#: Bytes of a data unit of the SMART log, of a unit of Intel's log, and of a unit of the endurance group log.
_DATA_UNIT = 512_000
_INTEL_UNIT = 32 << 20
_ENDURANCE_UNIT = 10**9
#: Keys of the counters in the logs, in lower case and without separators, with the bytes of a unit.
_MEDIA = {
    "physicalmediaunitswritten": 1,
    "nandbyteswritten": _INTEL_UNIT,
    "mediaunitswritten": _ENDURANCE_UNIT,
    "mediabyteswrittenmbmw": 1,
    "mediabyteswithmetadatawrittenmbmw": 1,
    "mbmw": 1,
}
_HOST = {
    "hostbyteswritten": _INTEL_UNIT,
    "hostbyteswithmetadatawrittenhbmw": 1,
    "hbmw": 1,
    "dataunitswritten": _DATA_UNIT,
}
_FREE = ("percentfreeblocks",)


@dataclass(frozen=True)
class Counters:
    """Counters of a drive at an instant.

    Attributes:
        host_bytes: bytes written by the host.
        media_bytes: bytes written to the flash.
        step_bytes: resolution of the counters; if they have different ones, the coarser one.
        free_percent: free blocks in whole percent; None if the drive does not count them.
    """

    host_bytes: int
    media_bytes: int
    step_bytes: int
    free_percent: float | None


def read_counters(path: str | Path) -> Counters:
    """Read the counters of a file.

    Raises:
        FlashtwinError: the file is not the output of nvme-cli, or a counter is missing.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise FlashtwinError(f"{path}: cannot be read: {e}") from None
    values: dict[str, Any] = {}
    for log in _logs(text, path):
        values |= _flat(log)
    media = _first(values, _MEDIA)
    if media is None:
        raise FlashtwinError(
            f"{path}: no counter of the medium; run nvme ocp smart-add-log, nvme solidigm smart-log-add, "
            "nvme endurance-log or nvme fdp stats, each with -o json"
        )
    # In the log of an endurance group, the counter of host data has the same key as in the SMART log, but
    # another unit: that of the log's media counter.
    host_units = {**_HOST, "dataunitswritten": _ENDURANCE_UNIT} if media[2] == "mediaunitswritten" else _HOST
    host = _first(values, host_units)
    if host is None:
        raise FlashtwinError(f"{path}: no counter of the host; run nvme smart-log -o json as well")
    free = next((_number(values[key]) for key in _FREE if key in values), None)
    return Counters(host[0], media[0], max(host[1], media[1]), free)


def _logs(text: str, path: str | Path) -> Iterator[Mapping[str, Any]]:
    """Return the JSON objects of a text, in order."""
    decoder = json.JSONDecoder()
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            found, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as e:
            line = text.count("\n", 0, e.pos) + 1
            raise FlashtwinError(f"{path}:{line}: no JSON: {e.msg}; run nvme-cli with -o json") from None
        if isinstance(found, dict):
            yield found


def _flat(log: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a log, including those of nested objects.

    Keys are converted to lower case, without separators.
    """
    found: dict[str, Any] = {}
    for key, value in log.items():
        name = "".join(letter for letter in key.lower() if letter.isalnum())
        if isinstance(value, Mapping) and not {"hi", "lo", "raw"} & set(value):
            found |= _flat(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    found |= _flat(item)
        else:
            found[name] = value
    return found


def _first(values: Mapping[str, Any], units: Mapping[str, int]) -> tuple[int, int, str] | None:
    """Return the value in bytes, the unit in bytes and the name of a counter.

    The counter is the first one in `units` that the log has. The result is None if the log has none of them.
    """
    for name, unit in units.items():
        number = _number(values.get(name))
        if number is not None:
            return number * unit, unit, name
    return None


def _number(value: object) -> int | None:
    """Convert a number, a pair of 64-bit halves, or a text to a whole number; None for other values."""
    if isinstance(value, Mapping):
        if "raw" in value:
            return _number(value["raw"])
        high, low = _number(value.get("hi", 0)), _number(value.get("lo", 0))
        return None if high is None or low is None else (high << 64) + low
    if isinstance(value, str):
        text = value.replace(",", "").strip()
        return int(text, 0) if text.removeprefix("0x").isalnum() and _is_number(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def _is_number(text: str) -> bool:
    try:
        int(text, 0)
    except ValueError:
        return False
    return True
