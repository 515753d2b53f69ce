"""Served devices that are stopped, or killed, while clients are connected that do not leave."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from clients import fio, need, qemu_io, started, wait_for
from flashtwin.cli import main

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
#: Only says that it is connected.
_IDLE = "import time; print('connected', flush=True); time.sleep(1000)"


@contextlib.contextmanager
def idle_libnbd(at):
    """A handle that asks nothing."""
    need("nbdsh")
    words = ["/usr/bin/env", "PATH=/usr/bin:/bin", "nbdsh", "-u", uri(at), "-c", _IDLE]
    with started(*words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"connected\n"
        yield


@contextlib.contextmanager
def silent(at):
    """Two that never say a byte."""
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.connect(str(at))
        other.connect(str(at))
        yield


@contextlib.contextmanager
def idle_nbdfuse(at):
    """A file made of the device, as the documentation has it."""
    need("nbdfuse", "fusermount3")
    if not Path("/dev/fuse").exists():
        pytest.skip("no FUSE here")
    mounted = at.parent / "mounted"
    mounted.mkdir()
    with started("nbdfuse", mounted / "disk", uri(at), stderr=subprocess.DEVNULL):
        wait_for((mounted / "disk").exists)
        try:
            yield
        finally:
            subprocess.run(["fusermount3", "-u", "-z", mounted], check=False, timeout=60)


@contextlib.contextmanager
def load(at):
    """Writes and reads without end."""
    need("fio")
    job = fio(uri(at), rw="randrw", offset="32M", size="16M", time_based=1, runtime=1000, verify=0, thread=1)
    with started(*job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        writes = lambda: flashtwin.control.ask(at, "stats")["responses"]["write"]["requests"] > 100  # noqa: E731
        wait_for(writes)
        yield


def uri(at):
    return f"nbd+unix:///?socket={at}"


CLIENTS = [idle_libnbd, silent, idle_nbdfuse, load]


def serve(at, disk, **options):
    need("nbdkit", "qemu-io")
    sets = [f"--set={key}={value}" for key, value in SMALL.items()]
    words = ["serve", "--device=demo", "--precondition=none", f"--socket={at}", f"--store={disk}", *sets]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return started(sys.executable, "-m", "flashtwin.cli", *words, "--json", **pipes, **options)


def holds(at, disk):
    """What was written is there at the next start, which goes on where the last one ended."""
    state = Path(f"{disk}.state")
    with flashtwin.serve("demo", set=SMALL, store=disk, socket=at) as server:
        assert str(state) in server.started_from
        qemu_io(server.uri, "read -P 7 0 1M")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, "ctl"], ids=["SIGINT", "SIGTERM", "ctl"])
def test_a_stop_waits_for_no_client(tmp_path, how):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    with contextlib.ExitStack() as connected, serve(at, disk) as process:
        ready = json.loads(process.stdout.readline())
        qemu_io(ready["uri"], "write -P 7 0 1M")
        for connect in CLIENTS:
            connected.enter_context(connect(at))
        if how == "ctl":
            assert main(["ctl", str(at), "stop"]) == 0
        else:
            process.send_signal(how)
        said, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert (json.loads(said)["responses"]["write"]["requests"] > 100, errors) == (True, "")
        assert not at.exists() and not Path(f"{at}.ctl").exists()
        holds(at, disk)


def test_a_server_whose_process_was_killed_ends_by_itself_and_hinders_no_other(tmp_path):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    place = tmp_path / "place"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    with contextlib.ExitStack() as connected, serve(at, disk, env=environment) as process:
        ready = json.loads(process.stdout.readline())
        qemu_io(ready["uri"], "write -P 7 0 1M")
        for connect in CLIENTS:
            connected.enter_context(connect(at))
        process.kill()
        process.wait()
        with serve(at, disk, env=environment) as again:
            ready = json.loads(again.stdout.readline())
            assert len(list(place.iterdir())) == 1, "the private directory of the one that was killed"
            qemu_io(ready["uri"], "read -P 7 0 1M")
            again.send_signal(signal.SIGTERM)
            _, errors = again.communicate(timeout=60)
            assert again.returncode == 0, errors
    assert not list(place.iterdir())
    holds(at, disk)


def test_nothing_of_servers_that_were_killed_is_in_the_way(tmp_path):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    place = tmp_path / "place"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    with serve(at, disk, env=environment) as process:
        ready = json.loads(process.stdout.readline())
        qemu_io(ready["uri"], "write -P 7 0 1M", "flush")
        os.kill(process.pid, signal.SIGSTOP)  # Who would remove what its server leaves.
        os.kill(ready["pid"], signal.SIGKILL)
        process.kill()
    assert at.exists() and Path(f"{at}.ctl").exists()
    with serve(at, disk, env=environment) as again:
        ready = json.loads(again.stdout.readline())
        qemu_io(ready["uri"], "read -P 7 0 1M")
        assert len(list(place.iterdir())) == 1
        again.send_signal(signal.SIGTERM)
        assert again.wait(60) == 0


def test_requests_under_way_have_time_to_end_and_a_second_signal_cuts_it_short(tmp_path):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    for seconds, hurry in [(2, False), (3000, True)]:
        with serve(at, disk) as process:
            ready = json.loads(process.stdout.readline())
            assert main(["ctl", str(at), "disturb", "--latency-us", str(seconds * 1_000_000)]) == 0
            read = ["qemu-io", "-f", "raw", "-c", "read 0 4k", ready["uri"]]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            with started(*read, **pipes) as client:
                wait_for(lambda: flashtwin.control.ask(at, "stats")["waiting"] > 0)
                process.send_signal(signal.SIGINT)
                if hurry:
                    wait_for(lambda: not at.exists())
                    process.send_signal(signal.SIGINT)
                said, errors = process.communicate(timeout=60)
                assert (process.returncode, errors) == (0, "")
                assert json.loads(said)["waiting"] == hurry
                answered, _ = client.communicate(timeout=60)
            assert ("read 4096/4096" in answered) != hurry, answered
            assert ("shutdown" in answered.lower()) == hurry, answered


def test_a_store_in_use_is_said_with_the_process_that_uses_it(tmp_path):
    need("nbdkit")
    options = {"device": "demo", "set": SMALL, "store": tmp_path / "disk.img"}
    with flashtwin.serve(**options) as server:
        said = rf"process {server.pid}\); stop it \(kill {server.pid}\)"
        with pytest.raises(flashtwin.FlashtwinError, match=said):
            flashtwin.serve(**options)
        os.kill(server.pid, signal.SIGTERM)
        wait_for(lambda: not server.control.exists())
        with flashtwin.serve(**options) as after:
            assert "disk.img.state" in after.started_from
