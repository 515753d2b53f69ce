"""Every command and every Python example of the documentation runs as printed.

`make test-long` runs this test, with the release build."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser import NAMES
from clients import need
from pages import PAGES, ROOT, blocks, figures

#: Tools that pages require, in addition to those that come with flashtwin.
TOOLS = {"docs/live.md": ("nbdkit", "nbdinfo", "fio", "qemu-io")}


@pytest.fixture
def place(tmp_path):
    """Create a directory that contains the paths that the documentation names."""
    for name in ("python", "tests", "devices", "experiments"):
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
    return result.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
def test_the_commands_of_a_page_run_in_order(page, place):
    need(*TOOLS.get(page, ()))
    printed = run(["bash", "-euc", "\n".join(blocks(page, "sh"))], place)
    if page == "docs/tutorial.md":
        lines = {" ".join(line.split()) for line in printed.splitlines()}
        shown = [" ".join(line.split()) for block in blocks(page, "text") for line in block.splitlines()]
        assert shown
        assert set(shown) <= lines
    for figure in figures(page):
        path = place / Path(figure).name
        if figure == "report.png" and not any(map(shutil.which, NAMES)):
            continue  # taken by a browser
        assert path.is_file(), f"no command of {page} writes {figure}"
        kept = (ROOT / page).parent / figure
        assert path.stat().st_size > 1000
        assert path.read_bytes()[:4] == kept.read_bytes()[:4]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_of_a_page_runs(page, place):
    need(*TOOLS.get(page, ()))
    for example in blocks(page, "python"):
        run([sys.executable, "-c", example], place)
