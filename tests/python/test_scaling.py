"""Runs on smaller devices (docs/scaling.md)."""

from __future__ import annotations

import pytest

import flashtwin
from flashtwin import ClosedLoop, FlashtwinError, Result, TraceOptions
from flashtwin._policies import Choice
from flashtwin._support.scaling import scaled

LOAD = "uniform:write=1,requests=400k"


def _run(
    load: str, device: str, scale: int, set_keys: dict[str, str | int], policy: str | None = None
) -> Result:
    return flashtwin.run(
        load,
        device,
        scale=scale,
        set=set_keys,
        policy=policy,
        warmup_requests=100_000,
        pacing=ClosedLoop(16),
    )


def test_a_smaller_device_predicts_write_amplification_and_latency():
    small_flash = {"geometry.chips": 4, "geometry.blocks_per_plane": 512}
    full, small = (_run(LOAD, "harmonia", scale, small_flash) for scale in (1, 4))
    assert "scale" not in full.summary
    scale = small.summary["scale"]
    assert scale["factor"] == pytest.approx(4, rel=0.2)
    assert scale["full_bytes"] / scale["bytes"] == scale["factor"]
    assert small.gc_write_amplification == pytest.approx(full.gc_write_amplification, rel=0.01)
    for key in ("mean_us", "p99_us"):
        assert small.latency[key] == pytest.approx(full.latency[key], rel=0.03)
    assert "scale          1/" in repr(small)


@pytest.mark.parametrize("policy", ["lru", "cflru", "gcar-lru"])
def test_the_buffer_has_the_same_share_of_the_pages(policy: str):
    small_flash = {"geometry.chips": 4, "geometry.blocks_per_plane": 512, "buffer.capacity": "8MiB"}
    load = "zipf:theta=0.9,write=0.5,requests=400k"
    full, small = (_run(load, "ecr", scale, small_flash, policy) for scale in (1, 4))
    assert small.hit_ratio == pytest.approx(full.hit_ratio, abs=0.005)
    assert f"ranks_per_place={round(small.summary['scale']['factor'])}" in small.summary["workload"]


@pytest.mark.parametrize(
    ("device", "settings"),
    [
        ("raid5-array", {"member.geometry.chips": 2}),
        ("cbm", {}),
        ("ecr", {"ftl.kind": "dftl", "ftl.cmt_entries": 4096, "geometry.chips": 4}),
        ("ecr", {"ftl.kind": "bast", "ftl.log_blocks": 580, "geometry.chips": 4}),
    ],
)
def test_arrays_and_layers_with_logs_are_scaled(device, settings):
    small = flashtwin.run(
        "uniform:write=0.5,requests=20000", device, scale=2, set=settings, pacing=ClosedLoop(8)
    )
    assert small.summary["scale"]["factor"] == pytest.approx(2, rel=0.25)


def test_members_whose_buffer_is_removed_get_none():
    spec = scaled("gcar-array", 2, Choice.read(None), {}, flashtwin.device("gcar-array")).spec
    assert 'buffer = "none"' in spec.to_toml()
    assert spec.buffer_bytes == pytest.approx((1 << 30) / 2, rel=0.2)


def test_a_buffer_without_room_for_its_write_backs_is_reported():
    flash = {"geometry.blocks_per_plane": 512, "geometry.chips": 4, "geometry.channels": 4}
    load = "uniform:write=0.5,requests=20000"
    for capacity, is_doubtful in (("16MiB", True), ("128MiB", False)):
        keys = {**flash, "buffer.capacity": capacity}
        result = flashtwin.run(load, "nvme-tlc", scale=4, set=keys, pacing=ClosedLoop(8))
        found = [text for text in result.summary["warnings"] if text.startswith("scale: ")]
        assert bool(found) == is_doubtful
        assert ("992 may be written back" in repr(result)) == is_doubtful


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


def test_loads_and_devices_of_fixed_size_are_refused():
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
