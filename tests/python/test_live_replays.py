"""Replays of recordings of served devices give the server's results."""

import json
from pathlib import Path
from unittest.mock import ANY

import pytest

import flashtwin
from clients import client, fio, need

SMALL = {
    "geometry.blocks_per_plane": 64,
    "geometry.chips": 4,
    "geometry.reserve_percent": 20,
    "buffer.capacity": "1 MiB",
}
#: A job of fio with up to 32 reads and writes in flight. A full buffer would delay its first writes.
BURST = {
    "verify": 0,
    "verify_fatal": 0,
    "rw": "randrw",
    "rwmixread": 30,
    "bs": "4k",
    "iodepth": 32,
    "size": "8M",
    "number_ios": 1500,
}


def recorded(place, **options):
    """Serve a device under the burst, and record the requests.

    Return the recording and the server's report.
    """
    need("nbdkit", "fio")
    record = place / "live.csv"
    with flashtwin.serve("demo", set=SMALL, dilation=10, record=record, **options) as server:
        client(*fio(server.uri, **BURST))
    return record, server.report()


def assert_same_times(report, result):
    for op in ("read", "write"):
        live, replayed = report.responses[op], result.summary[op]
        assert live["requests"] == replayed["requests"] > 100
        for name in ("p50_us", "p99_us", "p999_us"):
            # A percentile in a report is the upper end of a histogram bucket. A percentile in a summary is,
            # in addition, at most the longest response time.
            assert replayed[name] == pytest.approx(min(live[name], replayed["max_us"]), abs=0.1), (op, name)


@pytest.mark.parametrize("start", [{}, {"precondition": "none"}, {"precondition": "random:1", "seed": 7}])
def test_replay_with_defaults_takes_the_times_of_the_server(tmp_path, start):
    record, report = recorded(tmp_path, **start)
    assert_same_times(report, flashtwin.run(record))
    assert_same_times(report, flashtwin.run(record, f"{record}.toml"))


def test_replay_starts_from_the_state_of_a_store(tmp_path):
    disk = tmp_path / "disk.img"
    recorded(tmp_path, store=disk)
    for path in tmp_path.glob("live.csv*"):
        path.unlink()
    record, report = recorded(tmp_path, store=disk)
    assert_same_times(report, flashtwin.run(record))


def test_options_replace_the_start_of_a_recording(tmp_path, cli, monkeypatch):
    record, _ = recorded(tmp_path)
    state = Path(f"{record}.state")
    own = flashtwin.run(record)
    assert own.summary["precondition"] == "snapshot (preconditioned: steady, seed 1)"
    assert flashtwin.run(record, precondition="none").summary["precondition"] == "none"
    # With a snapshot, the precondition determines only whether the buffer starts full.
    full = flashtwin.run(record, snapshot=state).summary
    assert full["write"]["mean_us"] > 1.1 * own.summary["write"]["mean_us"]
    monkeypatch.chdir(tmp_path)
    for device in ("live.csv.toml", "./live.csv.toml", tmp_path / "live.csv.toml"):
        assert flashtwin.run("live.csv", device).summary == own.summary | {"workload": ANY}
    assert flashtwin.run(record, "demo", set=SMALL).summary["precondition"].startswith("steady")
    ran = cli("run", str(record))
    assert f"device and state of the recording: {record}.toml, {record}.state" in ran.stderr
    assert flashtwin.compare(record, ["lru", "arc"]).results[0].summary["precondition"].startswith("snapshot")


def test_damaged_start_is_refused_with_its_remedy(tmp_path):
    record, _ = recorded(tmp_path, precondition="none")
    start = Path(f"{record}.start.json")
    assert json.loads(start.read_text()) == {"device": "live.csv.toml", "state": None}
    damaged = ("", "[]", "null", "\0", '{"device": "x"}')
    damaged += tuple(f'{{"device": {name}, "state": null}}' for name in ("1", '""', '"a/b"', "[]"))
    for text in damaged:
        start.write_text(text)
        with pytest.raises(
            flashtwin.FlashtwinError, match=r"start\.json: is not the start .* give another --device"
        ):
            flashtwin.run(record)
        assert flashtwin.run(record, "demo", set=SMALL).summary["device"] == "demo"
    start.write_text('{"device": "live.csv.toml", "state": "gone.state"}')
    with pytest.raises(flashtwin.FlashtwinError, match=r"names .*gone\.state, which is missing"):
        flashtwin.run(record)
    start.write_bytes(b"\xff\xfe")
    with pytest.raises(flashtwin.FlashtwinError, match="cannot read the start"):
        flashtwin.run(record)
    start.unlink()
    assert flashtwin.run(record).summary["device"] == "nvme-tlc"
