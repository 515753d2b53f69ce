"""Devices: the profiles that come with flashtwin, and the TOML files that a user writes (docs/devices.md)."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from . import _core
from ._support import words
from ._support.inputs import exists, read_text
from .errors import DeviceError, FlashtwinError

#: Value of an override: a value that fits on one line of TOML. None removes the key or the section.
Value: TypeAlias = "str | int | float | bool | None"
#: Dotted keys and their values, as in {"buffer.capacity": "8 MiB"}.
Overrides: TypeAlias = Mapping[str, Value]

Spec = _core.Spec

#: Default device: a current drive.
DEFAULT_DEVICE = "nvme-tlc"


def devices() -> list[str]:
    """Return the names of the devices that come with flashtwin."""
    return _core.device_names()


def device(name: str | Path, overrides: Overrides | None = None, policy: str | None = None) -> Spec:
    """Read and check a device.

    Args:
        name: one of `devices()`, or the path of a TOML file.
        overrides: keys to set before the device is checked, as `--set` does.
        policy: the buffer's policy, short for `{"buffer.policy": policy}`.

    Raises:
        DeviceError: the device file or an override is wrong; the message gives file, line, key and remedy.
    """
    text, origin = _read(name)
    settings = [(key, as_toml(value)) for key, value in (overrides or {}).items()]
    if policy is not None:
        settings.append(("buffer.policy", policy))
    return _core.Spec.parse(text, origin, settings, partial(_read_member, Path(origin).parent))


def _read_member(folder: Path, path: str, by_override: bool) -> tuple[str, str]:
    """Read the device file of an array's member.

    A path in the array's file is relative to that file. A path in an override is used as it is.
    """
    file = Path(path) if by_override else folder / path
    return str(file), read_text(file, "device file")


def _read(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    is_name = isinstance(name, str) and path.name == name and path.suffix != ".toml"
    if is_name and name not in devices() and not exists(path):
        known = words.known_names(str(name), devices())
        raise DeviceError(f"no device is called {name!r}; {known}; or give a TOML file")
    if is_name and (name in devices() or not exists(path)):
        return _core.Spec.builtin_text(str(name)), str(name)
    try:
        return read_text(path, "device file"), str(path)
    except FlashtwinError as e:
        raise DeviceError(str(e)) from e


def as_toml(value: Value) -> str:
    """Format a value as in an override."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _from_toml(text: str) -> Spec:
    return _core.Spec.parse(text, "pickled device", [])


def _reduce(spec: Spec) -> tuple[Callable[[str], Spec], tuple[str]]:
    return _from_toml, (spec.to_toml(),)


# Executors of sweeps pickle a device to pass it to another process.
copyreg.pickle(Spec, _reduce)
