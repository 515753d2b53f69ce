"""Every command and every Python example of the documentation runs as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser import NAMES
from clients import need

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]

#: Tools that pages ask for, beside those that come with flashtwin.
TOOLS = {"docs/live.md": ("nbdkit", "nbdinfo", "fio", "qemu-io")}


def blocks(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def figures(page):
    """Names of the pictures that a page shows."""
    return re.findall(r"!\[[^]]*\]\(([^):]+\.(?:svg|png|pdf))\)", (ROOT / page).read_text())


@pytest.fixture
def place(tmp_path):
    """A directory in which the paths that the documentation names exist."""
    for name in ("python", "tests", "devices", "studies"):
        (tmp_path / name).symlink_to(ROOT / name)
    bin_dir = tmp_path / ".bin"
    bin_dir.mkdir()
    command = bin_dir / "flashtwin"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flashtwin.cli "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(command, place):
    path = f"{place / '.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    result = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
def test_the_commands_of_a_page_run_in_order(page, place):
    need(*TOOLS.get(page, ()))
    run(["bash", "-euc", "\n".join(blocks(page, "sh"))], place)
    for figure in figures(page):
        path = place / Path(figure).name
        if figure == "report.png" and not any(map(shutil.which, NAMES)):
            continue  # taken by a browser
        assert path.is_file(), f"no command of {page} writes {figure}"
        kept = (ROOT / page).parent / figure
        assert path.stat().st_size > 1000
        assert path.read_bytes()[:4] == kept.read_bytes()[:4]


def test_every_figure_is_shown_by_a_page_whose_commands_are_run():
    shown = {
        str(Path(page).parent / figure) for page in PAGES if blocks(page, "sh") for figure in figures(page)
    }
    kept = [path for kind in ("svg", "png", "pdf", "jpg") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    assert kept
    assert {str(path.relative_to(ROOT)) for path in kept} == shown


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_of_a_page_runs(page, place):
    need(*TOOLS.get(page, ()))
    for example in blocks(page, "python"):
        run([sys.executable, "-c", example], place)


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
