"""Policies: descriptions, stepping, comparison with parameters, and ranking."""

import json
from itertools import pairwise

import pytest

import flashtwin
from conftest import LOAD, SMALL
from test_cli import wrong

VECTOR = "W1 R2 W3 W4 R5 W6 R7"


def compare(policies, **options):
    return flashtwin.compare(LOAD, policies, "demo", **({"set": SMALL} | options))


# ---- in words ----


def test_every_policy_is_explained():
    for name in [*flashtwin.policies(), "min", "gcar-arc"]:
        info = flashtwin.policy_info(name)
        text = repr(info)
        assert info["name"] == name
        assert info["title"] in text
        assert info["source"]["authors"] in " ".join(text.split())
        for parameter in info["parameters"]:
            assert parameter["key"] in text
        assert all(len(line) <= 110 for line in text.splitlines() if "ev " not in line)


def test_the_filter_has_the_parameters_of_its_base_and_its_own():
    keys = {p["key"] for p in flashtwin.policy_info("gcar-cflru")["parameters"]}
    assert keys == {
        "buffer.window",
        "buffer.gc_lookahead",
        "buffer.chip_share_percent",
        "buffer.stripe_pages",
    }
    info = flashtwin.policy_info("gcar-cflru")
    assert info["base"] == "cflru"
    assert "NAME" not in repr(info)


def test_list_names_the_situation_of_each_family(cli):
    listed = cli("policy", "list").stdout
    families = {flashtwin.policy_info(name)["family"] for name in flashtwin.policies()}
    for family in families:
        assert f"{family}: where " in listed


def test_an_unknown_policy_suggests_the_nearest():
    with pytest.raises(flashtwin.DeviceError, match=r'found "lruu".*did you mean "lru"'):
        flashtwin.policy_info("lruu")


def test_policy_list_and_show(cli):
    listed = json.loads(cli("policy", "list", "--json").stdout)
    names = [entry["name"] for entry in listed]
    assert {*names} >= {"lru", "sieve", "min", "gcar-NAME"}
    text = cli("policy", "list").stdout
    assert all(name in text for name in names)
    shown = cli("policy", "show", "cflru")
    assert "buffer.window (default 0.25" in shown.stdout
    assert json.loads(cli("policy", "show", "gcar-lru", "--json").stdout)["base"] == "lru"
    wrong(cli("policy", "show", "lruu"), 'did you mean "lru"')


# ---- stepped ----


def test_a_vector_of_the_specification():
    steps = flashtwin.trace_policy("cflru", VECTOR, capacity=4, set={"window": 2})
    assert [step["op"] for step in steps] == VECTOR.split()
    assert {step["hit"] for step in steps} == {False}
    assert [step["evicted"] for step in steps][4:] == [["2c"], ["1d"], ["3d"]]
    assert [step["state"] for step in steps][3:] == [
        "4d 3d 2c 1d",
        "5c 4d 3d 1d",
        "6d 5c 4d 3d",
        "7c 6d 5c 4d",
    ]
    assert "R7  miss, ev 3d  7c 6d 5c 4d" in repr(steps).splitlines()
    assert flashtwin.trace_policy("cflru", VECTOR.split(), capacity=4, set={"buffer.window": 2}) == steps


def test_a_change_of_chip_state_is_no_access():
    steps = flashtwin.trace_policy("gcar-lru", "W1 W2 R3 W4 gc+1 W6 R8 R6", capacity=4, chips=2)
    assert [step["hit"] for step in steps] == [False, False, False, False, None, False, False, True]
    assert steps[5]["evicted"] == ["2d"]
    assert steps[4]["evicted"] == []


def test_padded_victims_show_reads_and_writes():
    steps = flashtwin.trace_policy("bplru", "W0 W5 W1 W8 W9", capacity=4, set={"padding": True})
    assert (steps[-1]["evicted"], steps[-1]["read"], steps[-1]["written"]) == (
        ["5d"],
        [4, 6, 7],
        [4, 5, 6, 7],
    )
    assert "written" not in steps[0]
    plain = flashtwin.trace_policy("bplru", "W0 W5 W1 W8 W9", capacity=4)
    assert "written" not in plain[-1]


def test_policy_trace_prints_the_same_steps(cli):
    arguments = ("policy", "trace", "cflru", "--capacity", 4, "--set", "window=2")
    steps = flashtwin.trace_policy("cflru", VECTOR, capacity=4, set={"window": 2})
    assert json.loads(cli(*arguments, VECTOR, "--json").stdout) == steps
    assert cli(*arguments, *VECTOR.split()).stdout == f"{steps!r}\n"
    on_chips = cli("policy", "trace", "fab", "--capacity", 4, "--chips", 2, "--stride", 2,
                   "--pages-per-block", 2, "--json", "W0 W1 W2 W4 W5")  # fmt: skip
    expected = flashtwin.trace_policy(
        "fab", "W0 W1 W2 W4 W5", capacity=4, chips=2, stride_pages=2, pages_per_block=2
    )
    assert json.loads(on_chips.stdout) == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("lruu", "--capacity", 4, "W1"), ['found "lruu"', 'did you mean "lru"']),
        (("cflru", "--capacity", 4, "--set", "windw=2", "W1"), ["buffer.windw", 'did you mean "window"']),
        (("lru", "--capacity", 4, "--set", "window=2", "W1"), ["buffer.window", "cflru"]),
        (("cflru", "--capacity", 4, "--set", "window=5", "W1"), ["buffer.window", "4 pages"]),
        (("lru", "--capacity", 4, "W1 W2 Q7"), ["token 3", '"Q7"']),
        (("lru", "--capacity", 4, "gc+1"), ["token 1", "chip 1 of 1"]),
        (("lru", "--capacity", 0, "W1"), ["capacity: found 0"]),
        (("lru", "--capacity", 5000, "W1"), ["capacity: found 5000", "4096"]),
        (("lru", "--capacity", 4, "--chips", -1, "W1"), ["chips: found -1"]),
        (("lru", "--capacity", 4, "--pages-per-block", 1, "W1"), ["pages_per_block"]),
        (("lru", "W1"), ["--capacity"]),
        (("min", "--capacity", 4, "W1"), ["knows the future"]),
    ],
)
def test_wrong_traces_of_policies(cli, arguments, parts):
    wrong(cli("policy", "trace", *arguments), *parts)


# ---- compared ----


def numbers(result):
    """Return a summary without the policy's name."""
    return {key: value for key, value in result.summary.items() if key != "policy"}


def test_parameters_stand_behind_a_name():
    both = compare(["lru", "cflru:window=0", "cflru-eps", "cflru:window=1.0"])
    assert both.policies == ["lru", "cflru:window=0", "cflru-eps", "cflru:window=1.0"]
    assert numbers(both["lru"]) == numbers(both["cflru:window=0"])
    assert numbers(both["cflru-eps"]) == numbers(both["cflru:window=1.0"])
    assert numbers(both["lru"]) != numbers(both["cflru-eps"])
    alone = flashtwin.run(LOAD, "demo", set=SMALL, policy="cflru:window=1.0")
    assert alone.policy == "cflru:window=1.0"
    assert alone.to_json() == both["cflru:window=1.0"].to_json()


def test_a_set_parameter_applies_to_the_policies_that_have_it():
    both = compare(["lru", "cflru", "cflru:window=0"], set=SMALL | {"buffer.window": 1.0})
    assert numbers(both["cflru"]) == numbers(compare(["cflru-eps"])["cflru-eps"])
    assert numbers(both["cflru:window=0"]) == numbers(both["lru"])
    with pytest.raises(flashtwin.DeviceError, match=r"buffer.window: has no effect here"):
        compare(["lru", "arc"], set=SMALL | {"buffer.window": 1.0})
    with pytest.raises(flashtwin.DeviceError, match=r"buffer.window: has no effect here"):
        flashtwin.run(LOAD, "demo", policy="lru", set=SMALL | {"buffer.window": 1.0})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("cflru:windw=1", "policy cflru:windw=1: cflru has no parameter windw; did you mean window"),
        ("lru:window=1", "lru has no parameter window; it has none"),
        ("lru:capacity=8MiB", "lru has no parameter capacity"),
        ("cflru:window", "give NAME:KEY=VALUE"),
        ("cflru:", "give NAME:KEY=VALUE"),
        ("cflru:window=x", "policy cflru:window=x: .*buffer.window.*found"),
        ("cflruu:window=1", 'did you mean "cflru"'),
        ("gcar-gcar-lru", "flashtwin policy list"),
        ("", "flashtwin policy list"),
    ],
)
def test_wrong_policies(policy, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.run(LOAD, "demo", policy=policy, set=SMALL)


def test_lists_of_policies():
    from flashtwin._policies import split_names

    every = ["lru", "arc", "sieve"]
    assert split_names("lru, arc,", every) == ["lru", "arc"]
    assert split_names("cbm:theta=0.2,merge=false,lru", every) == ["cbm:theta=0.2,merge=false", "lru"]
    assert split_names("all", every) == every
    assert split_names("sieve,cflru:window=1,all", every) == ["sieve", "cflru:window=1", "lru", "arc"]
    assert split_names("a=1", every) == ["a=1"]


SEVEN = ["lru", "fifo", "cflru", "gcar-lru", "sieve", "arc", "gcar-s3-fifo"]


def test_many_policies_are_ranked(cli, small_device):
    ranked = compare(SEVEN)
    lines = repr(ranked).splitlines()
    heads = ["mean response", "p99", "erases", "device write ampl.", "hit ratio"]
    assert all(lines[0].index(a) < lines[0].index(b) for a, b in pairwise(heads))
    rows = [line.split() for line in lines[2:9]]
    assert [row[0] for row in rows] == [str(i) for i in range(1, 8)]
    by_mean = sorted(ranked, key=lambda result: result.latency["mean_us"])
    assert [row[1] for row in rows] == [result.policy for result in by_mean]
    assert "by mean response" in lines[-1]
    assert "lru" in lines[-1]
    assert "gcar-s3-fifo" in ranked._repr_html_()
    assert "wait for a slot" in repr(compare(SEVEN[:6]))
    table = cli("compare", "--workload", LOAD, "--device", small_device, "--policies", ",".join(SEVEN))
    assert table.returncode == 0, table.stderr
    assert "by mean response" in table.stdout


def test_compare_runs_all_policies(cli, small_device, tmp_path):
    figure = tmp_path / "all.png"
    result = cli("compare", "--workload", "zipf:write=0.8,requests=500", "--device", small_device,
                 "--policies", "sieve,all", "--json", "--figure", figure)  # fmt: skip
    assert result.returncode == 0, result.stderr
    names = [summary["policy"] for summary in json.loads(result.stdout)["results"]]
    assert names[0] == "sieve"
    assert sorted(names) == sorted(flashtwin.policies())
    assert figure.read_bytes()[:4] == b"\x89PNG"
