"""The papers that policies, translation layers, devices and studies cite, read from `references.bib`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from .errors import FlashtwinError

#: The file that has all citations.
FILE: Final = Path(__file__).with_name("references.bib")
_KINDS: Final = {"article": "journal", "inproceedings": "booktitle", "techreport": "institution"}
_OPTIONAL: Final = ("volume", "number", "doi")
_BEGIN: Final = re.compile(r"@(\w+)\{([a-z]+\d{4}\w*),")
_FIELD: Final = re.compile(r"  (\w+) = \{([^{}]+)\},")


@dataclass(frozen=True)
class Reference:
    """A paper.

    Attributes:
        key: name of the entry.
        authors: separated by commas.
        title: of the paper.
        venue: conference, or journal with volume and number.
        year: of the publication.
        doi: DOI; empty if none is listed.
    """

    key: str
    authors: str
    title: str
    venue: str
    year: int
    doi: str

    def __str__(self) -> str:
        return f'{self.authors}, "{self.title}", {self.venue}, {self.year}'


@cache
def references() -> dict[str, Reference]:
    """Return all papers by key."""
    return {each.key: each for each in _read(FILE.read_text(encoding="utf-8"), FILE.name)}


def cited(text: str) -> str:
    """Return the citation of the paper with a key. Text that is not a key is returned unchanged."""
    found = references().get(text.strip())
    return text if found is None else str(found)


def _read(text: str, name: str) -> Iterator[Reference]:
    """Read the entries of a BibTeX file with one field per line, in braces and without nested braces."""
    kind, key, fields = "", "", dict[str, str]()
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        begin, field = _BEGIN.fullmatch(line), _FIELD.fullmatch(line)
        if key and line == "}":
            yield _reference(where, kind, key, fields)
            kind, key, fields = "", "", {}
        elif key and field is not None:
            if field[1] in fields:
                raise FlashtwinError(f"{where}: {field[1]}: there twice; leave one out")
            fields[field[1]] = field[2]
        elif not key and begin is not None:
            kind, key = begin[1], begin[2]
            if kind not in _KINDS:
                raise FlashtwinError(f"{where}: @{kind}: unknown; must be one of {', '.join(_KINDS)}")
            if key in seen:
                raise FlashtwinError(f"{where}: {key}: there twice; use another key")
            seen.add(key)
        elif line and (key or not line.startswith("%")):
            form = "  FIELD = {TEXT}," if key else "@KIND{KEY,"
            raise FlashtwinError(f"{where}: {line.strip()[:40]!r}: must have the form {form!r}")
    if key:
        raise FlashtwinError(f"{name}: {key}: the entry has no end; add a line with a closing brace")


def _reference(where: str, kind: str, key: str, fields: dict[str, str]) -> Reference:
    needed = ("author", "title", _KINDS[kind], "year")
    for name in needed:
        if name not in fields:
            raise FlashtwinError(f"{where}: {key}: {name} is missing; add it")
    for name in fields:
        if name not in (*needed, *_OPTIONAL):
            raise FlashtwinError(
                f"{where}: {key}: {name}: unknown; known: {', '.join((*needed, *_OPTIONAL))}"
            )
    if not fields["year"].isdigit():
        raise FlashtwinError(f"{where}: {key}: year = {fields['year']}: must be a whole number")
    venue = fields[_KINDS[kind]]
    if "volume" in fields:
        venue += f" {fields['volume']}"
    if "number" in fields:
        venue += f"({fields['number']})"
    authors = ", ".join(fields["author"].split(" and "))
    return Reference(key, authors, fields["title"], venue, int(fields["year"]), fields.get("doi", ""))


def page() -> str:
    """Return the page of the documentation that lists every paper."""
    lines = ["# References", "", "The papers that flashtwin implements or reproduces, by the keys of"]
    lines += ["[references.bib](../python/flashtwin/references.bib), from which this page is made.", ""]
    lines += ["| key | paper |", "|---|---|"]
    for each in references().values():
        doi = f" [doi:{each.doi}](https://doi.org/{each.doi})" if each.doi else ""
        lines.append(f"| `{each.key}` | {each}.{doi} |")
    return "\n".join(lines) + "\n"
