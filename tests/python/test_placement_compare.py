"""Placement schemes and victim rules side by side."""

import json

import pytest

import flashtwin
from test_cli import wrong
from test_placement_timed import PARTS, SMALL

LOAD = PARTS.format(1, 2).replace("60000", "20000")
OPTIONS = {
    "device": "nvme-fdp",
    "set": SMALL,
    "precondition": "load:1",
    "pacing": flashtwin.ClosedLoop(32),
}


class ByHandle(flashtwin.Placement):
    """A scheme in Python that equals the included scheme `handle` with four handles."""

    classes = 4

    def host(self, page):
        return page.handle


class Greedy(flashtwin.Victim):
    """A rule in Python that equals the included rule `greedy`."""

    def choose(self, pool):
        return min(pool.units, key=lambda unit: (unit.valid, -unit.age), default=None)


def compare(**more):
    return flashtwin.compare(LOAD, **OPTIONS, **more)


def figures(result):
    """Return the summary without the logs and without the names of scheme and rule.

    Events in the logs have handles only if the classes of the scheme are handles.
    """
    summary = json.loads(result.to_json())
    for name in ("logs", "scheme", "victim"):
        del summary["placement"][name]
    return summary


def test_every_scheme_runs_with_every_rule():
    runs = compare(placements=["none", "handle", ByHandle], victims=["greedy", Greedy], threads=2)
    schemes, rules = ("none", "handle", "ByHandle"), ("greedy", "Greedy")
    assert runs.labels == [f"{scheme}, {rule}" for scheme in schemes for rule in rules]
    for label, result in runs.items():
        placed = result.summary["placement"]
        assert f"{placed['scheme']}, {placed['victim']}" == label
    shipped = runs["handle, greedy"]
    for label in ("handle, Greedy", "ByHandle, greedy", "ByHandle, Greedy"):
        assert figures(runs[label]) == figures(shipped), label
    assert figures(runs["none, greedy"]) != figures(shipped)


def test_a_run_is_as_it_would_be_alone():
    runs = compare(placements=["none", "handle"])
    alone = flashtwin.run(LOAD, **OPTIONS, placement="handle", history=True)
    assert runs["handle"].to_json() == alone.to_json()
    assert "handle" in repr(runs)
    assert runs.table["label"].to_pylist() == ["none", "handle"]


def test_labels_name_what_differs():
    both = compare(policies=["lru", "fifo"], placements=["none"])
    assert both.labels == ["lru", "fifo"]
    assert compare(victims=["greedy", "fifo"]).labels == ["greedy", "fifo"]
    crossed = compare(policies=["lru", "fifo"], placements=["none", "handle"], threads=2)
    assert crossed.labels == ["none, lru", "none, fifo", "handle, lru", "handle, fifo"]


def test_a_report_shows_owners_over_time(tmp_path):
    runs = compare(placements=["none", "handle"])
    page = tmp_path / "page.html"
    flashtwin.report(list(runs), page)
    text = page.read_text()
    data = json.loads(text.split('<script id="data" type="application/json">')[1].split("</script>")[0])
    assert [run["label"] for run in data["runs"]] == ["none", "handle"]
    for run, result in zip(data["runs"], runs, strict=True):
        over_time = run["history"]["owners"]
        placed = {owner["name"]: owner for owner in result.summary["placement"]["owners"]}
        assert set(over_time) == set(placed)
        for name, owner in placed.items():
            assert over_time[name]["live"][-1] == owner["live_pages"]
            assert over_time[name]["units"][-1] == owner["units"]
        windows = result.history.to_pylist()
        for key in ("host_pages", "moved_in_pages", "moved_out_pages"):
            sums = dict.fromkeys(placed, 0)
            for window in windows:
                for owner in window["owners"] or ():
                    sums[owner["name"]] += owner[key]
            assert sums == {name: owner[key] for name, owner in placed.items()}, key
        collected = sum(sum(owner["live_at_collection"]) for owner in placed.values())
        assert collected >= sum(owner["erases"] for owner in placed.values()) - 8
    assert "Units by owner: handle (handle; greedy among global)" in text
    assert "Pages moved while a page of a class needed room, by owner: handle" in text


class Mine(flashtwin.Policy):
    """A policy that is never asked."""

    def hit(self, access):
        """Do nothing."""

    insert = evict = forget = hit


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "compare: give policies, placements or victims"),
        ({"placements": ["none", "none"]}, "compare: none is named twice"),
        ({"placements": ["nonsense"]}, "nonsense"),
        (
            {"placements": ["none"], "device": "demo", "set": None},
            r"placement\.scheme",
        ),
        (
            {"policies": [Mine, "lru"], "placements": [ByHandle]},
            "policy: a run takes a policy or placement rules of your own, not both",
        ),
    ],
)
def test_errors(more, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.compare(LOAD, **{**OPTIONS, **more})


def test_on_the_command_line(cli, tmp_path):
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import flashtwin\n\n\nclass Second(flashtwin.Placement):\n    classes = 4\n\n"
        "    def host(self, page):\n        return page.handle\n"
    )
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    arguments = ["compare", LOAD, "--device", "nvme-fdp", *settings, "--queue-depth", "32"]
    arguments += ["--precondition", "load:1"]
    found = cli(*arguments, "--placements", f"handle,{rules}:Second", "--json")
    first, second = json.loads(found.stdout)["results"]
    assert (first["placement"]["scheme"], second["placement"]["scheme"]) == ("handle", "Second")
    assert first["all"] == second["all"]
    wrong(cli(*arguments, "--placements", "none,none"), "none is named twice")
