"""Arrays from Python and the command line."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import flashtwin

SMALL = {"member.geometry.chips": 4, "member.geometry.blocks_per_plane": 64, "buffer.capacity": "1 MiB"}
LOAD = "uniform:write=0.7,size=16k,rate=2k/s,requests=500"
STUDY = Path(__file__).parents[2] / "studies" / "arrays.py"


def test_an_array_runs_and_says_what_its_members_did() -> None:
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
def test_wrong_arrays_are_refused_with_what_would_be_right(settings: flashtwin.Overrides, words: str) -> None:
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


def test_the_study_runs(capsys: pytest.CaptureFixture[str]) -> None:
    study = runpy.run_path(str(STUDY))
    small = {"array.members": "harmonia*3", "member.geometry.chips": 4}
    loads = study["run"](LOAD, "harmonia-array", small)
    assert study["less"](1.0, 2.0) == "-50.0 %"
    study["table"]("title", ["a", "b"], [(1, study["mean_ms"](loads))])
    assert "| a | b |" in capsys.readouterr().out
