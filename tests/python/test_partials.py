"""Incomplete files: their names, files left by killed processes, and similar files of other programs."""

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin._support.files import write_text
from flashtwin._support.partials import Partial

NAME = re.compile(r"\.(.+)\.flashtwin-\d+-[0-9a-f]{16}\.partial")
#: Script that runs a command. The kernel kills it at its first write to a file.
KILLED = """
import resource, signal, sys
from flashtwin_command import main
import flashtwin.cli
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.exit(main())
"""
SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
RUN = ("run", "--workload", LOAD, "--device", "demo", *SETTINGS)
WRITERS = {
    "summary": ("out.json", [*RUN, "-o", "out.json"]),
    "record": ("out.run", [*RUN, "--record", "out.run"]),
    "log": ("out.parquet", [*RUN, "--requests", "out.parquet"]),
    "timeline": ("out.pftrace", [*RUN, "--timeline", "out.pftrace", "--timeline-window", "0s+50ms"]),
    "trace": ("out.ftb", ["trace", "convert", "in.csv", "out.ftb"]),
    "snapshot": ("out.state", ["snapshot", "save", "out.state", "--device", "demo", *SETTINGS]),
}


@pytest.fixture
def dead():
    """Return the number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def partial(path, pid, number=0):
    """Return the path of the incomplete file in which process `pid` writes the output `path`."""
    return path.with_name(f".{path.name}.flashtwin-{pid}-{number:016x}.partial")


def half_written(directory):
    """Return the final names of incomplete files."""
    return [found[1] for path in directory.iterdir() if (found := NAME.fullmatch(path.name))]


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_killed_writer_leaves_a_file_that_the_same_output_removes(tmp_path, trace, cli, kind):
    name, command = WRITERS[kind]
    (tmp_path / "in.csv").write_bytes(trace.read_bytes())
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *command], cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGXFSZ, killed.stderr
    assert half_written(tmp_path) == [name]
    other = cli("device", "show", "demo", "-o", "other.json", cwd=tmp_path)
    flashtwin.run(LOAD, "demo", set=SMALL).save(tmp_path / "other.run")
    assert half_written(tmp_path) == [name], other
    done = cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert half_written(tmp_path) == []
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_files_of_other_programs_stay(tmp_path, trace, cli, dead, kind):
    name, command = WRITERS[kind]
    (tmp_path / "in.csv").write_bytes(trace.read_bytes())
    others = [
        "thesis.2024.partial",
        "download.99999.partial",
        f"{name}.{dead}.partial",
        f".{name}.0.{dead}.partial",
        f".{name}.flashtwin-{dead}.partial",
        f"{name}.flashtwin-{dead}-{0:016x}.partial",
    ]
    for other in others:
        (tmp_path / other).write_text("precious")
    done = cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", name, *others}
    assert {(tmp_path / other).read_text() for other in others} == {"precious"}


def test_only_files_of_dead_unlocked_writers_are_removed(tmp_path, dead):
    final = tmp_path / "run.json"
    stale, living, locked = (partial(final, pid, n) for n, pid in enumerate((dead, os.getpid(), dead)))
    special = partial(final, dead, 3)
    os.mkfifo(special)
    link, victim = partial(final, dead, 4), tmp_path / "victim"
    for path in (stale, living, locked, victim):
        path.write_text("half")
    link.symlink_to(victim)
    with locked.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        flashtwin.run(LOAD, "demo", set=SMALL).save(final)
    assert {*tmp_path.iterdir()} == {final, living, locked, special, link, victim}


def test_directory_is_read_once_in_a_process(tmp_path, dead):
    final = tmp_path / "run.json"
    write_text(final, "", "a test")
    stale = partial(final, dead)
    stale.write_text("half")
    write_text(final, "", "a test")
    assert stale.exists()


def test_partial_that_is_removed_before_its_lock_is_created_again(tmp_path, monkeypatch):
    lock, removed = fcntl.flock, []

    def flock(file, how):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    kept = Partial(tmp_path / "x")
    assert kept.path.exists()
    assert kept.path not in removed
    kept.close()


@pytest.mark.parametrize("named", ["out.html.{pid}.partial", ".out.html.flashtwin-{pid}-0.partial"])
def test_planted_link_is_not_written_through(tmp_path, named):
    victim, link = tmp_path / "victim.txt", tmp_path / named.format(pid=os.getpid())
    victim.write_text("victim")
    link.symlink_to(victim)
    result = flashtwin.run(LOAD, "demo", set=SMALL, history=True)
    flashtwin.report(result, tmp_path / "out.html")
    assert victim.read_text() == "victim"
    assert not (tmp_path / "out.html").is_symlink()


def test_partial_is_created_exclusively(tmp_path, monkeypatch):
    victim = tmp_path / "victim.txt"
    victim.write_text("victim")
    (tmp_path / f".out.flashtwin-{os.getpid()}-{'00' * 8}.partial").symlink_to(victim)
    monkeypatch.setattr("os.urandom", bytes)
    with pytest.raises(flashtwin.FlashtwinError, match="out: cannot write a test: File exists"):
        write_text(tmp_path / "out", "text", "a test")
    assert victim.read_text() == "victim"


@pytest.mark.parametrize("kind", ["summary", "trace", "snapshot"])
def test_output_that_is_a_link_is_replaced(tmp_path, trace, cli, kind):
    name, command = WRITERS[kind]
    (tmp_path / "in.csv").write_bytes(trace.read_bytes())
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / name).symlink_to(target)
    assert cli(*command, cwd=tmp_path).returncode == 0
    assert target.read_text() == "kept"
    assert not (tmp_path / name).is_symlink()


def test_output_to_a_descriptor_is_written_directly(tmp_path):
    with (tmp_path / "out").open("wb") as out:
        command = [sys.executable, "-m", "flashtwin.cli", *RUN, "-o", "/dev/stdout"]
        subprocess.run(command, stdout=out, timeout=120, check=True)
    assert '"requests_submitted"' in (tmp_path / "out").read_text()
    assert Path("/dev/stdout").is_symlink()


def test_distributions_stay_only_together(tmp_path):
    (tmp_path / "x.write.hgrm").mkdir()
    result = flashtwin.run(LOAD, "demo", set=SMALL)
    with pytest.raises(
        flashtwin.FlashtwinError, match=r"x\.write\.hgrm: cannot write the distribution: is a dir"
    ):
        result.save_hgrm(tmp_path / "x.hgrm")
    assert [path.name for path in tmp_path.iterdir()] == ["x.write.hgrm"]
