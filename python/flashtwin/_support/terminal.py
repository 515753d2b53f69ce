"""Tables for a terminal or a text file. All columns are shown, and no number is cut off."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TextIO

from .words import shown

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

#: Width in columns of output that does not go to a terminal. The variable COLUMNS overrides it.
_TEXT_COLUMNS = 200
#: Blanks between two columns of `box.SIMPLE_HEAD`.
_GAP = 3
#: Width in columns at which a key is wrapped, and the smallest width to which keys shrink if there is little
#: room.
_KEY, _KEY_MIN = 12, 3


def width() -> int | None:
    """Return the width of the output in columns; None if the terminal determines it."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    return None if sys.stdout.isatty() else _TEXT_COLUMNS


def console() -> Console:
    """Return a console on standard output."""
    from rich.console import Console

    return Console(file=unescaped(sys.stdout), highlight=False, markup=False, width=width())


def unescaped(stream: TextIO) -> TextIO:
    """Return the stream to which rich writes control sequences. Texts must already be escaped."""
    found: TextIO = getattr(stream, "unescaped", stream)
    return found


def as_text(tables: Sequence[RenderableType], columns: int = _TEXT_COLUMNS) -> str:
    """Render tables one below the other as text."""
    from rich.console import Console

    out = io.StringIO()
    # In a notebook, rich would otherwise display the text instead of returning it.
    plain = Console(file=out, width=columns, color_system=None, force_jupyter=False)
    for table in tables:
        plain.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


def tables(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    keys: int,
    columns: int,
    texts: Collection[int] = (),
) -> list[Table]:
    """Build tables for a terminal of the given width.

    The key columns identify a row. Columns that do not fit beside the keys are in additional tables, which
    repeat the keys. Long keys and texts are wrapped; numbers are never cut off.

    Args:
        heads: titles of the columns.
        rows: cells of the columns.
        keys: number of columns from the left that identify a row.
        columns: width of the terminal.
        texts: indices of the other columns that contain text.
    """
    from rich import box
    from rich.table import Table

    heads = [shown(head) for head in heads]
    rows = [[shown(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    widest = min(max(widths[keys:], default=0), columns // 2)
    left = (columns - widest - _GAP * (keys + 1)) // keys
    # Keys get at least half of the terminal's width together, and more if the other columns leave room.
    share = max(_KEY_MIN, columns // 2 // keys, min(_KEY, left))
    widths[:keys] = [min(width, share) for width in widths[:keys]]
    room = columns - sum(widths[:keys]) - _GAP * (keys + 1)
    for i in texts:
        widths[i] = min(widths[i], max(_KEY, room))
    found = []
    for block in blocks(widths[:keys], widths[keys:], columns):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head, width in zip(heads[:keys], widths[:keys], strict=True):
            table.add_column(head, overflow="fold", width=width)
        for i in (keys + each for each in block):
            if i in texts:
                table.add_column(heads[i], overflow="fold", width=widths[i])
            else:
                table.add_column(heads[i], justify="right", no_wrap=True, min_width=widths[i])
        for row in rows:
            table.add_row(*row[:keys], *(row[keys + i] for i in block))
        found.append(table)
    return found


def blocks(keys: Sequence[int], values: Sequence[int], columns: int) -> list[range]:
    """Group value columns into blocks. Each block fits beside the key columns, which it repeats.

    Args:
        keys: widths of the key columns.
        values: widths of the other columns.
        columns: width of the terminal.
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
