"""Formatting of numbers with four digits and a unit, and the part of errors that lists known names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches

#: Characters that control a terminal or the direction of the text beside them. Tab and newline are not
#: included.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    r"""Replace characters that control a terminal by escapes such as \x1b."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def digits(value: float) -> str:
    """Format a number with four significant digits. All digits of the whole part are kept."""
    if value == 0:
        return "0"
    for limit, places in ((9.9995, 3), (99.995, 2), (999.95, 1)):
        if value < limit:
            return f"{value:.{places}f}"
    return f"{value:.0f}"


def digits_or_dash(value: float | None) -> str:
    """Format a number, or None as a dash."""
    return "-" if value is None else digits(value)


def time(us: float) -> str:
    """Format a span of time given in microseconds."""
    for limit, factor, unit in ((0.9995, 1e3, "ns"), (999.5, 1.0, "us"), (999_500.0, 1e-3, "ms")):
        if us < limit:
            return f"{digits(us * factor)} {unit}"
    return f"{digits(us * 1e-6)} s"


def count(n: float) -> str:
    """Format a whole number with thousands separators."""
    return f"{round(n):,}".replace(",", " ")


def percent(share: float) -> str:
    """Format a share from 0 to 1."""
    return f"{share * 100:.2f} %"


_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_BYTES = {f"{prefix}B": 1000**power for prefix, power in _POWERS.items()} | {
    f"{prefix}iB": 1024**power for prefix, power in _POWERS.items() if prefix not in ("", "k")
}


def read_size(text: str) -> int | None:
    """Read a number of bytes in the form of device files, such as "32 MiB"; None for other text."""
    digits = len(text) - len(text.lstrip("0123456789"))
    factor = _BYTES.get(text[digits:].strip() or "B")
    return None if factor is None or not digits else int(text[:digits]) * factor


def read_percent(text: str) -> float | None:
    """Read a percentage such as "10%" or "0.5 %" as a fraction; None for other text."""
    number = text.strip().removesuffix("%").rstrip()
    if not text.strip().endswith("%") or not number.replace(".", "", 1).isdecimal() or not number.isascii():
        return None
    return float(number) / 100


def size(n: int) -> str:
    """Format a number of bytes in the usual binary unit."""
    value = float(n)
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if value.is_integer() else f"{digits(value)} {units[0]}"


def known_names(name: str, known: Sequence[str]) -> str:
    """Return the end of an error about an unknown name: the most similar known name, and all known names."""
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}known are {', '.join(known)}"


#: Width of descriptions for people, in columns.
_WIDTH = 96


def wrapped(text: str, first: str = "", others: str = "") -> str:
    """Break a text into lines of 96 columns.

    `first` is the prefix of the first line, `others` the prefix of all other lines.
    """
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=others)
