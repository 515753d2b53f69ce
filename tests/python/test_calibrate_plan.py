"""The plan of measurements: its jobs, its script with a stand-in for fio, and the comparison with results."""

import json
import os
import re
import subprocess

import pytest

from clients import need
from flashtwin import FlashtwinError
from flashtwin.calibrate import loads, plan

SIZE = 256 << 20
#: Stand-in for fio. It writes a result to fio's output file, and a line with its arguments to a log.
FIO = """#!/bin/sh
echo "$@" >>calls
for argument; do
  case $argument in
    --output=/dev/null) ;;
    --output=*) echo '{"jobs": [{}]}' >"${argument#--output=}" ;;
  esac
done
[ "$(wc -l <calls)" -ne "${FAIL_AT:-0}" ]
"""


@pytest.fixture
def written(tmp_path):
    """Create a plan on a file, and an environment whose fio only records its arguments."""
    where = plan.target(tmp_path / "drive", SIZE)
    plan.write(tmp_path / "plan", where)
    fio = tmp_path / "bin" / "fio"
    fio.parent.mkdir()
    fio.write_text(FIO)
    fio.chmod(0o755)
    return tmp_path / "plan", {**os.environ, "PATH": f"{fio.parent}:{os.environ['PATH']}"}


def measure(place, environment, *arguments):
    return subprocess.run(
        [place / plan.SCRIPT, *arguments],
        env=environment,
        input="no\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_experiment_has_a_job_that_fio_reads(written):
    need("fio")
    place, _ = written
    names = [load.name for load in plan.experiments(plan.target("drive", SIZE))]
    assert len(set(names)) == len(names)
    files = [place / f"{name}.fio" for name in [*names, "filled", "refilled", "steady"]]
    subprocess.run(["fio", "--parse-only", *files], check=True, timeout=60)


def test_a_job_is_its_load(tmp_path):
    where = plan.target(tmp_path / "drive:1", SIZE)
    database = next(load for load in loads.held_out() if "zipf" in load.text)
    text = plan.job(database, where)
    assert r"drive\:1" in text
    assert "[warmup]" in text
    for line in ("rw=randrw", "rwmixwrite=30", "bssplit=4k/50:8k/30:16k/20", "random_distribution=zipf:0.9"):
        assert text.count(line) == 2
    assert f"iodepth={database.depth}" in text
    fill = next(load for load in loads.writes(SIZE) if load.name == "write-fill-10")
    assert "rw=write\nbs=128k" in plan.job(fill, where)


def test_no_two_jobs_of_fio_have_the_same_addresses(tmp_path):
    need("fio")
    where = plan.target(tmp_path / "drive", SIZE)
    load = next(load for load in loads.reads() if load.name == "read-depth-2")
    text = plan.job(load, where).replace("ioengine=libaio\ndirect=1\n", "ioengine=null\n")
    (tmp_path / "a.fio").write_text(text)
    first = []
    for section in ("warmup", load.name):
        log = tmp_path / section
        command = ["fio", "--output=/dev/null", f"--section={section}", f"--write_iolog={log}", "a.fio"]
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
        found = [line.split()[-2] for line in log.read_text().splitlines() if " read " in line]
        first.append(set(found[:10]))
    assert all(first)
    assert not first[0] & first[1]
    # Different experiments do not read the same addresses, either: each section has its own seed.
    jobs = [plan.job(load, where) for load in plan.experiments(where)]
    seeds = re.findall(r"^randseed=(\d+)$", "\n".join(jobs), re.MULTILINE)
    sections = sum(text.count("number_ios=") for text in jobs)
    assert len(set(seeds)) == len(seeds) == sections


def test_forced_writes_flushes_and_trims_are_jobs_of_their_own(tmp_path):
    uri = "nbd+unix:///?socket=/tmp/nbd.sock"
    where = plan.target(uri, SIZE)
    jobs = {load.name: plan.job(load, where) for load in plan.experiments(where)}
    assert "rw=randwrite" in jobs["fua-depth1"]
    assert "sync=dsync" in jobs["fua-depth1"]
    assert "rw=randwrite\nfsync=1" in jobs["flush-depth1"]
    assert "rw=randtrim" in jobs["trim-depth1"]
    assert f"ioengine=nbd\nuri={uri}\nsize={SIZE}" in jobs["trim-write"]
    assert "size=8M" in jobs["read-range-8m"]
    keys = {load.name: plan.identifies(load) for load in plan.experiments(where)}
    assert keys["fua-depth1"] == keys["flush-depth1"] == ["buffer.power_loss_protection"]
    of_file = plan.experiments(plan.target(tmp_path / "drive", SIZE))
    assert not any(load.name.startswith("trim-") for load in of_file), "fio cannot trim files"


def test_a_plan_of_a_network_device_prepares_it_with_jobs(tmp_path, written):
    _, environment = written
    where = plan.target("nbd://localhost", SIZE)
    plan.write(tmp_path / "net", where, dilation=10)
    done = measure(tmp_path / "net", environment, "--yes")
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "net" / "calls").read_text().splitlines()
    order = [call.split()[-1] for call in calls if call.startswith("--output")]
    assert order[-5:] == ["empty.fio", "filled.fio", "refilled.fio", "steady.fio", "trimmed.fio"]
    assert order.count("trimmed.fio") == 1
    manifest = json.loads((tmp_path / "net" / plan.RESULTS / plan.MANIFEST).read_text())
    assert manifest["dilation"] == 10


def test_the_script_asks_and_resumes_after_an_interrupt(written):
    place, environment = written
    asked = measure(place, environment)
    assert asked.returncode == 1
    assert "nothing was done" in asked.stderr
    assert not (place / "calls").exists()
    stopped = measure(place, {**environment, "FAIL_AT": "30"}, "--yes")
    assert stopped.returncode != 0
    there = {path.stem for path in (place / plan.RESULTS).glob("*.json")}
    assert 0 < len(there) < len(plan.experiments(plan.target("drive", SIZE)))
    done = measure(place, environment, "--yes")
    assert done.returncode == 0, done.stderr
    calls = (place / "calls").read_text().splitlines()
    measured = [call.split()[0] for call in calls if call.startswith("--section") and "warmup" not in call]
    repeated = len(measured) - len(set(measured))
    assert repeated <= 1, "the one that was interrupted"
    assert {f"--section={load.name}" for load in plan.experiments(plan.target("drive", SIZE))} == set(
        measured
    )
    assert sum(call.endswith(" filled.fio") for call in calls) == 1
    assert sum(call.endswith(" refilled.fio") for call in calls) == 1
    assert sum(call.endswith("steady.fio") for call in calls) == 1


def test_a_plan_that_only_reads_prepares_nothing(tmp_path, written):
    _, environment = written
    plan.write(tmp_path / "reads", plan.target(tmp_path / "drive", SIZE), read_only=True)
    done = measure(tmp_path / "reads", environment)
    assert done.returncode == 0, done.stderr
    assert not any("write" in path.name for path in (tmp_path / "reads").glob("*.fio"))
    assert "steady.fio" not in (tmp_path / "reads/calls").read_text()


def test_targets_that_cannot_be_measured(tmp_path):
    with pytest.raises(FlashtwinError, match="a new file needs --size"):
        plan.target(tmp_path / "nothing")
    with pytest.raises(FlashtwinError, match="neither a block device nor a file"):
        plan.target(tmp_path)
    with pytest.raises(FlashtwinError, match="give a target of 256 MiB or more"):
        plan.target(tmp_path / "small", 1 << 20)
    with pytest.raises(FlashtwinError, match="a network block device needs --size"):
        plan.target("nbd://localhost")


def test_a_device_is_checked_against_results(tmp_path, cli):
    where = plan.target(tmp_path / "drive", SIZE)
    assert (
        cli("calibrate", "plan", "--target", where.path, "--size", "256M", "-o", tmp_path / "p").returncode
        == 0
    )
    results = tmp_path / "results"
    results.mkdir()
    (results / plan.MANIFEST).write_text(json.dumps({"capacity_bytes": SIZE}))
    for name, us in (("read-size-4k", 80), ("read-size-8k", 1)):
        percentiles = {"50.000000": us * 1000}
        read = {"total_ios": 1000, "bw_bytes": 4096e6 / us, "clat_ns": {"percentile": percentiles}}
        (results / f"{name}.json").write_text(json.dumps({"jobs": [{"read": read}]}))
    wide = cli("calibrate", "check", "demo", results, "--bound", "1e9")
    assert wide.returncode == 0, wide.stderr
    narrow = cli("calibrate", "check", "demo", results, "--bound", "20", "--json")
    assert narrow.returncode == 1
    off = {row["figure"]: row["error_percent"] for row in json.loads(narrow.stdout)}
    assert off["read-size-8k/read.p50_us"] > 100
