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
    assert set(names) == {"buffer x 2", "reserve x 2", "dies x 2"}
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
