"""Repeated workloads and the lifetime of a drive."""

from __future__ import annotations

import json
import os

import pytest

import flashtwin
from flashtwin import ClosedLoop, FlashtwinError
from flashtwin.cli import main

LOAD = "zipf:theta=0.9,write=1,size=4k,requests=20000"
SMALL = {"geometry.blocks_per_plane": 64, "wear.rated_erases": 3000, "gc.low_percent": 4}
MSR = "128166372000000000,h,0,Write,4096,4096,100\n128166372000010000,h,0,Write,16384,8192,100\n"


def test_passes_repeat_the_workload():
    once = flashtwin.run(LOAD, "gcar", set=SMALL, pacing=ClosedLoop(8))
    thrice = flashtwin.run(LOAD, "gcar", set=SMALL, pacing=ClosedLoop(8), repeat=3)
    assert once.passes is None and thrice.passes["passes"] == 3
    written = [result.health["host_bytes_written"] for result in (once, thrice)]
    assert written[1] == 3 * written[0]
    exported = thrice.summary["exported_bytes"]
    assert thrice.passes["drive_writes"] == pytest.approx(written[1] / exported)
    assert thrice.summary["workload"].endswith("3 times")
    assert any("not level after 3 passes: fewer than six" in w for w in thrice.summary["warnings"])


def test_shifted_passes_write_elsewhere(tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text(MSR)
    options = {"set": SMALL, "precondition": "none"}
    same = flashtwin.run(trace, "gcar", repeat=50, **options)
    moved = flashtwin.run(trace, "gcar", repeat=50, repeat_shift="1M", **options)
    assert moved.summary["hits"]["ratio"] == 0 < same.summary["hits"]["ratio"]


def test_repeat_refuses_what_it_cannot(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for value in (0, -1, "often", 1.5, True, "1e3", "٣"):
        with pytest.raises(FlashtwinError, match="must be the number of passes, or until-steady"):
            flashtwin.run(LOAD, "gcar", repeat=value)
    with pytest.raises(FlashtwinError, match="needs repeat"):
        flashtwin.run(LOAD, "gcar", repeat_shift="1M")
    with pytest.raises(FlashtwinError, match="endless; add requests=N"):
        flashtwin.run("uniform:write=1", "gcar", repeat=2)
    with pytest.raises(FlashtwinError, match="a pipe can be read once only"):
        flashtwin.run(pipe, "gcar", repeat=2)
    with pytest.raises(FlashtwinError, match="size some"):
        flashtwin.run(LOAD, "gcar", repeat=2, repeat_shift="some")


def test_lifetime_compares_reserves(capsys):
    words = ["lifetime", "--workload", LOAD, "--device", "gcar", "--queue-depth", "8"]
    words += [f"--set={key}={value}" for key, value in SMALL.items()]
    assert main([*words, "--over-provisioning", "10%,28%", "--json"]) == 0
    few, many = json.loads(capsys.readouterr().out)["lifetimes"]
    assert (few["over_provisioning_percent"], many["over_provisioning_percent"]) == (10, 28)
    for row in (few, many):
        passes = row["passes"]
        assert passes["is_level"] and 1 <= passes["drive_writes"] <= 10
        amplification = passes["device_write_amplification"]
        assert passes["device_write_amplification_half_width"] <= 0.01 * amplification
        parts = sum(part["write_amplification"] for part in passes["programs_by_purpose"])
        assert parts == pytest.approx(amplification)
    programmed = [
        row["passes"]["device_write_amplification"] * row["lifetime"]["host_tb_written"]
        for row in (few, many)
    ]
    assert programmed[0] == pytest.approx(programmed[1]), "the flash takes the same bytes"
    assert few["lifetime"]["host_tb_written"] < many["lifetime"]["host_tb_written"]


def test_lifetime_is_shown_by_reserve(capsys):
    found = flashtwin.lifetime(LOAD, "gcar", set=SMALL, pacing=ClosedLoop(8), repeat=2)
    text = str(found)
    # The reserve is 15 % of all blocks, rounded to whole blocks of a plane.
    assert "over-provisioning" in text and "17.6 %" in text
    assert "warning: less than one drive write was measured" in text
    assert found.rows[0].half_width_share is None


def test_lifetime_needs_a_rating(capsys):
    with pytest.raises(FlashtwinError, match=r"wear.rated_erases is not set.*--set"):
        flashtwin.lifetime(LOAD, "gcar")
    with pytest.raises(FlashtwinError, match="is set as well; give one"):
        flashtwin.lifetime(LOAD, "nvme-tlc", [7], set={"geometry.reserve_percent": 9})
    with pytest.raises(FlashtwinError, match="host wrote nothing"):
        flashtwin.lifetime("uniform:write=0,requests=100", "gcar", set=SMALL, repeat=2)
    assert main(["lifetime", "--workload", LOAD, "--over-provisioning", "7;28"]) == 2
    assert "must be percent, as in 7%,28%" in capsys.readouterr().err


def test_short_run_marks_its_lifetime(tmp_path):
    result = flashtwin.run(LOAD, "gcar", set={"wear.rated_erases": 3000}, requests_max=1000)
    assert "the initial state decides these figures (see flashtwin lifetime)" in str(result)


@pytest.mark.parametrize("name", ["nvme-tlc", "sata-tlc", "tlc-client", "sata-dc", "qlc", "qlc-client"])
def test_drives_of_today_have_a_rating_and_follow_their_reserve(name):
    sections = flashtwin.device(name).to_toml()
    assert "rated_erases = " in sections
    for percent in (7, 28):
        spec = flashtwin.device(name, {"geometry.over_provisioning": percent})
        values = dict(line.split(" = ") for line in spec.to_toml().splitlines() if " = " in line)
        share = float(values["low_percent"]) / float(values["reserve_percent"])
        own = dict(line.split(" = ") for line in sections.splitlines() if " = " in line)
        assert share == pytest.approx(float(own["low_percent"]) / float(own["reserve_percent"]), rel=0.5)
