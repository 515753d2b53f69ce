"""Served devices in unusual situations: full disks, failing stops, early connections, ending threads."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import flashtwin
from clients import client, need, qemu_io, wait_for
from flashtwin._support.prerequisites import PLUGIN

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}


def serve(**options):
    need("nbdkit", "qemu-io")
    return flashtwin.serve(**{"device": "demo", "set": SMALL, "precondition": "none", **options})


def lines_of(record):
    texts = []

    def ends_whole():  # The file may be read while it is written.
        texts.append(record.read_text())
        return texts[-1].endswith("\n")

    wait_for(ends_whole)
    return texts[-1].splitlines()[1:]


def wait_for_a_write(record):
    """Wait until the server writes to the file, also if the disk is full."""
    before = record.stat().st_mtime_ns
    wait_for(lambda: record.stat().st_mtime_ns > before)


def write_pages(server, count):
    client("qemu-img", "bench", "-f", "raw", "-w", "-c", count, "-d", "8", "-s", "4096", server.uri)


@pytest.mark.parametrize("room_comes", [True, False])
def test_a_recording_on_a_full_disk_has_whole_lines_and_reports_missing_ones(tmp_path, room_comes):
    record = tmp_path / "live.csv"
    with serve(record=record, store="none") as server:
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        # The limit is above the size of the report, and below the size of the record.
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (30_001, unlimited[1]))
        for _ in range(2):
            write_pages(server, 3000)
            wait_for_a_write(record)
            assert len(lines_of(record)) < 6000
        if room_comes:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
            report = server.stop()
            missing = 0
        else:
            with pytest.raises(
                flashtwin.FlashtwinError, match=r"cannot record all requests: \d+ are missing"
            ) as said:
                server.stop()
            report = server.report()
            missing = int(str(said.value).partition("all requests: ")[2].split()[0])
            assert 3000 < missing < 6000
    asked = sum(kind["requests"] for kind in report.responses.values())
    assert asked >= 6000
    assert len(lines_of(record)) + missing == asked
    assert flashtwin.trace_info(record)["requests"] == asked - missing


def test_a_stop_that_cannot_keep_the_state_reports_it_and_keeps_the_rest(tmp_path):
    disk = tmp_path / "disk.img"
    with serve(store=disk) as server:
        qemu_io(server.uri, "write -P 9 4k 4k")
        (tmp_path / "disk.img.state").mkdir()
        with pytest.raises(flashtwin.FlashtwinError, match=r"the stop failed: .*disk\.img\.state"):
            server.stop()
        assert server.report().responses["write"]["requests"] == 1
    assert disk.read_bytes()[4096:8192] == b"\x09" * 4096


def test_a_reader_of_a_report_can_give_commands(tmp_path):
    need("nbdkit")
    device = tmp_path / "device.toml"
    device.write_text(flashtwin.device("demo", SMALL).to_toml())
    report, nowhere = tmp_path / "report.json", tmp_path / "none" / "ctl"
    command = ["nbdkit", "--foreground", "--unix", tmp_path / "sock", PLUGIN, f"device={device}"]
    run = {
        "capture_output": True,
        "timeout": 60,
        "env": {**os.environ, "LD_PRELOAD": str(PLUGIN)},
    }
    done = subprocess.run([*command, f"report={report}", f"control={nowhere}"], check=False, **run)
    assert done.returncode == 1 and b"cannot listen on" in done.stderr
    assert not report.exists(), "it said that it was ready, and took no commands"
    # No socket without a listener remains.
    (tmp_path / "sock").unlink()
    control = tmp_path / "ctl"
    done = subprocess.run([*command, f"report={nowhere}", f"control={control}"], check=False, **run)
    assert done.returncode == 1 and b"cannot write" in done.stderr
    assert not control.exists()


def test_a_server_outlives_the_thread_that_started_it():
    need("nbdkit")
    started = []
    thread = threading.Thread(target=lambda: started.append(serve()))
    thread.start()
    thread.join()
    with started.pop() as server:
        assert not server.wait(1.0), "it ended with the thread"
        assert server.power_cut().unfinished == 0
        qemu_io(server.uri, "write -P 8 64k 4k", "read -P 8 64k 4k")
        assert server.stop().responses["write"]["requests"] == 1


def test_a_server_ends_with_the_process_that_started_it(tmp_path):
    need("nbdkit")
    script = (
        "import os, sys, flashtwin\n"
        "server = flashtwin.serve('demo', set={'geometry.blocks_per_plane': 64}, precondition='none')\n"
        "print(server.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    process = Path(f"/proc/{int(done.stdout)}")

    def has_ended():
        try:
            return "(nbdkit) Z" in (process / "stat").read_text()
        except OSError:  # The process has ended, maybe since the last check.
            return True

    wait_for(has_ended)
