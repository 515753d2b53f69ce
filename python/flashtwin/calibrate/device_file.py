"""The device file of a calibration. A comment at each key states how its value was determined."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._devices import Value, as_toml
from .._support.files import write_text
from .fit import Calibration
from .parameters import BY_NAME, PARAMETERS, PROTECTION, base_text

if TYPE_CHECKING or sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

#: Keys that no parameter determines directly, with the origin of their values.
_DERIVED = {
    "geometry.blocks_per_plane": "derived: the capacity",
    "gc.low_percent": "derived: two blocks a die",
    "buffer.background_depth": "derived: two rows a die",
    "nand.suspend": "chosen: fits reads beside writes better",
}
#: Meanings of the values of a key that has several values.
_JOINED = {"timing.read_us": "low, middle, high", "timing.program_us": "mean, spread"}


def write_device(found: Calibration, path: Path) -> None:
    """Write the device file. The name of the file becomes the name of the device."""
    write_text(path, device_text(found, path.stem), "the device file")


def device_text(found: Calibration, name: str) -> str:
    """Return the text of the device file. A comment on each line states how the value was determined."""
    sections: dict[str, Any] = tomllib.loads(base_text())
    keys: dict[str, tuple[Value, str]] = {}
    for section, values in sections.items():
        if isinstance(values, dict):
            keys |= {f"{section}.{key}": (value, "assumed") for key, value in values.items()}
    for key, value in found.profile.overrides().items():
        if value is None:
            keys = {each: known for each, known in keys.items() if not each.startswith(f"{key}.")}
        else:
            keys[key] = (value, provenance(found, key))
    scaled = found.profile.capacity_bytes < found.drive_bytes
    head = [
        "# Written by `flashtwin calibrate fit`. measured: from one experiment in closed form; fitted: with",
        "# its interval; assumed: no experiment identifies it.",
        *(["# The capacity is a part of the drive's; rates do not depend on that."] if scaled else []),
        f'name = "{name}"',
        'description = "Calibrated from measurements"',
    ]
    lines = head
    for section in sections:
        own = {key.partition(".")[2]: known for key, known in keys.items() if key.startswith(f"{section}.")}
        if own:
            lines += ["", f"[{section}]"]
            lines += [f"{key} = {_toml(value)}  # {text}" for key, (value, text) in own.items()]
    return "\n".join(lines) + "\n"


def provenance(found: Calibration, key: str) -> str:
    """Return a text that states how the value of a key was determined."""
    if key == PROTECTION:
        known = "protected" not in found.unknown
        return "measured: fua-depth1, flush-depth1" if known else "assumed"
    if key in _DERIVED:
        return _DERIVED[key]
    texts = [
        _of_parameter(found, each.name) for each in PARAMETERS if each.key == key and each.name in found.first
    ]
    if not texts:
        return "assumed"
    what = f"{_JOINED[key]}: " if key in _JOINED else ""
    return what + "; ".join(dict.fromkeys(texts))


def _of_parameter(found: Calibration, name: str) -> str:
    standing = found.standing(name)
    text = f"{standing}: {', '.join(BY_NAME[name].isolated_by)}"
    spread = found.spread(name)
    if standing == "fitted" and spread is not None:
        value = found.refined.values[name]
        return f"fitted: {value * math.exp(-spread):.4g} to {value * math.exp(spread):.4g}"
    if standing == "assumed":
        if spread is None:
            return f"{text} fit others as well"
        if name in found.refined.doubtful:
            return "assumed: 10 % more or less fits nearly as well, with other values elsewhere"
        return f"assumed: 10 % more changes no figure by more than {strongest(found, name)[1]:.1%}"
    return text


def strongest(found: Calibration, name: str) -> tuple[str, float]:
    """Return the figure that depends most on a parameter, and by what fraction the figure changes.

    The fraction applies to an increase of the parameter by 10 %.
    """
    sensitivities = found.refined.sensitivities[name]
    figure = max(sensitivities, key=lambda each: abs(sensitivities[each]))
    return figure, math.expm1(abs(sensitivities[figure]) * math.log(1.1))


def _toml(value: Value) -> str:
    if isinstance(value, str) and not value.startswith("["):
        return f'"{value}"'
    return as_toml(value)
