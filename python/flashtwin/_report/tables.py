"""Tables of a report as HTML. They are readable without scripts, and can be sorted with scripts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """Text of a cell, its sort key, and a small suffix."""

    text: str
    value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        texts: number of columns from the left that contain words.
        plain: whether the table has no head and cannot be sorted.
        wrap: whether long words break into lines.
    """

    title: str
    heads: list[str]
    rows: list[list[Cell]]
    texts: int = 1
    plain: bool = False
    wrap: bool = False

    def html(self) -> str:
        """Return the table in its section."""
        heads = "".join(
            f'<th scope="col"{_words(i < self.texts)}>{escape(head)}</th>'
            for i, head in enumerate(self.heads)
        )
        head = "" if self.plain else f"<thead><tr>{heads}</tr></thead>"
        body = "".join(
            f"<tr>{''.join(self._cell(i, c) for i, c in enumerate(row))}</tr>" for row in self.rows
        )
        names = [*(["sortable"] if not self.plain else []), *(["stacks"] if self.plain or self.wrap else [])]
        kind = f' class="{" ".join(names)}"' if names else ""
        return (
            f'<section class="card"><h2>{escape(self.title)}</h2><div class="scroll">'
            f"<table{kind}>{head}<tbody>{body}</tbody></table></div></section>"
        )

    def _cell(self, column: int, cell: Cell) -> str:
        value = "" if cell.value is None else f' data-v="{cell.value!r}"'
        note = f" <small>{escape(cell.note)}</small>" if cell.note else ""
        if self.plain or column < self.texts:
            kind = ' class="text wrap"' if self.plain or self.wrap else ' class="text"'
        else:
            kind = ""
        head = f' data-head="{escape(self.heads[column])}"' if self.plain or self.wrap else ""
        return f"<td{kind}{value}{head}>{escape(cell.text)}{note}</td>"


def _words(words: bool) -> str:
    return ' class="text"' if words else ""
