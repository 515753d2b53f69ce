"""A device file that is translated from the parameter file of another simulator.

The file has keys and values. Comments give the origin of each value, and list the parameters left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from ..errors import DeviceError


@dataclass(frozen=True)
class LeftOut:
    """A parameter without a counterpart.

    Attributes:
        name: name as in the file.
        value: value as in the file.
        why: reason for leaving it out, or its effect on the results.
    """

    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}: {self.why}"


@dataclass(frozen=True)
class Imported:
    """Translation of a parameter file of another simulator.

    Attributes:
        kind: "device" or "load".
        text: a device file, or the commands that run the loads.
        left_out: parameters without a counterpart.
    """

    kind: str
    text: str
    left_out: tuple[LeftOut, ...]


def comments(lines: list[str]) -> str:
    """Return the lines as comments."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


@dataclass
class Draft:
    """A device file that is being written.

    Attributes:
        head: the first lines of the file, as comments.
        name: name of the device.
        description: description of the device.
        left_out: parameters without a counterpart.
    """

    head: list[str]
    name: str
    description: str
    left_out: list[LeftOut] = field(default_factory=list)
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def set(self, key: str, value: str, source: str) -> None:
        """Set a dotted key. `source` describes the origin of the value."""
        section, _, name = key.partition(".")
        self._lines.setdefault(section, []).append(f"{name} = {value}  # {_line(source)}")

    def leave_out(self, name: str, value: str, why: str) -> None:
        """Record a parameter that has no counterpart."""
        self.left_out.append(LeftOut(_line(name), _line(value), why))

    def finish(self) -> Imported:
        """Return the finished device file."""
        text = comments(self.head) + f'\nname = "{self.name}"\ndescription = "{self.description}"\n'
        for section, lines in self._lines.items():
            text += f"\n[{section}]\n" + "\n".join(lines) + "\n"
        if self.left_out:
            text += "\n# Without a counterpart:\n" + comments([str(each) for each in self.left_out])
        return Imported("device", text, tuple(self.left_out))


def _line(text: str) -> str:
    """Return a text as one line, so that it stays within its comment."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text).strip()[:200]


def number(text: str, place: str, least: Decimal = Decimal(0), most: Decimal = Decimal(10**9)) -> Decimal:
    """Read a number. If the text is not a number, raise an error that begins with `place`."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("nan")
    if not (value.is_finite() and least <= value <= most):
        raise DeviceError(f"{place}: found {_line(text)!r}; must be a number from {least} to {most}")
    return value


def count(text: str, place: str, least: int = 0, most: int = 2**32 - 1) -> int:
    """Read a whole number."""
    value = number(text, place, Decimal(least), Decimal(most))
    if value != int(value):
        raise DeviceError(f"{place}: found {_line(text)!r}; must be a whole number")
    return int(value)


def plain(value: Decimal | int) -> str:
    """Format a number without an exponent, rounded to nine decimals."""
    rounded = Decimal(value).quantize(Decimal("1e-9"))
    return format(rounded.normalize(), "f") if rounded else "0"
