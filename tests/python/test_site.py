"""The site: every page is on it, every link is valid, and its search needs no network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import browser

pytest.importorskip("sphinx", reason="sphinx needs Python 3.11 or newer")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs",
        "-d",
        place / "cache",
        ".",
    ]
    done = subprocess.run([*build, place / "site"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "site"


def test_pages_ask_nothing_of_other_hosts(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    for page in pages:
        assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=.https?://", page.read_text()), page


def test_the_search_finds_pages_without_a_network(site, tmp_path):
    dom, _ = browser.visit(f"file://{site / 'search.html'}?q=GCaR", tmp_path)
    assert int(re.search(r"found (\d+) pages", dom)[1]) > 10
