"""Sweeps: the same bytes with any number of workers; finished cells are kept; errors have a line."""

import errno
import io
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin import _core
from flashtwin._results.dataset import figures_of
from flashtwin._support import folders
from flashtwin._sweep import engine, work
from flashtwin._sweep.cells import cells_of
from flashtwin._sweep.experiment import read_experiment

EXPERIMENT = {
    "devices": ["demo"],
    "policies": ["lru", "gcar-lru", "cflru:window=0.5"],
    "workloads": [LOAD],
    "seeds": [1, 2],
    "parameters": {"buffer.capacity": ["256 KiB", "1 MiB"]},
    "set": SMALL,
}
CELLS = 12


def toml(path, **changes):
    """Write the experiment to a file."""
    lines = []
    tables = []
    for key, value in {**EXPERIMENT, **changes}.items():
        if isinstance(value, dict):
            tables += [f"[{key}]", *(f"{k} = {json.dumps(v)}" for k, v in value.items())]
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    path.write_text("\n".join(lines + tables) + "\n")
    return path


def dataset(directory):
    return (Path(directory) / "results.parquet").read_bytes()


def finished(directory):
    return sorted((Path(directory) / "cells").glob("*.cell"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Create the directory of a sweep that ran without interruption."""
    directory = tmp_path_factory.mktemp("whole") / "sweep"
    flashtwin.sweep(EXPERIMENT, directory, threads=1)
    return directory


def row_of(row):
    return row["policy"], row["set_buffer_capacity"], row["seed"]


def test_a_row_equals_its_run(whole):
    rows = pq.read_table(whole / "results.parquet").to_pylist()
    axes = [row_of(row) for row in rows]
    assert axes == list(itertools.product(EXPERIMENT["policies"], ["256 KiB", "1 MiB"], [1, 2]))
    for row in (rows[0], rows[7]):
        options = {**SMALL, "buffer.capacity": row["set_buffer_capacity"]}
        alone = flashtwin.run(LOAD, "demo", set=options, policy=row["policy"], seed=row["seed"])
        expected = figures_of(alone.summary)
        assert {name: row[name] for name in expected} == expected
        assert row["status"] == "ok"
        assert row["error"] is None
        assert row["flashtwin_version"] == flashtwin.__version__
        spec = flashtwin.device("demo", options, "cflru" if ":" in row["policy"] else row["policy"])
        if ":" not in row["policy"]:
            assert row["device_toml"] == spec.to_toml()


def test_threads_processes_and_toml_give_the_same_bytes(whole, tmp_path):
    flashtwin.sweep(toml(tmp_path / "e.toml"), tmp_path / "threads", threads=3)
    assert dataset(tmp_path / "threads") == dataset(whole)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        flashtwin.sweep(EXPERIMENT, tmp_path / "pool", executor=pool)
    assert dataset(tmp_path / "pool") == dataset(whole)
    assert [p.read_bytes() for p in finished(tmp_path / "pool")] == [p.read_bytes() for p in finished(whole)]


def test_dask_gives_the_same_bytes_when_a_worker_is_killed(whole, tmp_path):
    import distributed

    killed = []

    def kill_one(progress):
        if progress.done >= 3 and not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        flashtwin.sweep(EXPERIMENT, tmp_path / "dask", dask=client, progress=kill_one)
    assert killed
    assert dataset(tmp_path / "dask") == dataset(whole)


def test_dask_from_the_command_line(whole, tmp_path, cli):
    result = cli("sweep", toml(tmp_path / "e.toml"), "-o", tmp_path / "out", "--dask", "local:2")
    assert result.returncode == 0, result.stderr
    assert dataset(tmp_path / "out") == dataset(whole)


def test_kill_9_three_times_loses_and_repeats_nothing(tmp_path):
    longer = LOAD.replace("3000", "150000")
    experiment = toml(tmp_path / "e.toml", workloads=[longer])
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flashtwin.cli", "sweep", str(experiment), "-o", str(out)]
    kept = {}
    for least in (1, 3, 5):
        with subprocess.Popen([*command, "--threads", "2"], stderr=subprocess.PIPE) as process:
            while len(finished(out)) < least and process.poll() is None:
                time.sleep(0.002)
            process.kill()
            said = process.stderr.read()
        assert process.returncode == -signal.SIGKILL, said
        assert not (out / "results.parquet").exists()
        # Cells that were finished before still have the same files.
        assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())
        kept = {path: path.stat().st_mtime_ns for path in finished(out)}
    (out / "cells" / f".0.cell.flashtwin-{process.pid}-{0:016x}.partial").write_text("half")
    (out / "cells" / "thesis.2024.partial").write_text("another program's")
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert f"{CELLS} cells: {len(kept)} found finished" in result.stderr
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())
    assert [path.name for path in (out / "cells").glob("*.partial")] == ["thesis.2024.partial"]
    flashtwin.sweep(experiment, tmp_path / "undisturbed")
    assert dataset(out) == dataset(tmp_path / "undisturbed")


def test_a_full_disk_loses_nothing_finished(whole, tmp_path, monkeypatch):
    room = [5]
    whole_file = folders.whole_file

    class Full(io.BytesIO):
        def write(self, data):
            self.file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def small_disk(path, what):
        with whole_file(path, what) as file:
            room[0] -= 1
            if room[0] < 0:
                full = Full()
                full.file = file
                yield full
            else:
                yield file

    monkeypatch.setattr(folders, "whole_file", small_disk)
    with pytest.raises(flashtwin.FlashtwinError, match="No space left on device; free some space"):
        flashtwin.sweep(EXPERIMENT, tmp_path / "out", threads=2)
    assert len(finished(tmp_path / "out")) == 5
    room[0] = 1000
    seen = []
    flashtwin.sweep(EXPERIMENT, tmp_path / "out", progress=lambda p: seen.append(p.found))
    assert seen[-1] == 5
    assert dataset(tmp_path / "out") == dataset(whole)


def test_a_full_disk_for_the_dataset_is_reported_and_repaired(whole, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flashtwin.cli", "sweep", str(toml(tmp_path / "e.toml")), "-o", str(out)]
    largest = max(path.stat().st_size for path in finished(whole))
    assert largest < len(dataset(whole))
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
    )
    assert result.returncode == 2
    assert "cannot write the results: File too large" in result.stderr
    assert len(finished(out)) == CELLS
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert f"{CELLS} found finished, 0 run" in again.stderr
    assert dataset(out) == dataset(whole)


def test_damaged_cells_are_computed_anew(whole, tmp_path):
    out = tmp_path / "out"
    flashtwin.sweep(EXPERIMENT, out)
    cut, flipped, emptied = finished(out)[:3]
    cut.write_bytes(cut.read_bytes()[:-7])
    flipped.write_bytes(flipped.read_bytes().replace(b'"mean_us":', b'"mean_ut":', 1))
    emptied.write_bytes(b"")
    seen = []
    flashtwin.sweep(EXPERIMENT, out, progress=lambda p: seen.append(p.found))
    assert seen[-1] == CELLS - 3
    assert dataset(out) == dataset(whole)


def test_ctrl_c_keeps_finished_cells(tmp_path):
    experiment = toml(tmp_path / "e.toml", workloads=[LOAD.replace("3000", "500000")])
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flashtwin.cli", "sweep", str(experiment), "-o", str(out)]
    with subprocess.Popen(
        [*command, "--threads", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not finished(out) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "repeat the command to continue" in said
    rows = pq.read_table(out / "results.parquet").num_rows
    assert 1 <= rows == len(finished(out)) < CELLS


def test_sweep_reads_a_table_with_columns_and_compact_addresses(tmp_path):
    """The columns of the trace have unusual names, and its second page is beyond the device."""
    table = tmp_path / "table.csv"
    table.write_text("".join(f"{i};{'RD' if i % 4 else 'WR'};{i % 2 << 50};4096\n" for i in range(400)))
    mapping = {
        "devices": ["demo"],
        "workloads": [str(table)],
        "policies": ["lru"],
        "run": {"precondition": "sequential"},
        "trace": {"columns": "time=1:ms,op=2:read=RD,offset=3,size=4", "addresses": "compact"},
    }
    found = flashtwin.sweep(mapping, tmp_path / "out")
    assert found.failed == 0
    assert [found.table[name].to_pylist() for name in ("read_requests", "write_requests")] == [[300], [100]]


def test_a_cell_that_fails_is_a_row_and_is_tried_again(tmp_path, cli):
    beyond = tmp_path / "beyond.csv"
    beyond.write_text(f"time_us,op,offset_bytes,size_bytes\n0,W,{1 << 50},4096\n")
    experiment = toml(tmp_path / "e.toml", workloads=["beyond.csv", LOAD])
    result = cli("sweep", experiment, "-o", tmp_path / "out")
    assert result.returncode == 1, result.stderr
    assert f"failed: {CELLS} of {2 * CELLS} cells: " in result.stderr
    found = flashtwin.results(tmp_path / "out")
    assert found.failed == CELLS
    rows = found.table.to_pylist()
    assert {row["workload"] for row in rows if row["status"] == "failed"} == {"beyond.csv"}
    assert all("beyond" in row["error"] for row in rows if row["status"] == "failed")
    assert all(row["all_mean_us"] is None for row in rows if row["status"] == "failed")
    beyond.write_text(beyond.read_text().replace(str(1 << 50), "0"))
    again = cli("sweep", experiment, "-o", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert f"{CELLS} found finished, {CELLS} run" in again.stderr


def test_when_every_cell_fails_there_are_only_errors(tmp_path, cli):
    beyond = tmp_path / "beyond.csv"
    beyond.write_text(f"time_us,op,offset_bytes,size_bytes\n0,W,{1 << 50},4096\n")
    experiment = toml(tmp_path / "e.toml", workloads=["beyond.csv"])
    assert cli("sweep", experiment, "-o", tmp_path / "out").returncode == 1
    shown = cli("results", "show", tmp_path / "out")
    assert shown.returncode == 0, shown.stderr
    assert f"failed: {CELLS} of {CELLS} cells" in shown.stdout
    report = cli("report", tmp_path / "out", "-o", tmp_path / "report.html")
    assert report.returncode == 2
    assert "no cell finished" in report.stderr


def test_a_panic_of_one_cell_does_not_stop_the_others(tmp_path, monkeypatch):
    run_cell = engine.run_cell

    class Panic(BaseException):
        pass

    def panics(job, *rest):
        if job.identity["label"] == "gcar-lru":
            raise Panic("index out of bounds")
        return run_cell(job, *rest)

    monkeypatch.setattr(engine, "run_cell", panics)
    found = flashtwin.sweep(EXPERIMENT, tmp_path / "out")
    assert found.failed == CELLS // 3
    assert "Panic: index out of bounds" in repr(found)


def test_work_that_was_stopped_has_no_result():
    cell = cells_of(read_experiment({**EXPERIMENT, "run": {"precondition": "random"}}))[0]
    control = _core.Control()
    control.stop()
    with pytest.raises(work.StoppedError):
        work.run_cell(cell.job, None, control)
    with pytest.raises(work.StoppedError):
        work.make_state(cell.state, control)


def test_each_state_is_made_once(tmp_path, monkeypatch):
    made = []
    make_state = engine.make_state
    monkeypatch.setattr(engine, "make_state", lambda job, c: made.append(job.seed) or make_state(job, c))
    flashtwin.sweep(EXPERIMENT, tmp_path / "out", threads=3)
    assert sorted(made) == [1, 2]


def test_arrays_are_swept_from_a_state_too(tmp_path):
    set_ = {"member.geometry.blocks_per_plane": 64, "member.geometry.chips": 4, "array.members": "demo*3"}
    load = "uniform:write=0.7,requests=500"
    experiment = {
        "devices": ["raid5-array"],
        "policies": ["lru", "gcar-lru"],
        "workloads": [load],
        "set": set_,
    }
    found = flashtwin.sweep(experiment, tmp_path / "out")
    assert found.failed == 0, repr(found)
    alone = flashtwin.run(load, "raid5-array", set=set_, policy="gcar-lru")
    assert found.table["all_mean_us"][1].as_py() == alone.latency["mean_us"]


def test_keys_know_the_version_and_the_content_of_a_trace(trace, tmp_path, monkeypatch):
    copy = tmp_path / "trace.csv"
    copy.write_bytes(trace.read_bytes())
    experiment = {"devices": ["demo"], "workloads": [str(copy)], "set": SMALL}
    out = tmp_path / "out"

    def cell():
        return flashtwin.sweep(experiment, out).table["cell"][0].as_py()

    first = cell()
    moved = tmp_path / "other.csv"
    moved.write_bytes(copy.read_bytes())
    experiment["workloads"] = [str(moved)]
    assert cell() == first
    moved.write_bytes(copy.read_bytes() + b"2800001,R,0,4096\n")
    changed = cell()
    assert changed != first
    monkeypatch.setattr(_core, "__version__", "0.0.0")
    assert cell() not in (first, changed)


def test_settings_of_the_run_can_be_swept(tmp_path):
    experiment = {**EXPERIMENT, "policies": ["lru"], "parameters": {"run.queue_depth": [1, 8]}, "seeds": [4]}
    found = flashtwin.sweep(experiment, tmp_path / "out")
    assert found.table["run_queue_depth"].to_pylist() == [1, 8]
    assert found.table["pacing"].to_pylist() == [f"closed loop at queue depth {n}" for n in (1, 8)]
    assert found.baseline == {"run_queue_depth": 1}


def test_urls_of_fsspec_hold_traces_and_results(trace, tmp_path, monkeypatch):
    import fsspec

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    experiment = {"devices": ["demo"], "workloads": [str(trace)], "set": SMALL}
    here = flashtwin.sweep(experiment, tmp_path / "here")
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/trace.csv", trace.read_bytes())
    there = flashtwin.sweep({**experiment, "workloads": ["memory://bucket/trace.csv"]}, "memory://bucket/out")
    assert there.table.drop(["workload"]).equals(here.table.drop(["workload"]))
    assert len(list((tmp_path / "cache" / "flashtwin" / "traces").iterdir())) == 1
    seen = []
    memory.rm("/bucket/out/results.parquet")
    again = flashtwin.sweep(
        {**experiment, "workloads": ["memory://bucket/trace.csv"]},
        "memory://bucket/out",
        progress=lambda p: seen.append(p.found),
    )
    assert seen[-1] == 1
    assert again.table.equals(there.table)


def test_logs_of_requests_are_kept_on_request(tmp_path):
    import fsspec

    asked = {**EXPERIMENT, "policies": ["lru"], "seeds": [1]}
    out = tmp_path / "out"
    flashtwin.sweep(asked, out)
    assert not (out / "requests").exists()
    asked["run"] = {"requests_log": True}
    seen = []
    found = flashtwin.sweep(asked, out, progress=lambda p: seen.append(p.found))
    # The cells were finished without their logs.
    assert seen[-1] == 0
    for row in found.table.to_pylist():
        log = pq.read_table(out / "requests" / f"{row['cell']}.parquet")
        assert log.num_rows == row["all_requests"]
        mean_us = sum(log["response_ps"].to_pylist()) / log.num_rows * 1e-6
        assert mean_us == pytest.approx(row["all_mean_us"])
    flashtwin.sweep(asked, out, progress=lambda p: seen.append(p.found))
    assert seen[-1] == 2
    flashtwin.sweep(asked, "memory://logs/out")
    memory = fsspec.filesystem("memory")
    for path in (out / "requests").iterdir():
        assert memory.cat_file(f"/logs/out/requests/{path.name}") == path.read_bytes()


def test_one_directory_takes_one_sweep_at_a_time(tmp_path):
    def meet(progress):
        with pytest.raises(flashtwin.FlashtwinError, match="another sweep is writing here"):
            flashtwin.sweep(EXPERIMENT, tmp_path / "out")

    flashtwin.sweep({**EXPERIMENT, "seeds": [1]}, tmp_path / "out", progress=meet)


def test_a_worker_of_another_version_does_nothing(monkeypatch):
    cell = cells_of(read_experiment(EXPERIMENT))[0]
    monkeypatch.setattr(_core, "__version__", "0.0.0")
    for do in (lambda: work.make_state(cell.state), lambda: work.run_cell(cell.job, None)):
        with pytest.raises(flashtwin.FlashtwinError, match=r"this worker has flashtwin 0\.0\.0"):
            do()


@pytest.mark.parametrize("where", ["nonsense", "ssh", "local:0", "local:x", "slurm"])
def test_missing_dask_is_reported(tmp_path, where):
    with pytest.raises(flashtwin.FlashtwinError, match="--dask"):
        flashtwin.sweep(EXPERIMENT, tmp_path / "out", dask=where)
