"""Tables of a report as HTML, which are readable without scripts.

With scripts, a `Table` can be sorted, and the cells of a `HeatTable` open a panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, the key by which it is sorted, and a suffix in small print."""

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


@dataclass(frozen=True)
class HeatCell:
    """Cell of a heat table: a button. A click on it calls the page's script.

    Attributes:
        number: index of the cell in the data of the page.
        text: text of the cell.
        step: step of the colour scale, from 0 to `HEAT_STEPS` - 1; None for no colour.
        marked: whether the cell has a mark, which the page explains.
    """

    number: int
    text: str
    step: int | None
    marked: bool = False


#: Number of colours of heat tables in page.css.
HEAT_STEPS = 5


@dataclass(frozen=True)
class HeatTable:
    """A table whose cells have colours and can be clicked.

    Attributes:
        title: title of the table.
        note: meaning of the columns.
        heads: heads of the columns.
        groups: rows, by group and by row; both have heads. A group takes one line if its only row has an
            empty head.
        folded: whether the table is collapsed until the reader clicks it.
    """

    title: str
    note: str
    heads: Sequence[str]
    groups: Mapping[str, Mapping[str, Sequence[HeatCell | None]]]
    folded: bool = False

    def html(self) -> str:
        """Return the table in its section."""
        tall = ' class="tall"' if max(map(len, self.heads)) > _HEAD_MAX else ""
        heads = "".join(f'<th scope="col"><span>{escape(head)}</span></th>' for head in self.heads)
        body = "".join(self._group(head, rows) for head, rows in self.groups.items())
        title = f"<h2>{escape(self.title)}</h2>"
        table = (
            f'<p class="note">{escape(self.note)}</p><div class="scroll"><table class="heat">'
            f"<thead><tr{tall}><td></td>{heads}</tr></thead>{body}</table></div>"
        )
        if self.folded:
            return f'<section class="card"><details><summary>{title}</summary>{table}</details></section>'
        return f'<section class="card">{title}{table}</section>'

    def _group(self, head: str, rows: Mapping[str, Sequence[HeatCell | None]]) -> str:
        if list(rows) == [""]:
            return f"<tbody>{self._row(head, rows[''], long=True)}</tbody>"
        span = len(self.heads) + 1
        title = (
            f'<tr class="group"><th colspan="{span}" scope="colgroup"><span>{escape(head)}</span></th></tr>'
        )
        return f"<tbody>{title}{''.join(self._row(name, cells) for name, cells in rows.items())}</tbody>"

    def _row(self, head: str, cells: Sequence[HeatCell | None], *, long: bool = False) -> str:
        kind = ' class="long"' if long else ""
        return f'<tr><th scope="row"{kind}>{escape(head)}</th>{"".join(map(_heat, cells))}</tr>'


#: Heads with more characters are written upwards.
_HEAD_MAX = 6


def _heat(cell: HeatCell | None) -> str:
    if cell is None:
        return "<td></td>"
    names = [*([f"heat-{cell.step}"] if cell.step is not None else []), *(["marked"] if cell.marked else [])]
    kind = f' class="{" ".join(names)}"' if names else ""
    mark = "<sup>f</sup>" if cell.marked else ""
    return (
        f'<td{kind}><button type="button" data-cell="{cell.number}">{escape(cell.text)}{mark}</button></td>'
    )


def _words(words: bool) -> str:
    return ' class="text"' if words else ""
