"""Explanations of requests and of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import flashtwin
from conftest import SMALL
from flashtwin._explain.limits import Variant, summarised, variants
from flashtwin._explain.request import CAUSES
from flashtwin._support.tables import PARTS
from flashtwin.cli import main

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
LOAD = "zipf:theta=0.9,write=0.8,rate=2k/s,requests=1500"


def explain(request: int | str, **options: Any) -> list[flashtwin.RequestExplanation]:
    return flashtwin.explain_request(LOAD, "demo", request, **{"set": SMALL, **options})


def test_guide_lists_the_parts_with_their_descriptions():
    rows = [f"| `{part}` | {text[0].lower()}{text[1:].removesuffix('.')} |" for part, text in PARTS.items()]
    assert "\n".join(rows) in GUIDE.read_text()


def test_every_part_has_one_cause():
    assert sorted(part for parts in CAUSES.values() for part in parts) == sorted(PARTS)


def test_slowest_requests_come_first_and_are_explained_from_arrival_to_completion():
    log = flashtwin.run(LOAD, "demo", set=SMALL, log=True).requests.to_pylist()
    slowest = sorted(log, key=lambda row: (-row["response_ps"], row["request"]))[:3]
    found = explain("slowest:3")
    assert [each.request for each in found] == slowest
    for each in found:
        response = each.request["response_ps"]
        assert each.recorded_ps == 0
        assert sum(each.parts_ps.values()) == response
        assert each.steps[0].begin_ps == 0 and each.steps[-1].end_ps == response
        assert all(0 <= step.begin_ps <= step.end_ps <= response for step in each.steps)
        assert str(each.request["request"]) in each.cause
        assert max(each.dies[each.die].values()) <= 1
    assert explain(slowest[1]["request"])[0].to_json() == found[1].to_json()


def test_request_behind_a_collection_names_die_and_collection():
    log = flashtwin.run(LOAD, "demo", set=SMALL, log=True).requests.to_pylist()
    row = max(log, key=lambda row: row["slot_queue_gc_ps"] + row["queue_gc_ps"])
    gc_ps = row["slot_queue_gc_ps"] + row["queue_gc_ps"]
    assert gc_ps > row["response_ps"] / 2
    (found,) = explain(row["request"])
    assert re.search(r"for garbage collection on die \d", found.cause), found.cause
    collected = [step for step in found.steps if "garbage collection" in step.what]
    assert found.die in {step.where for step in collected}
    assert sum(step.end_ps - step.begin_ps for step in collected) == gc_ps
    assert any(work.kind == "garbage collection" for work in found.work)


def test_slow_write_of_the_tutorial_waits_for_a_collection():
    """Request 2176 of the tutorial's run with LRU is a write of 512 KiB whose last page waits for a slot.

    The expected values are those of the request log."""
    trace, pace = "example:postgres_pgbench", flashtwin.OpenLoop(0.1)
    run = {"pacing": pace, "requests_max": 2500, "policy": "lru"}
    (found,) = flashtwin.explain_request(trace, "demo", 2176, **run)
    assert found.cause == (
        "request 2176 (write of 512 KiB at 1819803648) took 166.4 ms: 83.94 ms (50.43 %) for garbage "
        "collection on die 5, before the write-back that freed its buffer slot"
    )
    result = flashtwin.run(trace, "demo", log=True, **run)
    (row,) = (row for row in result.requests.to_pylist() if row["request"] == 2176)
    assert (row["op"], row["size_bytes"], row["offset_bytes"]) == ("write", 512 << 10, 1819803648)
    assert row["response_ps"] == found.request["response_ps"]
    assert round(row["response_ps"] / 1e9, 1) == 166.4
    assert round(row["slot_queue_gc_ps"] / 1e9, 2) == 83.94
    assert found.die == "die 5"


def test_limit_of_write_backs_is_named():
    background = {"buffer.evict": "background", "buffer.background_depth": 2}
    (found,) = explain("slowest", set={**SMALL, **background})
    assert "at the limit of 2 write-backs (buffer.background_depth)" in found.cause, found.cause
    assert any(
        "2 or more write-backs in flight at its end (limit: buffer.background_depth = 2)" in s.what
        for s in found.steps
    )


def test_request_in_the_device_at_a_time():
    log = flashtwin.run(LOAD, "demo", set=SMALL, log=True).requests.to_pylist()
    slowest = max(log, key=lambda row: row["response_ps"])
    start = explain(0)[0]
    assert start.request["request"] == 0
    us = (slowest["arrival_ps"] + slowest["response_ps"] // 2) / 1e6
    assert explain(f"{us}us")[0].request == slowest


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("fastest", "give a number of the request log, slowest, slowest:N, or a time such as 12.5s"),
        ("slowest:0", "give a number of the request log"),
        (1500, "request 1500: not among the measured ones, numbered from 0 to 1 499"),
        ("99s", "no request was in the device then; the last one completed at "),
    ],
)
def test_requests_that_are_not_there(request_: int | str, message: str):
    with pytest.raises(flashtwin.FlashtwinError, match=re.escape(message)):
        explain(request_)


def test_command_prints_the_cause_first_and_draws(tmp_path, capsys):
    figure = tmp_path / "request.svg"
    keys = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    arguments = ["explain", "--workload", LOAD, "--device", "demo", *keys, "--request", "slowest"]
    assert main([*arguments, "--figure", str(figure)]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == explain("slowest")[0].cause
    assert figure.read_text().startswith("<?xml")
    assert main([*arguments, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert sum(found["parts_ps"].values()) == found["request"]["response_ps"]


def test_run_is_explained_by_twice_of_each_resource():
    load = LOAD.replace("1500", "800")
    found = flashtwin.explain_run(load, "demo", seeds=2, set=SMALL)
    assert sum(found.shares.values()) == pytest.approx(1)
    names = {effect.variant.name: effect for effect in found.effects}
    assert set(names) == {"buffer x 2", "reserve x 2", "dies x 2", "link x 2"}
    twice = names["buffer x 2"]
    runs = [
        [
            flashtwin.run(load, "demo", seed=seed, set={**SMALL, **keys}).summary["all"]["mean_us"]
            for seed in (1, 2)
        ]
        for keys in ({}, twice.variant.set)
    ]
    product = (runs[1][0] / runs[0][0]) * (runs[1][1] / runs[0][1])
    assert twice.ratios["mean_us"].value == pytest.approx(product**0.5)
    assert found.cause in str(found)


@pytest.mark.parametrize(
    ("means", "helps"),
    [([80.0, 81.0], "most helps: buffer x 2 (0.805x)"), ([80.0, 120.0], "none of the changes below helps")],
)
def test_only_a_significant_change_is_named_as_help(means, helps):
    def summary(mean_us: float) -> dict[str, Any]:
        times = {"mean_us": mean_us, "p99_us": mean_us, "p999_us": mean_us}
        return {"all": {**times, "parts_us": {part: mean_us / len(PARTS) for part in PARTS}}}

    runs = [summary(mean) for mean in means]
    of_buffer = (Variant("buffer x 2", {}), runs, None)
    found = summarised([summary(100.0)] * 2, [of_buffer], [1, 2])
    assert helps in found.cause


def test_variants_keep_the_capacity():
    device = flashtwin.device("nvme-tlc")
    of = {
        variant.name: flashtwin.device("nvme-tlc", variant.set)
        for variant in variants(
            {
                "link": {"kind": "pcie", "pcie_lanes": 4},
                "buffer": {"evict": "background", "background_depth": 992},
                "geometry": {"chips": 64, "blocks_per_plane": 128, "reserve_percent": 35.0},
            },
            device.buffer_bytes,
        )
    }
    hidden = device.raw_bytes - device.exported_bytes
    assert {each.exported_bytes for each in of.values()} == {device.exported_bytes}
    more = of["reserve x 2"]
    assert more.raw_bytes - more.exported_bytes == 2 * hidden
    assert of["dies x 2"].chips == 2 * device.chips
    assert of["buffer x 2"].buffer_bytes == 2 * device.buffer_bytes
    assert "pcie_lanes = 8\n" in of["link x 2"].to_toml()


@pytest.mark.parametrize(
    ("link", "doubled"),
    [
        ({"kind": "pcie", "pcie_lanes": 8}, {"link.pcie_lanes": 16}),
        ({"kind": "pcie", "pcie_lanes": 16}, None),
        ({"kind": "reference", "bus_ns_per_sector": 238.4}, {"link.bus_ns_per_sector": 119.2}),
        ({"kind": "reference", "bus_ns_per_sector": 0}, None),
        ({"kind": "sata"}, None),
    ],
)
def test_link_is_doubled_where_that_is_possible(link, doubled):
    found = {each.name: each.set for each in variants({"link": link}, None)}
    assert found.get("link x 2") == doubled
