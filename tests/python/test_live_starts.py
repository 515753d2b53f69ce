"""Starts of served devices: whose the files are, and that one which fails leaves nothing behind."""

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
    """Sets the mask for permissions, for the time of a test."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_files_follow_the_umask_and_what_tells_of_the_data_is_the_owners(tmp_path, masked, mask):
    masked(mask)
    disk, at, record = tmp_path / "disk.img", tmp_path / "nbd.sock", tmp_path / "live.csv"
    with serve(store=disk, socket=at, record=record) as server:
        assert [mode(path) for path in (at, server.control)] == [0o600, 0o600]
    modes = [mode(path) for path in (disk, Path(f"{disk}.state"), record, Path(f"{record}.toml"))]
    assert [oct(m) for m in modes] == [oct(m) for m in (0o666 & ~mask, 0o600, 0o600, 0o666 & ~mask)]


@contextlib.contextmanager
def limited(limit, soft):
    """A limit of this process and of those that it starts."""
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(limit, before)


#: Ways to fail: options, a file that is in the way, and what is said.
FAILURES = {
    "snapshot": ({"snapshot": "none.state"}, None, "none.state: cannot open"),
    "record": ({"record": "none/live.csv"}, None, "create it first"),
    "record's device": ({"record": "live.csv"}, "live.csv.toml/", "is a directory"),
    "control": ({}, "nbd.sock.ctl/", "is there already"),
    "dilation": ({"dilation": 1e9}, None, "give a number from"),
    "keys": ({"tls_psk": "none.psk"}, None, "none.psk"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_start_that_fails_leaves_nothing(tmp_path, monkeypatch, name):
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


def test_a_store_that_finds_no_room_is_not_left_empty(tmp_path):
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


def test_a_socket_is_removed_where_the_control_socket_cannot_be(tmp_path):
    # nbdkit listens by then.
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
def test_few_open_files_are_said_at_the_start(files, room):
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


def test_directories_that_are_no_servers_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = tmp_path / "flashtwin-results"
    results.mkdir()
    for name in ("lock", "cells"):  # As a sweep has them.
        (results / name).touch()
    with serve() as one, serve() as other:
        assert one.running and other.running
        assert len(list(tmp_path.iterdir())) == 3
    assert {path.name for path in tmp_path.rglob("*")} == {"flashtwin-results", "lock", "cells"}


def test_a_start_that_is_interrupted_leaves_nothing(tmp_path):
    need("nbdkit")
    place, disk = tmp_path / "place", tmp_path / "disk.img"
    place.mkdir()
    # Once it has made its store it stands still, as if that took long.
    real = shutil.which("nbdkit")
    slow = tmp_path / "bin" / "nbdkit"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\n"{real}" "$@" snapshot=/none; kill -STOP $$\n')
    slow.chmod(0o755)
    environment = {**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}", "TMPDIR": str(place)}
    words = ["serve", "--device=demo", "--precondition=none", f"--store={disk}"]
    with started(sys.executable, "-m", "flashtwin.cli", *words, env=environment) as process:
        wait_for(disk.exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not disk.exists() and not list(place.iterdir())
