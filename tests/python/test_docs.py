"""Figures, links and evidence of the documentation. tests/release/test_pages.py runs its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from flashtwin.comparison import rows_of
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
    # Instruction counts on the page must agree with the recorded ones. No command is run for this.
    held = [line.split() for line in (ROOT / "benches" / "instructions.txt").read_text().splitlines()[1:]]
    counted = dict(re.findall(r"(\w+) (\d+)", results["cargo run --release -p flashtwin-bench held"]))
    for name, count in held:
        assert abs(int(counted[name]) / int(count) - 1) <= 0.03, "run make validate"


@pytest.mark.parametrize("capacity", ["4 MiB", "8 MiB"])
def test_tutorial_states_gain_and_cost_of_gcar(capacity):
    tutorial = " ".join((ROOT / "docs" / "tutorial.md").read_text().split())
    pacing = flashtwin.OpenLoop(0.1)
    both = flashtwin.compare(
        flashtwin.example_trace(),
        ["lru", "gcar-lru"],
        "demo",
        pacing=pacing,
        set={"buffer.capacity": capacity},
    )
    rows = {row.measure.label: row for row in rows_of(both.results)}
    highest = rows["p99.99"]
    before, after = (value / 1000 for value in highest.values)
    assert f"p99.99, rises from {before:.2f} to {after:.2f} ms" in tutorial.replace(
        "p99.99 rises", "p99.99, rises"
    )
    assert highest.cells[1].mark == "?"
    if capacity == "4 MiB":
        mean = rows["mean response"]
        assert (
            f"{mean.cells[0].text} 6.713 ms 1.00x? {mean.cells[1].text} {mean.cells[1].ratio:.2f}x"
            in tutorial
        )
        assert (
            f"lowers the mean response time by {1 - mean.cells[1].ratio:.0%}".replace("%", " %") in tutorial
        )


def planned(target):
    """Return the lines that `make` would run, without running them."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-n", target]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_checks_state_their_duration_and_name_their_stages():
    lines = planned("test")
    (duration,) = re.findall(r"Lints and tests: (\d+ minutes on two cores)", lines.splitlines()[0])
    (row,) = (
        line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("$ make test ")
    )
    assert row.endswith(duration)
    stages = set(re.findall(r'echo "== ([^":]+)";', lines))
    assert {"formatting of Rust", "lints of Rust", "tests of Rust", "tests of Python"} <= stages
    for stage in stages:
        assert f'echo "== {stage}: $(($(date +%s) - began)) s"' in lines
    assert "All checks passed in" in lines.splitlines()[-1]
    # If a test program fails, the next ones run nevertheless.
    assert all("--no-fail-fast" in line for line in lines.splitlines() if '"== tests of Rust"' in line)
