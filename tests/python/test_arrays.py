"""Arrays from Python and the command line."""

from __future__ import annotations

import itertools
import json
import runpy
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flashtwin
from clients import need
from flashtwin import cli
from flashtwin._support import watch

SMALL = {"member.geometry.chips": 4, "member.geometry.blocks_per_plane": 64, "buffer.capacity": "1 MiB"}
LOAD = "uniform:write=0.7,size=16k,rate=2k/s,requests=500"
SCRIPT = Path(__file__).parents[2] / "experiments" / "arrays.py"


def test_an_array_reports_its_members() -> None:
    result = flashtwin.run(LOAD, device="raid5-array", set=SMALL)
    array = result.summary["array"]
    assert (array["level"], array["coordination"], len(array["members"])) == ("raid5", "local", 8)
    assert array["parity_pages_written"] > 0
    erases = sum(member["flash"]["erases"] for member in array["members"])
    assert erases == result.summary["flash"]["erases"]
    assert "raid5 of 8" in str(result)


def test_policies_are_compared_on_one_array() -> None:
    compared = flashtwin.compare(LOAD, ["lru", "gcar-lru"], device="raid5-array", set=SMALL, threads=2)
    alone = flashtwin.run(LOAD, device="raid5-array", set=SMALL | {"buffer.policy": "gcar-lru"})
    assert compared.results[1].summary == alone.summary


def test_the_same_array_gives_the_same_bytes() -> None:
    first, second = (flashtwin.run(LOAD, device="raid5-array", set=SMALL).to_json() for _ in range(2))
    assert first == second


def test_members_on_several_threads_change_no_result() -> None:
    load = "uniform:write=0.7,size=16k,rate=2k/s,requests=3000"
    alone, together = (
        flashtwin.run(load, device="harmonia-array", set={"member.geometry.chips": 4}, threads=threads)
        for threads in (1, 3)
    )
    assert alone.to_json() == together.to_json()
    with pytest.raises(flashtwin.FlashtwinError, match="threads: 0: give a whole number from 1 to 1024"):
        flashtwin.run(load, device="harmonia-array", threads=0)


def drive_file(path: Path) -> Path:
    """Write the file of a drive that differs from every profile."""
    changes = {"name": "mine", "geometry.chips": 4, "geometry.blocks_per_plane": 64, "gc.low_percent": 7}
    path.write_text(flashtwin.device("harmonia", changes).to_toml())
    return path


def test_members_are_device_files_beside_the_array(tmp_path, monkeypatch, cli) -> None:
    """An array of five drives from a file equals one of the drive's profile with the settings of the file."""
    (tmp_path / "arrays").mkdir()
    drive = drive_file(tmp_path / "mine.toml")
    own = tmp_path / "arrays" / "own.toml"
    own.write_text('name = "own"\n[array]\nlevel = "raid5"\nmembers = "../mine.toml*5"\n')
    profile = own.with_name("profile.toml")
    text = own.read_text().replace("../mine.toml", "harmonia")
    keys = "geometry.chips = 4\ngeometry.blocks_per_plane = 64\ngc.low_percent = 7\n"
    profile.write_text(f"{text}[member]\n{keys}")
    load = "uniform:write=0.7,size=16k,rate=2k/s,requests=2000"
    of_files, of_profile = (flashtwin.run(load, device).summary for device in (own, profile))
    assert of_files["all"] == of_profile["all"]
    assert of_files["flash"] == of_profile["flash"]
    assert of_files["flash"]["erases"] > 0
    # `device show` prints the array together with its drives. The printed text describes the same array after
    # the file of the drive has been removed.
    whole = cli("device", "show", own).stdout
    drive.unlink()
    assert "[drives.mine.geometry]" in whole
    alone = tmp_path / "whole.toml"
    alone.write_text(whole)
    assert flashtwin.run(load, alone).summary["all"] == of_files["all"]
    smaller = flashtwin.run(load, alone, size="300MiB").summary["exported_bytes"]
    assert 300 << 20 <= smaller < of_files["exported_bytes"]
    with pytest.raises(flashtwin.DeviceError, match=r"own\.toml:4:.*mine\.toml: cannot read this device"):
        flashtwin.device(own)
    # A path in an override is relative to the caller's directory.
    drive_file(drive)
    monkeypatch.chdir(tmp_path)
    changed = flashtwin.device("raid5-array", {"array.members": "mine.toml*4", "member.gc.low_percent": 8})
    assert changed.members == 4
    assert flashtwin.run(load, "raid5-array", set={"array.members": "mine.toml*4"}).summary["all"]


def test_served_array_has_its_device_files(tmp_path) -> None:
    """The server receives a complete description of the device. Its process reads no other file."""
    need("nbdkit")
    drive_file(tmp_path / "mine.toml")
    own = tmp_path / "own.toml"
    own.write_text('name = "own"\n[array]\nlevel = "raid0"\nmembers = "./mine.toml*2"\n')
    with flashtwin.serve(own, store="none") as server:
        assert server.size_bytes == flashtwin.device(own).exported_bytes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"array.level": "raid7"}, "array.level"),
        ({"array.members": "harmonia*2"}, "raid5 needs at least 3"),
        ({"array.members": "harmona*4"}, "is no device that comes with flashtwin"),
        ({"array.chunk": "6 KiB"}, "whole pages"),
        ({"array.chnk": "8 KiB"}, "did you mean array.chunk"),
        ({"member.geometry.chip": 4}, "chips"),
    ],
)
def test_wrong_arrays_are_refused_with_valid_values(settings: flashtwin.Overrides, words: str) -> None:
    with pytest.raises(flashtwin.DeviceError, match=words):
        flashtwin.device("raid5-array", settings)


def test_an_array_is_preconditioned_once_and_run_many_times(tmp_path: Path) -> None:
    state = tmp_path / "state"
    flashtwin.save_snapshot(state, "raid5-array", set=SMALL)
    for more in ({}, {"array.coordination": "turns"}, {"array.coordination": "ideal"}):
        warm = flashtwin.run(LOAD, device="raid5-array", set=SMALL | more, snapshot=state)
        cold = flashtwin.run(LOAD, device="raid5-array", set=SMALL | more)
        assert warm.summary.pop("precondition") == "snapshot (steady, seed 1)"
        cold.summary.pop("precondition")
        assert warm.summary == cold.summary
    with pytest.raises(flashtwin.SnapshotError, match=r"member.geometry.chips is 4 in the snapshot"):
        flashtwin.run(LOAD, device="raid5-array", set=SMALL | {"member.geometry.chips": 2}, snapshot=state)


def test_members_fail_and_are_rebuilt_in_a_run() -> None:
    load = "uniform:write=0.5,size=16k,rate=2k/s,requests=2000"
    faults = [flashtwin.Fail(3, at_s=0.2), flashtwin.Replace(3, at_s=0.4)]
    result = flashtwin.run(load, device="raid5-array", set=SMALL, faults=faults, series_s=0.1)
    array = result.summary["array"]
    assert [phase["condition"] for phase in array["phases"][:3]] == ["whole", "degraded", "rebuilding"]
    assert sum(phase["all"]["requests"] for phase in array["phases"]) == 2000
    rebuild = array["rebuilds"][0]
    assert rebuild["member"] == 3
    assert rebuild["from_s"] == 0.4 < rebuild["until_s"]
    assert rebuild["bytes_written"] == rebuild["bytes"]
    shares = [share for share in result.series["rebuilt_share"].to_pylist() if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] > 0
    assert "rebuilding" in str(result)


class Rebuilding:
    """The control of a run during which a member is rebuilt."""

    done, total, rebuild, phase = 5, 10, (1, 4), ""


def test_progress_shows_the_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    task = watch.Task("run", lambda _: None)
    assert task.progress(finished=False).rebuilt is None
    monkeypatch.setattr(task, "control", Rebuilding())
    assert task.progress(finished=False).rebuilt == 0.25


def test_policies_are_compared_through_a_failure() -> None:
    faults = [flashtwin.Fail(1, at_s=0.1)]
    compared = flashtwin.compare(LOAD, ["lru", "gcar-lru"], device="raid5-array", set=SMALL, faults=faults)
    for result in compared:
        assert [phase["from_s"] for phase in result.summary["array"]["phases"]] == [0.0, 0.1]


def test_a_failure_too_many_is_counted(tmp_path: Path) -> None:
    faults = [flashtwin.Fail(member, at_s=0.1) for member in (0, 1)]
    result = flashtwin.run(LOAD, device="raid5-array", set=SMALL, faults=faults, log=True)
    assert result.requests is not None
    status = result.requests["status"].to_pylist()
    assert status.count("failed") == result.summary["requests_failed"] > 200
    assert result.summary["array"]["phases"][-1]["condition"] == "lost"


@pytest.mark.parametrize(
    ("fault", "device", "words"),
    [
        (flashtwin.Fail(8, 1), "raid5-array", "members 0 to 7"),
        (flashtwin.Replace(0, 1), "raid5-array", "has not failed by then"),
        (flashtwin.Fail(0, -1.0), "raid5-array", "at_s is a number"),
        (flashtwin.Fail(0, float("nan")), "raid5-array", "at_s is a number"),
        (flashtwin.Fail(-1, 1), "raid5-array", "numbered from 0"),
        (flashtwin.Fail(0, 1), "demo", "needs an array"),
        ("0@1s", "raid5-array", "give Fail"),
    ],
)
def test_impossible_faults_are_refused(fault: flashtwin.Fault, device: str, words: str) -> None:
    settings = SMALL if device == "raid5-array" else {}
    with pytest.raises(flashtwin.FlashtwinError, match=words):
        flashtwin.run(LOAD, device=device, set=settings, precondition="none", faults=[fault])


def test_the_command_line_has_members_fail(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--workload", LOAD, "--device", "raid5-array", "--precondition", "none", "--json"]
    command += [f"--set={key}={value}" for key, value in SMALL.items()]
    assert cli.main([*command, "--fail", "2@50ms", "--fail", "5@0.2s", "--replace", "2@100ms"]) == 0
    phases = json.loads(capsys.readouterr().out)["array"]["phases"]
    assert [phase["from_s"] for phase in phases[:3]] == [0.0, 0.05, 0.1]
    for wrong in ("3", "3@", "3@10", "x@1s", "3@1h", "-1@1s"):
        assert cli.main([*command, f"--fail={wrong}"]) == 2
        assert "give MEMBER@TIME" in capsys.readouterr().err


def test_coordination_decides_when_members_collect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = "uniform:write=1,size=16k,rate=3k/s,requests=2000"
    kinds = {}
    for coordination in ("local", "inclusive"):
        settings = SMALL | {"array.coordination": coordination}
        result = flashtwin.run(load, device="raid5-array", set=settings, gc_timeline=True)
        assert result.gc_intervals is not None
        rows = result.gc_intervals.to_pylist()
        kinds[coordination] = {row["kind"] for row in rows}
        for member, of in enumerate(result.summary["array"]["members"]):
            spans = [(row["begin_ns"], row["end_ns"]) for row in rows if row["member"] == member]
            assert all(begin < end for begin, end in spans)
            assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
            # A member is in GC while any of its chips is. This time is at least the longest GC time of a
            # chip, and at most the sum of the GC times of all chips.
            chips = of["flash"]["gc_time_ms_by_chip"]
            total_ms = sum(end - begin for begin, end in spans) / 1e6
            assert max(chips) - 1e-3 <= total_ms <= sum(chips) + 1e-3
    assert kinds["local"] == {"own"}
    assert "forced" in kinds["inclusive"]

    command = ["run", "--workload", load, "--device", "raid5-array", "--json"]
    command += [f"--set={key}={value}" for key, value in settings.items()]
    names = [tmp_path / f"gc.{kind}" for kind in ("csv", "parquet", "svg")]
    assert cli.main([*command, *(f"--gc-timeline={name}" for name in names)]) == 0
    text = names[0].read_text().splitlines()
    assert text[0] == "member,begin_ns,end_ns,kind"
    assert len(text) == len(rows) + 1
    assert pq.read_table(names[1]).to_pylist() == rows
    drawn = names[2].read_bytes()
    assert drawn.startswith(b"<?xml")
    result.gc_figure(names[2])
    assert names[2].read_bytes() == drawn, "the same figure, to the byte"
    capsys.readouterr()
    assert cli.main([*command, "--gc-timeline", "gc.txt"]) == 2
    assert capsys.readouterr().out == ""
    assert cli.main(["run", "--workload", load, "--device", "demo", "--gc-timeline", "gc.csv"]) == 2
    assert "needs an array" in capsys.readouterr().err
    with pytest.raises(flashtwin.FlashtwinError, match="gc_timeline=True"):
        flashtwin.run(LOAD, device="raid5-array", set=SMALL, precondition="none").gc_figure(names[2])


def test_reads_are_hedged() -> None:
    load = "uniform:write=0.05,size=4k,rate=3k/s,requests=8000"
    direct, hedged = (
        flashtwin.run(load, device="raid5-array", set=SMALL | more, warmup_requests=3000)
        for more in ({}, {"array.reads": "hedged"})
    )
    array = hedged.summary["array"]
    assert direct.summary["array"]["pages_hedged"] == 0
    assert 0 < array["hedges_won"] < array["pages_hedged"]
    assert array["pages_read_in_vain"] >= array["pages_hedged"]
    assert hedged.summary["read"]["p99_us"] * 5 < direct.summary["read"]["p99_us"]
    assert "hedged reads" in str(hedged)
    with pytest.raises(flashtwin.DeviceError, match="raid0 holds every page once"):
        flashtwin.device("harmonia-array", {"array.reads": "hedged"})


def test_groups_take_turns() -> None:
    result = flashtwin.run(
        "uniform:write=0.8,size=4k,rate=20k/s,requests=30000",
        device="raid5-array",
        set=SMALL | {"array.level": "swan", "array.members": "harmonia*4"},
    )
    array = result.summary["array"]
    assert array["level"] == "swan"
    assert array["pages_read_for_parity"] == 0
    assert array["pages_moved"] > 0 and array["segments_trimmed"] > 0
    moved = array["pages_moved"] / array["data_pages_written"]
    assert array["volume_write_amplification"] == pytest.approx(1 + moved)
    # With groups of two members, there are as many pages of parity as of data.
    assert array["write_amplification"] == pytest.approx(2 * (1 + moved), rel=0.01)
    assert array["total_write_amplification"] >= array["write_amplification"]
    assert "segments trimmed" in str(result)
    with pytest.raises(flashtwin.DeviceError, match='needs "local" or "ideal"'):
        flashtwin.device("raid5-array", {"array.level": "swan", "array.coordination": "turns"})


def test_the_shipped_raid_6_runs_and_is_rebuilt() -> None:
    small = {"member.geometry.blocks_per_plane": 16, "member.gc.low_percent": 10}
    result = flashtwin.run(
        "uniform:write=0.3,size=16k,rate=4k/s,requests=1000",
        device="raid6-nvme",
        set=small | {"array.rebuild_mib_per_s": 0},
        precondition="sequential",
        faults=[flashtwin.Fail(0, 0.05), flashtwin.Fail(7, 0.05), flashtwin.Replace(7, 0.1)],
    )
    array = result.summary["array"]
    assert result.summary["requests_failed"] == 0
    assert array["level"] == "raid6"
    assert array["rebuilds"][0]["bytes_written"] == array["rebuilds"][0]["bytes"]
    assert array["phases"][-1]["condition"] == "degraded"


def test_results_have_the_variation_of_response_times() -> None:
    result = flashtwin.run(LOAD, device="raid5-array", set=SMALL)
    latency = result.latency
    assert latency["variation"] == latency["deviation_us"] / latency["mean_us"] > 0
    assert f"CV {latency['variation']:.3f}" in str(result)


def test_the_study_runs(capsys: pytest.CaptureFixture[str]) -> None:
    study = runpy.run_path(str(SCRIPT))
    small = {"array.members": "harmonia*3", "member.geometry.chips": 4}
    result = study["run"](LOAD, "harmonia-array", small, 100)
    study["table"]("title", ["a", "b"], [(1, result.latency["mean_us"])])
    assert "| a | b |" in capsys.readouterr().out
