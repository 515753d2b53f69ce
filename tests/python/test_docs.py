"""Figures, links and evidence of the documentation. tests/release/test_pages.py runs its commands."""

import re
import sys
from pathlib import Path

import pytest

from pages import PAGES, ROOT, blocks, figures

sys.path.insert(0, str(ROOT / "experiments"))
from validate import PAGE, RESULTS, commands


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


def test_results_of_the_evidence_are_those_of_its_commands():
    quick, slow = commands(PAGE.read_text())
    assert quick and slow
    rows = PAGE.read_text().split(RESULTS)[1].splitlines()
    results = dict(
        re.fullmatch(r"\| `(.+)` \| (.+) \|", row).groups() for row in rows if row.startswith("| `")
    )
    assert list(results) == quick, "run make validate"
    # The figures that can be compared without running the command.
    held = [line.split() for line in (ROOT / "benches" / "instructions.txt").read_text().splitlines()[1:]]
    counted = dict(re.findall(r"(\w+) (\d+)", results["cargo run --release -p flashtwin-bench held"]))
    for name, count in held:
        assert abs(int(counted[name]) / int(count) - 1) <= 0.03, "run make validate"
