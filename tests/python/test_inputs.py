"""Input files: pipes, devices, endless and too long files, and keys that are given twice."""

import os
import subprocess
from pathlib import Path

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin._support.folders import content_hash
from flashtwin._support.inputs import SETTINGS_MAX
from flashtwin._support.record import load_record
from flashtwin._sweep.experiment import read_experiment
from flashtwin.calibrate import plan
from flashtwin.calibrate.results import read_results
from flashtwin.importing import import_file
from flashtwin.study import definition

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
#: Functions that read a whole file, by the kind of file.
READERS = {
    "device": flashtwin.device,
    "experiment": read_experiment,
    "study": lambda path: definition.read(str(path)),
    "outcome": lambda path: flashtwin.study.outcome(str(path)),
    "record": load_record,
    "parameter file": import_file,
    "snapshot": lambda path: flashtwin.run(LOAD, "demo", set=SMALL, snapshot=path),
    "trace to hash": lambda path: content_hash(str(path)),
    "results": lambda path: flashtwin.results(path.parent),
    "measurement": lambda path: read_results(path.parent, ()),
}


@pytest.mark.parametrize("kind", sorted(READERS))
@pytest.mark.parametrize("special", ["pipe", "/dev/zero", "directory"])
def test_special_file_is_refused_at_once(tmp_path, kind, special):
    names = {"results": "results.parquet", "measurement": "manifest.json", "outcome": "outcome.json"}
    path = tmp_path / names.get(kind, "input.toml")
    if special == "pipe":
        os.mkfifo(path)
    elif special == "directory":
        path.mkdir()
    else:
        path.symlink_to(special)
    with pytest.raises(flashtwin.FlashtwinError, match=path.name if kind != "outcome" else "outcome"):
        READERS[kind](path)


@pytest.mark.parametrize("command", [["run"], ["trace", "info"], ["policy", "hits", "--capacity", "1MiB"]])
def test_endless_device_is_refused_as_a_trace(cli, command):
    done = cli(*command, "/dev/zero")
    assert done.returncode == 2
    assert "/dev/zero: is a device; give a file or a pipe" in done.stderr


def test_endless_device_is_refused_on_standard_input(cli):
    with Path("/dev/zero").open("rb") as zeros:
        done = cli("trace", "info", "-", stdin=zeros)
    assert done.returncode == 2
    assert "-: is a device" in done.stderr


def test_trace_is_read_from_a_pipe(tmp_path, trace, cli):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", trace, pipe]) as writer:
        done = cli("trace", "info", pipe)
    assert writer.returncode == 0
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["device", "experiment", "study", "parameter file"])
def test_long_file_is_refused_before_it_is_read(tmp_path, kind):
    path = tmp_path / "long.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(flashtwin.FlashtwinError, match=rf"long\.toml: longer than {SETTINGS_MAX >> 20} MiB"):
        READERS[kind](path)


@pytest.mark.parametrize("kind", ["device", "experiment", "study", "record", "parameter file"])
def test_text_that_is_not_utf8_is_refused(tmp_path, kind):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(flashtwin.FlashtwinError, match=r"x\.toml"):
        READERS[kind](path)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--workload", "zipf:requests=1e3,requests=2"], "requests"),
        (["--workload", LOAD, *SETTINGS, *SETTINGS[:2]], "geometry.blocks_per_plane"),
        (["--workload", LOAD, "--policy", "cflru:window=0.5,buffer.window=0.1"], "window"),
        (["table.csv", "--columns", "time=1:us,offset=2,size=3,op=4,time=2:us"], "time"),
    ],
)
def test_key_given_twice_is_refused(cli, tmp_path, arguments, key):
    (tmp_path / "table.csv").write_text("1,0,4096,R\n")
    done = cli("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{key} is given twice; leave one out" in done.stderr


def test_preset_is_changed_by_a_key():
    preset = flashtwin.run("gcar-synthetic:requests=100,write=0.5", "demo", set=SMALL)
    assert preset.summary["all"]["requests"] == 100


@pytest.mark.parametrize("name", ["x\nexec_prerun=id", "x\rexec_prerun=id", "x\x1b[31m", "nbd://h/\nx"])
def test_target_with_control_characters_is_refused(tmp_path, name):
    with pytest.raises(flashtwin.FlashtwinError, match="cannot have control characters; rename it"):
        plan.target(name if "://" in name else tmp_path / name, 1 << 30)


def test_link_to_a_name_with_control_characters_is_refused(tmp_path):
    (tmp_path / "x\nexec_prerun=id").touch()
    (tmp_path / "link").symlink_to("x\nexec_prerun=id")
    with pytest.raises(flashtwin.FlashtwinError, match="cannot have control characters"):
        plan.target(tmp_path / "link", 1 << 30)
