"""Figures, links and evidence of the documentation. tests/release/test_pages.py runs its commands."""

import re
from pathlib import Path

import pytest

from pages import PAGES, ROOT, blocks, figures


def test_every_figure_is_shown_by_a_page_whose_commands_are_run():
    shown = {
        str(Path(page).parent / figure) for page in PAGES if blocks(page, "sh") for figure in figures(page)
    }
    kept = [path for kind in ("svg", "png", "pdf", "jpg") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    assert kept
    assert {str(path.relative_to(ROOT)) for path in kept} == shown


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (ROOT / page).parent.joinpath(target).exists(), target


def test_the_evidence_is_made_by_make_validate():
    table = [line for line in (ROOT / "docs/validation.md").read_text().splitlines() if line.startswith("|")]
    shown = re.findall(
        r"`((?:flashtwin|cargo|python|make) [^`]+)`", "\n".join(line.rsplit("|", 2)[1] for line in table)
    )
    rules = (ROOT / "Makefile").read_text().split("\nvalidate: $(VENV)", 1)[1].split("\n\n", 1)[0]
    run_by = [line.strip().replace("$(MAKE)", "make") for line in rules.splitlines() if line.startswith("\t")]
    assert shown
    assert sorted(shown) == sorted(run_by)
