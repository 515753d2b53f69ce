"""Stopping and killing servers while clients stay connected."""

import contextlib
import errno
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
from power import PAGE, Connection, RefusedError

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
#: Program that connects, reports that, and stays idle.
_IDLE = "import time; print('connected', flush=True); time.sleep(1000)"


@contextlib.contextmanager
def idle_libnbd(at):
    """Return an idle libnbd handle."""
    need("nbdsh")
    words = ["/usr/bin/env", "PATH=/usr/bin:/bin", "nbdsh", "-u", uri(at), "-c", _IDLE]
    with started(*words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"connected\n"
        yield


@contextlib.contextmanager
def silent(at):
    """Open two connections that never send a byte."""
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.connect(str(at))
        other.connect(str(at))
        yield


@contextlib.contextmanager
def idle_nbdfuse(at):
    """Create an idle nbdfuse mount."""
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
    """Start a client that sends load."""
    need("fio")
    job = fio(uri(at), rw="randrw", offset="32M", size="16M", time_based=1, runtime=1000, verify=0, thread=1)
    with started(*job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_for(lambda: flashtwin.control.ask(at, "stats")["responses"]["write"]["requests"] > 100)
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
    """Check that the next start loads the state, and that the data are unchanged."""
    state = Path(f"{disk}.state")
    with flashtwin.serve("demo", set=SMALL, store=disk, socket=at) as server:
        assert str(state) in server.started_from
        qemu_io(server.uri, "read -P 7 0 1M")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, "ctl"], ids=["SIGINT", "SIGTERM", "ctl"])
def test_stop_does_not_wait_for_clients(tmp_path, how):
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


def test_server_stops_and_next_start_works_after_its_launcher_is_killed(tmp_path):
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
            assert len(list(place.iterdir())) == 1, "the old private directory is still there"
            qemu_io(ready["uri"], "read -P 7 0 1M")
            again.send_signal(signal.SIGTERM)
            _, errors = again.communicate(timeout=60)
            assert again.returncode == 0, errors
    assert not list(place.iterdir())
    holds(at, disk)


def test_start_removes_what_a_killed_server_left(tmp_path):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    place = tmp_path / "place"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    with serve(at, disk, env=environment) as process:
        ready = json.loads(process.stdout.readline())
        qemu_io(ready["uri"], "write -P 7 0 1M", "flush")
        os.kill(process.pid, signal.SIGSTOP)  # A running command would remove the sockets.
        os.kill(ready["pid"], signal.SIGKILL)
        process.kill()
    assert at.exists() and Path(f"{at}.ctl").exists()
    with serve(at, disk, env=environment) as again:
        ready = json.loads(again.stdout.readline())
        qemu_io(ready["uri"], "read -P 7 0 1M")
        assert len(list(place.iterdir())) == 1
        again.send_signal(signal.SIGTERM)
        assert again.wait(60) == 0


def test_stop_drains_requests_until_a_second_signal(tmp_path):
    at, disk = tmp_path / "nbd.sock", tmp_path / "disk.img"
    for seconds, hurry in [(2, False), (3000, True)]:
        with serve(at, disk) as process:
            ready = json.loads(process.stdout.readline())
            assert main(["ctl", str(at), "disturb", "--latency-us", str(seconds * 1_000_000)]) == 0
            read = ["qemu-io", "-f", "raw", "-c", "read 0 4k", ready["uri"]]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            with Connection(at) as idle, started(*read, **pipes) as client:
                wait_for(lambda: flashtwin.control.ask(at, "stats")["waiting"] > 0)
                process.send_signal(signal.SIGINT)
                if hurry:
                    wait_for(lambda: not at.exists())
                    with pytest.raises(RefusedError) as later:
                        idle.read(0, PAGE)
                    assert later.value.args == (errno.ESHUTDOWN,)
                    process.send_signal(signal.SIGINT)
                said, errors = process.communicate(timeout=60)
                assert (process.returncode, errors) == (0, "")
                assert json.loads(said)["waiting"] == hurry
                answered, _ = client.communicate(timeout=60)
            assert ("read 4096/4096" in answered) != hurry, answered
            assert ("shutdown" in answered.lower()) == hurry, answered


def test_store_in_use_is_rejected_with_the_process_that_uses_it(tmp_path):
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


@pytest.mark.parametrize("through", ["api", "command"])
def test_no_write_is_accepted_after_a_stop_has_begun(short_path, through):
    need("nbdkit")
    at, disk = short_path / "sock", short_path / "disk.img"
    options = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    words = ["serve", "--device", "demo", *options, "--precondition", "none", "--store", disk, "--socket", at]
    with contextlib.ExitStack() as stack:
        if through == "api":
            server = stack.enter_context(
                flashtwin.serve("demo", set=SMALL, precondition="none", store=disk, socket=at)
            )
            stop = server.begin_stop
        else:
            command = [sys.executable, "-m", "flashtwin.cli", *words, "--metrics", "0", "--json"]
            process = stack.enter_context(started(*command, stdout=subprocess.PIPE))
            process.stdout.readline()
            stop = process.terminate

        connection = stack.enter_context(Connection(at))
        number = 1
        connection.write(0, bytes([number]) * PAGE)
        stop()
        with contextlib.suppress(RefusedError):
            while number < 250:
                connection.write(0, bytes([number + 1]) * PAGE)
                number += 1
        assert number < 250, "it was served until it gave up"
    assert disk.read_bytes()[:PAGE] == bytes([number]) * PAGE
