"""Starting servers: permissions of files, and cleanup after failed starts."""

import contextlib
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from clients import need, qemu_io, started, wait_for

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}


def serve(**options):
    need("nbdkit", "qemu-io")
    return flashtwin.serve(**{"device": "demo", "set": SMALL, "precondition": "none", **options})


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def masked():
    """Set the umask for the duration of a test."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_file_permissions_follow_the_umask(tmp_path, masked, mask):
    masked(mask)
    disk, at, record = tmp_path / "disk.img", tmp_path / "nbd.sock", tmp_path / "live.csv"
    with serve(store=disk, socket=at, record=record) as server:
        assert [mode(path) for path in (at, server.control)] == [0o600, 0o600]
    modes = [mode(path) for path in (disk, Path(f"{disk}.state"), record, Path(f"{record}.toml"))]
    assert [oct(m) for m in modes] == [oct(m) for m in (0o666 & ~mask, 0o600, 0o600, 0o666 & ~mask)]


@contextlib.contextmanager
def limited(limit, soft):
    """Set a soft limit of this process, which its children inherit."""
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(limit, before)


#: Failing starts: options, a directory that exists before, and the expected error.
FAILURES = {
    "snapshot": ({"snapshot": "none.state"}, None, "none.state: cannot open"),
    "record": ({"record": "none/live.csv"}, None, "create it first"),
    "record's device": ({"record": "live.csv"}, "live.csv.toml/", "is a directory"),
    "control": ({}, "nbd.sock.ctl/", "already exists"),
    "dilation": ({"dilation": 1e9}, None, "give a number from"),
    "keys": ({"tls_psk": "none.psk"}, None, "none.psk"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failed_start_removes_its_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    options, in_the_way, said = FAILURES[name]
    if in_the_way:
        Path(in_the_way).mkdir()
    before = set(tmp_path.iterdir())
    good = {"store": tmp_path / "disk.img", "socket": tmp_path / "nbd.sock"}
    with pytest.raises(flashtwin.FlashtwinError, match=said):
        serve(**good, **options)
    assert set(tmp_path.iterdir()) == before
    if in_the_way:
        Path(in_the_way).rmdir()
    with serve(**good) as server:
        qemu_io(server.uri, "write -P 7 0 1M", "read -P 7 0 1M")


def test_store_beyond_the_file_size_limit_is_removed(tmp_path):
    disk = tmp_path / "disk.img"
    with (
        limited(resource.RLIMIT_FSIZE, 1 << 20),
        pytest.raises(
            flashtwin.FlashtwinError, match=r"disk\.img: cannot be \d+ bytes long: File too large.*ulimit -f"
        ),
    ):
        serve(store=disk)
    assert not disk.exists()
    with serve(store=disk) as server:
        qemu_io(server.uri, "write -P 7 0 1M", "read -P 7 0 1M")


def test_socket_is_removed_if_the_control_socket_fails(tmp_path):
    # nbdkit listens before the plugin creates the control socket.
    need("nbdkit")
    place = tmp_path / "place"
    place.mkdir()
    at = place / "nbd.sock"
    real = Path(shutil.which("nbdkit"))
    wrapper = tmp_path / "bin" / "nbdkit"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nmkdir "{at}.ctl"\nexec "{real}" "$@"\n')
    wrapper.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
        with pytest.raises(flashtwin.FlashtwinError, match=r"nbd\.sock\.ctl: cannot listen on"):
            serve(socket=at, store=place / "disk.img")
    assert {path.name for path in place.iterdir()} == {"nbd.sock.ctl"}
    Path(f"{at}.ctl").rmdir()
    with serve(socket=at, store=place / "disk.img") as server:
        qemu_io(server.uri, "read -P 0 0 1M")


@pytest.mark.parametrize(("files", "room"), [(100, "about 22 connections"), (4096, None)])
def test_low_limit_of_open_files_is_reported(files, room):
    need("nbdkit")
    sets = [f"--set={key}={value}" for key, value in SMALL.items()]
    words = [sys.executable, "-m", "flashtwin.cli", "serve", "--device=demo", "--precondition=none", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with limited(resource.RLIMIT_NOFILE, files), started(*words, *sets, **pipes) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert (room in errors and "ulimit -n 932" in errors) if room else errors == ""


def test_directories_of_other_programs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = tmp_path / "flashtwin-results"
    results.mkdir()
    for name in ("lock", "cells"):  # Like the output directory of a sweep.
        (results / name).touch()
    with serve() as one, serve() as other:
        assert one.running and other.running
        assert len(list(tmp_path.iterdir())) == 3
    assert {path.name for path in tmp_path.rglob("*")} == {"flashtwin-results", "lock", "cells"}


@contextlib.contextmanager
def slow_start(tmp_path, place, *words):
    """Start a server whose nbdkit stops itself (SIGSTOP) after creating its files. Yield both processes."""
    waits = tmp_path / "waits"
    real = shutil.which("nbdkit")
    slow = tmp_path / "bin" / "nbdkit"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\n"{real}" "$@" snapshot=/none; echo $$ >"{waits}"; kill -STOP $$\n')
    slow.chmod(0o755)
    environment = {**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}", "TMPDIR": str(place)}
    words = ["serve", "--device=demo", "--precondition=none", *words]
    with started(sys.executable, "-m", "flashtwin.cli", *words, env=environment) as process:
        wait_for(lambda: waits.exists() and waits.read_text().endswith("\n"))
        yield process, int(waits.read_text())


def test_interrupted_start_removes_its_files(tmp_path, short_path):
    need("nbdkit")
    disk = tmp_path / "disk.img"
    with slow_start(tmp_path, short_path, f"--store={disk}") as (process, _):
        assert disk.exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not disk.exists() and not list(short_path.iterdir())


@pytest.mark.parametrize("data", [b"", b"data of somebody"])
def test_next_start_removes_the_empty_store_of_a_killed_one(tmp_path, short_path, monkeypatch, data):
    need("nbdkit")
    disk = tmp_path / "disk.img"
    with slow_start(tmp_path, short_path, f"--store={disk}") as (process, nbdkit):
        process.kill()
        process.wait(60)
        os.kill(nbdkit, signal.SIGKILL)
        # A dead process has no working directory, even if its parent has not waited for it.
        wait_for(lambda: not Path(f"/proc/{nbdkit}/cwd").exists())
    with disk.open("r+b") as file:
        file.write(data)
    monkeypatch.setattr("tempfile.tempdir", str(short_path))
    with serve():
        assert len(list(short_path.iterdir())) == 1
    assert disk.exists() == bool(data)


def test_killed_server_keeps_its_empty_store(tmp_path, short_path, monkeypatch):
    disk = tmp_path / "disk.img"
    monkeypatch.setattr("tempfile.tempdir", str(short_path))
    server = serve(store=disk)
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(flashtwin.FlashtwinError, match="exit code -9"):
        server.stop()
    assert disk.exists() and not list(short_path.iterdir())
    with serve():
        assert disk.exists()
