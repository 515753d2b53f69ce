"""The documentation site in out/site: it needs no network, and its search works from files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "out" / "site"
FETCHED = re.compile(r'<(?:script|img|link rel="(?:stylesheet|icon)")[^>]*(?:src|href)="(?:https?:)?//[^"]*"')


def test_pages_fetch_nothing_from_the_network():
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 30
    assert {page.name: found for page in pages if (found := FETCHED.findall(page.read_text()))} == {}


def test_the_search_works_from_files(tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium to look at the page with")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=8000", "--dump-dom"]
    page = f"file://{SITE / 'tutorial.html'}?q=write+amplification"
    done = subprocess.run([*command, page], capture_output=True, text=True, timeout=120, check=True)
    assert re.search(r"md-search-result__meta[^>]*>\s*\d+ matching documents", done.stdout)
