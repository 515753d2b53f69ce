"""Runs on smaller devices (docs/scaling.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

import flashtwin
from flashtwin import ClosedLoop, FlashtwinError, Result, TraceOptions

LOAD = "uniform:write=1,requests=400k"


def _run(load: str = LOAD, device: str = "harmonia", scale: int = 1, **options: object) -> Result:
    return flashtwin.run(
        load,
        device,
        scale=scale,
        warmup_requests=100_000,
        pacing=ClosedLoop(16),
        **options,  # type: ignore[arg-type]
    )


def test_a_smaller_device_predicts_write_amplification_and_latency():
    small_flash = {"geometry.chips": 4, "geometry.blocks_per_plane": 512}
    full, small = (_run(set=small_flash, scale=scale) for scale in (1, 4))
    assert "scale" not in full.summary
    scale = small.summary["scale"]
    assert scale["factor"] == pytest.approx(4, rel=0.2)
    assert scale["full_bytes"] / scale["bytes"] == scale["factor"]
    assert small.gc_write_amplification == pytest.approx(full.gc_write_amplification, rel=0.01)
    for key in ("mean_us", "p50_us", "p99_us"):
        assert small.latency[key] == pytest.approx(full.latency[key], rel=0.03)
    assert "scale          1/" in repr(small)


@pytest.mark.parametrize("policy", ["lru", "cflru", "gcar-lru"])
def test_the_buffer_has_the_same_share_of_the_pages(policy: str):
    small_flash = {"geometry.chips": 4, "geometry.blocks_per_plane": 512, "buffer.capacity": "8MiB"}
    load = "zipf:theta=0.9,write=0.5,requests=400k"
    full, small = (_run(load, "ecr", scale, set=small_flash, policy=policy) for scale in (1, 4))
    assert small.hit_ratio == pytest.approx(full.hit_ratio, abs=0.005)
    assert f"ranks_per_place={round(small.summary['scale']['factor'])}" in small.summary["workload"]


def test_arrays_and_layers_with_logs_are_scaled():
    for device, settings in (
        ("raid5-array", {"member.geometry.chips": 2}),
        ("cbm", {}),
        ("ecr", {"ftl.kind": "dftl", "ftl.cmt_entries": 4096, "geometry.chips": 4}),
    ):
        small = flashtwin.run(
            "uniform:write=0.5,requests=20000", device, scale=2, set=settings, pacing=ClosedLoop(8)
        )
        assert small.summary["scale"]["factor"] == pytest.approx(2, rel=0.25), device


def test_a_trace_is_sampled():
    options = TraceOptions(addresses="compact")
    full, small = (
        flashtwin.run("example:postgres_pgbench", "sata-dc", scale=scale, trace_options=options)
        for scale in (1, 4)
    )
    share = small.summary["all"]["requests"] / full.summary["all"]["requests"]
    assert share == pytest.approx(1 / small.summary["scale"]["factor"], rel=0.2)
    assert small.hit_ratio == pytest.approx(full.hit_ratio, abs=0.03)
    assert "sample of 1/4" in repr(small)


def test_loads_and_devices_of_fixed_size_are_refused(tmp_path: Path):
    for device, load, message in (
        ("nvme-tlc", LOAD, "the maximum is 2"),
        ("nvme-fdp", LOAD, "writes by units"),
        ("ecr", "stack:distances=1+1,requests=10", "the pattern stack"),
        ("ecr", "zipf:fio=true,theta=0.9,requests=10", "fio=true"),
    ):
        with pytest.raises(FlashtwinError, match=message):
            flashtwin.run(load, device, scale=4)
    with pytest.raises(FlashtwinError, match="scale"):
        flashtwin.run(LOAD, "ecr", scale=0)
