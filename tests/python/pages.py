"""Contents of the documentation: pages, their commands and examples, their figures."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def figures(page):
    """Names of the pictures that a page shows."""
    return re.findall(r"!\[[^]]*\]\(([^):]+\.(?:svg|png|pdf))\)", (ROOT / page).read_text())
