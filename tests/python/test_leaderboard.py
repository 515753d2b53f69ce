"""The leaderboard: the displayed commands reproduce its numbers, and its page can be sorted."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

import browser
from flashtwin import FlashtwinError, leaderboard
from flashtwin.leaderboard import FIGURES, page
from flashtwin.study.definition import read

#: Columns of the results, as paths in the summary of a run.
PATHS = {
    "all_mean_us": ("all", "mean_us"),
    "all_p99_us": ("all", "p99_us"),
    "all_p999_us": ("all", "p999_us"),
    "flash_erases": ("flash", "erases"),
    "flash_gc_write_amplification": ("flash", "gc_write_amplification"),
    "hits_ratio": ("hits", "ratio"),
}
SMALL = """
title = "Small"
paper = ""
about = "For a test."
claim = []
[workload.oltp]
load = "zipf:theta=0.9,write=0.8"
arrivals.steady = "rate=2k/s"
arrivals.bursts = "on_rate=50k/s,on_length=100,duty=0.04"
[workload.pgbench]
load = "example"
[matrix."steady@small"]
set."geometry.blocks_per_plane" = 64
devices = ["demo"]
workloads = ["oltp/steady"]
run.queue_depth = 8
run.precondition = "steady"
run.warmup_requests = 1000
run.requests_max = 5000
seeds = [1, 2, 3]
[matrix.bursts]
devices = ["demo"]
workloads = ["oltp/bursts", "pgbench"]
run.precondition = "sequential"
run.beyond = "wrap"
run.warmup_requests = 1000
run.requests_max = 4000
seeds = [1, 2]
"""
#: Script that clicks each column head of each table twice. It records whether the rows are then sorted, in
#: ascending and in descending order.
CLICKS = """<pre id="probe"></pre><script>
addEventListener("load", () => {
  const keys = (table, i) => [...table.tBodies[0].rows].map((row) => {
    const cell = row.cells[i];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  }).filter((key, _, all) => typeof key === typeof all[0]);
  const ordered = (keys) => keys.every((key, i) => !i || keys[i - 1] <= key || typeof key === "string");
  const found = [];
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      head.click();
      const first = keys(table, i);
      head.click();
      const second = keys(table, i);
      found.push([table.tBodies[0].rows.length, ordered(first) || ordered([...first].reverse()),
        ordered(second) || ordered([...second].reverse()), String(first) !== String(second)
          || new Set(first).size === 1]);
    });
  }
  document.getElementById("probe").textContent = JSON.stringify(found);
});
</script>"""


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Create a leaderboard of two policies on a small device."""
    place = tmp_path_factory.mktemp("leaderboard")
    (place / "small.toml").write_text(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaderboard, "definition", lambda: read(str(place / "small.toml")))
        outcome = leaderboard.board(place / "run", policies=["cflru:window=64", "gcar-lru"], threads=2)
        again = leaderboard.board(place / "run", policies=["cflru:window=64", "gcar-lru"], threads=2)
    assert outcome == again
    assert json.loads((place / "run" / leaderboard.OUTCOME).read_text()) == outcome
    page.write_html(outcome, place / "leaderboard.html")
    return place, outcome


def test_every_number_comes_again_by_the_command_of_its_row(board, tmp_path):
    _, outcome = board
    for name, arguments in {"flashtwin": "-m flashtwin.cli", "python": ""}.items():
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    rows = [row for row in outcome["rows"] if row["policy"] == "cflru:window=64"]
    assert [row["workload"] for row in rows] == ["oltp", "oltp", "pgbench"]
    for row in rows:
        for place, seed in enumerate(row["seeds"]):
            command = f"{row['command']} {seed} --json"
            done = subprocess.run(
                command, shell=True, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, done.stderr
            summary = json.loads(done.stdout)
            for figure, (part, key) in PATHS.items():
                value = summary[part][key]
                expected = 100 * value if figure == "hits_ratio" else value
                assert row["figures"][figure][place] == expected, (command, figure)


def test_the_baseline_takes_part_and_is_no_better_than_itself(board):
    _, outcome = board
    # On the drive that was filled in order, no block is erased. Therefore its ranks have no ratio of erases.
    ranks = {rank["policy"]: rank for rank in outcome["ranks"] if rank["situation"] == "steady"}
    assert list(ranks) == ["lru", "cflru:window=64", "gcar-lru"]
    cases = {(rank["device"], rank["state"], rank["situation"]) for rank in outcome["ranks"]}
    assert cases == {
        ("demo", "random steady state", "steady"),
        ("demo", "filled in order", "bursts"),
    }
    assert [ranks["lru"][figure] for figure in FIGURES] == [[1.0] * 3] * 5 + [[0.0] * 3]
    mean, low, high = ranks["gcar-lru"]["all_mean_us"]
    assert low < mean < high


def test_the_page_sorts_by_each_column(board, tmp_path):
    place, outcome = board
    text = (place / "leaderboard.html").read_text()
    head, _, tail = text.rpartition("</body>")
    (tmp_path / "clicked.html").write_text(f"{head}{CLICKS}</body>{tail}")
    dom, console = browser.visit(f"file://{tmp_path / 'clicked.html'}", tmp_path)
    assert not console
    found = json.loads(re.search(r'<pre id="probe">(\[.*?)</pre>', dom)[1])
    # There is an entry with the number of rows for each column of each table. The tables are, in order: the
    # recommendation, the ranks of both cases, the winners, and all rows.
    assert [rows for rows, *_ in found] == [2] * 6 + [3] * 14 + [3] * 7 + [len(outcome["rows"])] * 12
    assert all(first and second for _, first, second, _ in found)
    _, _, drawn, fetched = browser.look(place / "leaderboard.html", tmp_path)
    assert not fetched
    assert drawn["chart-figure-0"]


def test_markdown_has_each_policy_and_each_load(board):
    _, outcome = board
    text = page.markdown(outcome)
    assert "| gcar-lru |" in text
    assert "| demo | filled in order | bursts | pgbench |" in text
    assert "**Which to use**: up to 3 policies" in text


def test_an_unknown_variant_or_policy_is_named(tmp_path):
    with pytest.raises(FlashtwinError, match="variant: 'huge': must be quick or full"):
        leaderboard.board(tmp_path, variant="huge")
    with pytest.raises(FlashtwinError, match="nosuch"):
        leaderboard.board(tmp_path, policies=["nosuch"])
