"""The documentation as a site (`make site`): these pages and those at the root of the project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
#: The pages in the order of the site.
CONTENTS = {
    "Start": "tutorial guide",
    "How to": "migration calibrate sweeps scaling studies figures reports timeline live pts fio",
    "Reference": "cli python devices drives arrays policies coop ftls placement theory traces glossary",
    "Evidence": (
        "validation fuzzing mutants calibrate-fit performance leaderboard"
        " reproduction/* array-claims live-claims"
    ),
    "Project": "references decisions releasing ../ARCHITECTURE ../CONTRIBUTING ../SECURITY ../CHANGELOG",
}

project = "flashtwin"
copyright = "the flashtwin authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "target", "out", "crates", "python", "tests", "fuzz", "examples"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "flashtwin"
html_show_sphinx = False
html_copy_source = False


def _read(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add the table of contents to the first page. Replace each link to a folder by the text of the link."""
    folder = (ROOT / name).parent

    def link(match: re.Match[str]) -> str:
        return match[1] if (folder / match[2]).is_dir() else match[0]

    source[0] = re.sub(r"\[([^]]*)\]\(([^)#:]+)\)", link, source[0])
    if name == root_doc:
        for caption, pages in CONTENTS.items():
            lines = "\n".join(f"docs/{page}".removeprefix("docs/../") for page in pages.split())
            source[0] += f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n:glob:\n\n{lines}\n```\n"


def setup(app: Sphinx) -> None:
    """Register the function that modifies pages."""
    app.connect("source-read", _read)
