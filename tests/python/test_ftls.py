"""Descriptions of translation layers, and stepping them."""

import json

import pytest

import flashtwin
from conftest import LOAD, SMALL
from test_cli import wrong

# FAST-1 of the specification.
VECTOR = "0 1 2 3 4 9 13 10 17 9 14 5 18 11 15"


def test_every_translation_layer_is_explained():
    assert flashtwin.ftls() == ["dftl", "bast", "fast", "faster"]
    for name in flashtwin.ftls():
        info = flashtwin.ftl_info(name)
        text = repr(info)
        assert info["name"] == name
        assert info["source"]["authors"] in " ".join(text.split())
        assert all(parameter["key"] in text for parameter in info["parameters"])
        assert text.splitlines()[-1].startswith("total: ")


def test_ftl_list_and_show(cli):
    names = [entry["name"] for entry in json.loads(cli("ftl", "list", "--json").stdout)]
    assert names == flashtwin.ftls()
    assert all(name in cli("ftl", "list").stdout for name in names)
    shown = " ".join(cli("ftl", "show", "fast").stdout.split())
    assert "rw_log_blocks (optional; CBM: 3 % of the blocks" in shown
    assert "left out: 3 % of the blocks, less one." in shown
    assert "refinements (default true; published firmware)" in cli("ftl", "show", "faster").stdout
    assert json.loads(cli("ftl", "show", "dftl", "--json").stdout)["title"] == "DFTL"
    wrong(cli("ftl", "show", "fastest"), '"fastest"', "dftl, bast, fast, faster")


def test_a_vector_of_the_specification():
    steps = flashtwin.trace_ftl("fast", VECTOR, set={"rw_log_blocks": 2})
    assert [step["op"] for step in steps] == VECTOR.split()
    assert steps[-1]["state"] == "SW1[4 5] RW[- - - -] [15]"
    assert (steps[-1]["copies"], steps[-1]["erases"], steps[-1]["full_merges"]) == (12, 4, 3)
    some = {key: number for key, number in steps.total.items() if number}
    assert some == {"host_programs": 15, "copies": 12, "erases": 5, "switch_merges": 1, "full_merges": 3}
    assert sum(step["copies"] for step in steps) == 12
    assert flashtwin.trace_ftl("fast", VECTOR.split(), set={"rw_log_blocks": 2}) == steps


def test_ftl_trace_prints_the_same_steps(cli):
    arguments = ("ftl", "trace", "fast", "--set", "rw_log_blocks=2", "--pages-per-block", 4)
    steps = flashtwin.trace_ftl("fast", VECTOR, set={"rw_log_blocks": 2})
    assert json.loads(cli(*arguments, VECTOR, "--json").stdout) == {"steps": steps, "total": steps.total}
    assert cli(*arguments, *VECTOR.split()).stdout == f"{steps!r}\n"
    other = ("--blocks", 12, "--pages-per-block", 8, "--logical-pages", 40, "--empty", "39 R39 R0")
    total = json.loads(cli("ftl", "trace", "dftl", *other, "--json").stdout)["total"]
    assert (total["host_programs"], total["host_reads"], total["map_reads"]) == (1, 1, 0)
    assert cli("ftl", "trace", "dftl", *other[:-1], "T1").stdout.endswith("total: nothing\n")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("fastest", "1"), ['found "fastest"', "dftl, bast, fast, faster"]),
        (("fast", "--set", "log_blocks=2", "1"), ["fast has no such parameter", "rw_log_blocks"]),
        (("fast", "--set", "rw_log_blocks=9", "1"), ["needs 19", "fewer log blocks"]),
        (("dftl", "--set", "batching=2", "1"), ["batching", "true or false"]),
        (("dftl", "--blocks", 0, "1"), ["blocks: found 0"]),
        (("dftl", "--blocks", 1 << 20, "1"), ["blocks: found 1048576"]),
        (("bast", "--pages-per-block", 1, "1"), ["pages_per_block: found 1"]),
        (("bast", "0 1 Q7"), ["token 3", '"Q7"']),
        (("bast", "32"), ["page 32 of 32", "logical_pages"]),
        (("bast", "--set", "log_blocks", "1"), ["--set log_blocks", "KEY=VALUE"]),
    ],
)
def test_wrong_traces(cli, arguments, parts):
    wrong(cli("ftl", "trace", *arguments), *parts)


@pytest.mark.parametrize("name", flashtwin.ftls())
def test_a_device_runs_with_it(name):
    result = flashtwin.run(LOAD, "demo", set={**SMALL, "ftl.kind": name}, precondition="steady")
    flash = result.summary["flash"]
    count = {op["name"]: op["count"] for op in flash["ops"]}
    counted = {counter["name"]: counter["count"] for counter in flash["ftl_counters"]}
    host = count["destage"]
    more = count["gc_move"] + count["merge_copy"] + count["map_write"]
    assert result.gc_write_amplification == pytest.approx((host + more) / host)
    assert flash["pages_moved"] == count["gc_move"] + count["merge_copy"]
    if name == "dftl":
        assert count["map_read"] > 0 and counted["map_misses"] > 0 and count["merge_copy"] == 0
    else:
        assert count["merge_copy"] > 0 and counted["full_merges"] > 0 and count["map_read"] == 0
    assert "mapping" in repr(result)


def test_the_command_line_takes_it(cli):
    shown = cli("device", "show", "demo", "--set", "ftl.kind=fast").stdout
    assert 'kind = "fast"' in shown
    # 3 % of 2304 blocks are 69 log blocks, one of which is for sequential writes.
    assert "rw_log_blocks = 68" in shown and "low_percent" not in shown
    wrong(
        cli("run", LOAD, "--device", "tlc-client", "--set", "ftl.kind=faster"),
        "geometry.reserve_percent",
        "take fewer log blocks",
    )
