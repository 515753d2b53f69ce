"""Tables for a terminal or a text: no column is dropped and no number is cut."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: A text that is not shown on a terminal has no width to fold to, but for `COLUMNS`.
_TEXT_COLUMNS = 200
#: Blanks between two columns of `box.SIMPLE_HEAD`.
_GAP = 3


def width() -> int | None:
    """Columns to print to; None leaves it to the terminal."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    return None if sys.stdout.isatty() else _TEXT_COLUMNS


def console() -> Console:
    """Console on standard output."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=width())


def as_text(tables: Sequence[RenderableType], columns: int = _TEXT_COLUMNS) -> str:
    """Render tables one below the other as text."""
    from rich.console import Console

    out = io.StringIO()
    # In a notebook rich would display what it is to write into a text.
    plain = Console(file=out, width=columns, color_system=None, force_jupyter=False)
    for table in tables:
        plain.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


def blocks(keys: Sequence[int], values: Sequence[int], columns: int) -> list[range]:
    """Group value columns into blocks that fit beside the key columns, which each block repeats.

    Args:
        keys: widths of the key columns.
        values: widths of the others.
        columns: columns of the terminal.
    """
    room = columns - sum(keys) - _GAP * len(keys)
    found: list[range] = []
    begin = used = 0
    for i, cell in enumerate(values):
        if i > begin and used + cell + _GAP > room:
            found.append(range(begin, i))
            begin, used = i, 0
        used += cell + _GAP
    return [*found, range(begin, len(values))]
