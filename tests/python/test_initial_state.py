"""The initial state of a run and its measured part: full buffer, policies' own blocks, warm-up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import flashtwin

SMALL: dict[str, Any] = {"geometry.blocks_per_plane": 64, "geometry.reserve_percent": 15}


def run(load: str, **how: Any) -> flashtwin.Result:
    how = {"device": "demo", "set": SMALL} | how
    return flashtwin.run(load, **how)


def test_a_short_run_measures_a_full_buffer() -> None:
    """1000 writes do not fill the 1024 pages of the buffer.

    Therefore the writes are slow only if the buffer was full before the run.
    """
    load = "uniform:write=1,requests={}"
    short = run(load.format(1000)).summary
    long = run(load.format(40_000), warmup_requests=30_000).summary
    assert short["throughput"]["iops"] == pytest.approx(long["throughput"]["iops"], rel=0.25)
    assert short["buffer"]["evicted_dirty_pages"] > 900
    empty = run(load.format(1000), precondition="steady:empty-buffer").summary
    assert empty["buffer"]["evictions"] == 0
    assert empty["throughput"]["iops"] > 20 * short["throughput"]["iops"]
    for fresh in ("none", "sequential"):
        assert run(load.format(1000), precondition=fresh).summary["buffer"]["evictions"] == 0


@pytest.mark.parametrize("policy", flashtwin.policies())
def test_every_policy_starts_full_and_alike(policy: str) -> None:
    load = "uniform:write=1,requests=2000"
    first = run(load, policy=policy)
    assert first.summary["buffer"]["evictions"] > 0 or first.summary["flash"]["ops"][1]["count"] > 900
    assert first.to_json() == run(load, policy=policy).to_json()


def test_a_separate_read_cache_starts_full() -> None:
    more = {"buffer.policy": "cbm", "buffer.read_cache": 512}
    warm = run("uniform:write=0,requests=600", set=SMALL | more).summary
    assert warm["buffer"]["evicted_clean_pages"] > 500


def test_an_array_and_a_policy_of_the_users_start_full() -> None:
    class Oldest(flashtwin.Policy):
        """A policy that evicts the page inserted first."""

        def __init__(self) -> None:
            self.pages: list[int] = []

        def insert(self, page: int, access: Any) -> None:
            self.pages.append(page)

        def hit(self, page: int, access: Any) -> None:
            pass

        def evict(self, incoming: Any) -> int:
            return self.pages.pop(0)

        def forget(self, page: int) -> None:
            self.pages.remove(page)

    small = {"member.geometry.blocks_per_plane": 32}
    load = "uniform:write=1,size=16k,rate=200/s,requests=50"
    array = flashtwin.run(load, "raid5-array", set=small).summary
    assert array["buffer"]["evictions"] > 40 or array["buffer_pages"] == 0
    assert array["write"]["p50_us"] > 0
    user = run("uniform:write=1,requests=300", policy=Oldest).summary
    assert user["buffer"]["evictions"] > 200


def test_a_snapshot_and_an_unknown_word(tmp_path: Any) -> None:
    path = tmp_path / "s"
    flashtwin.save_snapshot(path, "demo", set=SMALL)
    load = "uniform:write=1,requests=1000"
    plain, kept = run(load).summary, run(load, snapshot=path).summary
    assert kept["all"] == plain["all"]
    empty = run(load, snapshot=path, precondition="steady:empty-buffer").summary
    assert empty["buffer"]["evictions"] == 0
    for wrong in ("steady:empty", "none:empty-buffer"):
        with pytest.raises(flashtwin.FlashtwinError, match="empty-buffer"):
            run(load, precondition=wrong)


def test_a_policy_with_blocks_of_its_own_starts_with_them_open() -> None:
    """If all chips opened the policy's blocks at the same time, the first requests would stall (D-176)."""
    device = {
        "device": "cosmos",
        "set": {"geometry.blocks_per_plane": 64, "gc.low_percent": 0.8},
        "policy": "cda-gc",
        "pacing": flashtwin.ClosedLoop(32),
    }
    load = "zipf:theta=0.9,write=0.8,size=16k,requests={}"
    first = flashtwin.run(load.format(20_000), **device)
    later = flashtwin.run(load.format(120_000), warmup_requests=100_000, **device)
    for tail in ("p99_us", "p999_us"):
        assert first.latency[tail] < 1.5 * later.latency[tail], tail


@pytest.mark.parametrize("warmup", [500, 501, 10_000])
def test_a_warm_up_of_all_requests_is_refused(warmup: int) -> None:
    with pytest.raises(flashtwin.FlashtwinError, match=f"warm-up of {warmup} requests: the run has 500"):
        run("uniform:requests=500", warmup_requests=warmup)
    with pytest.raises(flashtwin.FlashtwinError, match="the run has 400"):
        run("uniform:requests=500", warmup_requests=450, requests_max=400)


def test_a_trace_shorter_than_the_warm_up_is_refused(tmp_path: Any) -> None:
    trace = tmp_path / "t.csv"
    lines = [f"{i},W,{4096 * i},4096" for i in range(50)]
    trace.write_text("time_us,op,offset_bytes,size_bytes\n" + "\n".join(lines) + "\n")
    with pytest.raises(flashtwin.FlashtwinError, match="the run has 50"):
        run(str(trace), warmup_requests=50)
    assert run(str(trace), warmup_requests=49).summary["counts"]["writes"]["requests"] == 1


def test_a_warm_up_until_the_run_is_steady(cli: Any) -> None:
    load = "uniform:write=1,range=16M,rate=2k/s"
    until = {"warmup_requests": 1000, "warmup_requests_max": 16_000, "requests_max": 4000}
    result = run(load, **until)
    steady = result.summary["steady"]
    assert steady["is_met"] and steady["after_requests"] in (2000, 4000, 8000, 16_000)
    assert result.summary["counts"]["writes"]["requests"] == 3000
    assert f"after {steady['after_requests'] // 1000} 000 requests" in str(result)
    # A warm-up with this fixed length gives the same results.
    after = {"warmup_requests": steady["after_requests"], "requests_max": steady["after_requests"] + 3000}
    fixed = run(load, **after).summary
    assert "steady" not in fixed
    same = {name: value for name, value in result.summary.items() if name not in ("steady", "pacing")}
    assert same == {name: value for name, value in fixed.items() if name != "pacing"}
    # The workload ends before the warm-up would be long enough. More than half of the workload is measured.
    ending = [
        "run",
        "--workload",
        f"{load},requests=3000",
        "--device",
        "demo",
        "--warmup",
        1000,
        "--warmup-max",
    ]
    short = cli(*ending, 16_000)
    assert short.returncode == 0, short.stderr
    assert "not steady after 1000 requests of warm-up: the buffer was not replaced yet" in short.stdout
    refused = cli(*ending, 999)
    assert "give a first number of 10 or more and a maximum that is not smaller" in refused.stderr


def test_wall_times_are_given_apart(cli: Any) -> None:
    load = ["--workload", "uniform:requests=3000", "--device", "demo", "--warmup", "1000"]
    text = cli("run", *load).stdout
    line = next(line for line in text.splitlines() if line.startswith("wall time"))
    assert "preconditioning" in line and "measured run" in line
    ran = cli("run", *load, "--json")
    wall_s = json.loads(ran.stderr.splitlines()[-1])["wall_s"]
    assert set(wall_s) == {"precondition", "warmup", "measured"}
    assert all(s > 0 for s in wall_s.values())
    assert "wall_s" not in json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("device", "more", "path"),
    [
        ("gcar", [], "plain front end, msr flash"),
        ("gcar", ["--timeline", "window.trace"], "general front end, any flash"),
        ("nvme-tlc", [], "general front end, any flash"),
        ("raid5-array", [], "general front end, general array"),
    ],
)
def test_path_of_a_run_is_printed(cli: Any, tmp_path: Path, device: str, more: list[str], path: str) -> None:
    load = ["--workload", "uniform:requests=100", "--device", device, "--precondition", "none"]
    more = [str(tmp_path / word) if word.endswith(".trace") else word for word in more]
    ran = cli("run", *load, *more, "--json")
    assert json.loads(ran.stderr.splitlines()[-1])["path"] == path
    assert "path" not in json.loads(ran.stdout)


def test_refused_writes_are_no_fast_writes() -> None:
    worn = {"geometry.chips": 1, "geometry.blocks_per_plane": 32, "wear.erase_limit": 3, "buffer": "none"}
    result = run(
        "uniform:write=0.9,requests=50000", set=SMALL | worn, pacing=flashtwin.ClosedLoop(4), history=True
    )
    writes = result.summary["counts"]["writes"]
    assert writes["refused"] == result.summary["requests_refused"] > 30_000
    assert result.summary["write"]["requests"] == writes["requests"] < 15_000
    assert result.summary["write"]["p50_us"] > 200


def test_size_of_a_run_is_the_least_that_holds_it(cli: Any) -> None:
    load = "uniform:requests=100"
    whole = flashtwin.run(load, precondition="none").summary["exported_bytes"]
    ran = flashtwin.run(load, size="16G", precondition="none")
    assert 16 << 30 <= ran.summary["exported_bytes"] < 17 << 30 < whole
    listed = json.loads(
        cli("run", "--workload", load, "--size", "16G", "--precondition", "none", "--json").stdout
    )
    assert listed == ran.summary
    compared = flashtwin.compare(load, ["lru", "arc"], size=16 << 30, precondition="none")
    assert {each.summary["exported_bytes"] for each in compared.results} == {ran.summary["exported_bytes"]}
    with pytest.raises(flashtwin.FlashtwinError, match="size 0: give a size above 0"):
        flashtwin.run(load, size=0)
