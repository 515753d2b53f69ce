"""Results of experiments: logs of fio and tables of figures, and the messages about bad ones."""

import json
import subprocess

import pytest

import flashtwin
from calibration import SMALL
from clients import need
from flashtwin.calibrate import loads, plan
from flashtwin.calibrate.fit import fit
from flashtwin.calibrate.modelled import save_results
from flashtwin.calibrate.parameters import Profile
from flashtwin.calibrate.results import read_results
from flashtwin.cli import main

AGAIN = "remove it and run b again: the plan's run.sh keeps the others"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"capacity_bytes": 1 << 30}))
    return tmp_path


def test_logs_give_percentiles_and_bandwidths(folder):
    lines = [f"{10 * n}, {1000 * n}, {n % 2}, 4096, 0, 0" for n in range(1, 1001)]
    (folder / "beside-2_clat.1.log").write_text("\n".join(lines) + "\n")
    (folder / "beside-2_lat.1.log").write_text("0, 1, 0, 4096, 0\n")
    (folder / "read-stride-16k_clat.1.log").write_text("200, 1000, 0, 4096, 0\n")
    # Bandwidth of two jobs in KiB/s, averaged over windows of 500 ms.
    (folder / "read-stride-16k_bw.1.log").write_text("500, 1000, 0, 0, 0\n1000, 3000, 0, 0, 0\n")
    (folder / "read-stride-16k_bw.2.log").write_text("1000, 500, 0, 0, 0\n")
    found = read_results(folder, {"read-stride-16k"})
    assert found.requests == {"beside-2": 1000, "read-stride-16k": 1}
    assert found.figures["beside-2/write.p50_us"] == 499
    assert found.figures["beside-2/read.p99_us"] == 990
    assert "beside-2/read.p99.5_us" not in found.figures
    assert found.figures["beside-2/mb_per_s"] == pytest.approx(1000 * 4096 / 10e6)
    assert found.figures["read-stride-16k/mb_per_s"] == pytest.approx(2500 * 1024 / 1e6)
    assert "read-stride-16k/read.p50_us" not in found.figures


def test_logs_and_summary_of_one_run_of_fio_agree(folder, tmp_path):
    need("fio")
    job = (
        f"fio --name=read-depth-2 --filename={tmp_path}/drive --size=8M --rw=randread --bs=4k "
        f"--number_ios=2000 --io_size=64M --write_lat_log={folder}/read-depth-2 --ioengine=psync "
        f"--write_bw_log={folder}/read-depth-2 --output-format=json+ --thinktime=100 "
        f"--percentile_list=50:90 --output={folder}/read-depth-2.json"
    )
    subprocess.run(job.split(), check=True, timeout=60)
    summary = read_results(folder, ())
    (folder / "read-depth-2.json").unlink()
    logs = read_results(folder, ())
    assert logs.requests == summary.requests
    for figure, value in summary.figures.items():
        assert logs.figures[figure] == pytest.approx(value, rel=0.05), figure


def test_flushes_and_trims_are_figures_in_device_time(folder):
    (folder / "manifest.json").write_text(json.dumps({"capacity_bytes": 1 << 30, "dilation": 10}))
    slow = {"percentile": {"50.000000": 20_000, "90.000000": 500_000}}
    write = {"total_ios": 100, "bw_bytes": 1e6, "clat_ns": slow}
    jobs = {
        "flush-depth1": {"write": write, "sync": {"total_ios": 100, "lat_ns": slow}},
        "trim-depth1": {"trim": {"total_ios": 100, "bw_bytes": 1e9, "clat_ns": slow}},
        "fua-depth1": {"write": write, "sync": {"total_ios": 0}},
    }
    for name, job in jobs.items():
        (folder / f"{name}.json").write_text(json.dumps({"jobs": [job]}))
    assert read_results(folder, ()).figures == {
        "flush-depth1/write.p50_us": 2,
        "flush-depth1/write.p90_us": 50,
        "flush-depth1/flush.p90_us": 50,
        "trim-depth1/trim.p90_us": 50,
        "fua-depth1/mb_per_s": 10,
        "fua-depth1/write.p50_us": 2,
        "fua-depth1/write.p90_us": 50,
    }


def test_a_table_gives_published_figures(folder):
    (folder / "published.csv").write_text(
        "experiment,figure,value\nread-depth-8,read.p99_us,153\n\nwrite-random,mb_per_s,412.5\n"
    )
    found = read_results(folder, ())
    assert found.figures == {"read-depth-8/read.p99_us": 153, "write-random/mb_per_s": 412.5}
    assert found.requests == {"read-depth-8": 0, "write-random": 0}


def test_a_device_is_checked_against_a_table(folder, capsys):
    (folder / "published.csv").write_text("experiment,figure,value\nread-size-4k,read.p50_us,1\n")
    assert main(["calibrate", "check", "demo", str(folder), "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["figure"] == "read-size-4k/read.p50_us"


def test_the_requests_of_results_of_a_device_of_ours_are_replayed(folder, cli):
    device = folder / "hidden.toml"
    device.write_text(Profile(SMALL, 1 << 30).spec().to_toml())
    some = [load for load in loads.writes(1 << 30) if load.name in ("write-random", "beside-2")]
    save_results(flashtwin.device(device), some, folder, seed=5, times=1, said=lambda _: None)
    # fio's bins are a hundredth wide.
    same = cli("calibrate", "check", device, folder, "--bound", "1.5")
    assert same.returncode == 0, same.stdout
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"seed": 6}))
    assert cli("calibrate", "check", device, folder, "--bound", "1.5").returncode == 1


def test_a_missing_experiment_of_the_plan_is_named_with_its_command(folder, cli):
    where = plan.target(folder / "drive", 256 << 20)
    plan.write(folder, where, read_only=True)
    results = folder / plan.RESULTS
    for load in loads.reads()[1:-1]:
        (results / f"{load.name}.json").write_text('{"jobs": [{}]}')
    done = cli("calibrate", "fit", results, "-o", folder / "x.toml")
    assert done.returncode == 2
    told = "missing (and 1 more); run the plan's run.sh again: it keeps finished experiments"
    assert f"{results}/read-size-4k.json: {told}" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"filename": "/dev/sda", "size": "2097152"},
            "b.json: of 2097152 bytes, but manifest.json has a drive of 1073741824; " + AGAIN,
        ),
        (
            {"uri": "nbd://two", "size": "1073741824"},
            "b.json: of another drive (nbd://two) than a.json (/dev/sda); " + AGAIN,
        ),
    ],
)
def test_results_of_another_drive_are_refused(folder, options, message):
    for name, each in (("a", {"filename": "/dev/sda", "size": "1073741824"}), ("b", options)):
        text = json.dumps({"global options": each, "jobs": [{"job options": {"rw": "read"}}]})
        (folder / f"{name}.json").write_text(text)
    with pytest.raises(flashtwin.FlashtwinError) as e:
        read_results(folder, ())
    assert str(e.value) == f"{folder}/{message}"


def test_results_of_a_drive_of_another_size_are_refused_by_their_writes(folder):
    fill = next(load for load in loads.writes(1 << 30) if load.name == "write-fill-80")
    spec = Profile(SMALL, 1 << 30).spec()
    save_results(spec, [fill], folder, seed=1, times=1, said=lambda _: None)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"capacity_bytes": 1 << 29}))
    with pytest.raises(flashtwin.FlashtwinError) as e:
        fit(read_results(folder, ()))
    assert str(e.value) == (
        f"{folder}/write-fill-80.json: 6553 requests, where the drive of 536870912 bytes in manifest.json "
        "gives 3276; remove it and run write-fill-80 again: the plan's run.sh keeps the others"
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", 0, "seed: give a number of 1 or more"),
        ("experiments", ["x"], "experiments: give a list of objects with a name"),
    ],
)
def test_a_bad_manifest_is_reported(folder, key, value, message):
    (folder / "manifest.json").write_text(json.dumps({"capacity_bytes": 1 << 30, key: value}))
    with pytest.raises(flashtwin.FlashtwinError) as e:
        read_results(folder, ())
    assert str(e.value) == f"{folder}/manifest.json: {message}"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "x_clat.1.log",
            "1, 2, 0, 4096, 0\n7, 8",
            "x_clat.1.log:2: no line of a log of fio (time, value, direction, size); run it again",
        ),
        (
            "x_lat.1.log",
            "1, 2, 0, 0, 0",
            "x_lat.1.log:1: an average, without percentiles: run it again without log_avg_msec",
        ),
        ("t.csv", "x,y\n", "t.csv:1: give a first line of experiment,figure,value"),
        (
            "t.csv",
            "experiment,figure,value\nx,mb_per_s\n",
            "t.csv:2: 2 columns: give experiment,figure,value",
        ),
        (
            "t.csv",
            "experiment,figure,value\nx,mb_per_s,fast\n",
            "t.csv:2: value 'fast': give a number above 0",
        ),
        (
            "t.csv",
            "experiment,figure,value\nx,mb_per_s,1\nx,mb_per_s,2\n",
            "t.csv:3: x, mb_per_s is given twice: remove one",
        ),
    ],
)
def test_bad_logs_and_tables_name_file_and_line(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(flashtwin.FlashtwinError) as e:
        read_results(folder, ())
    assert str(e.value).endswith(message)


def test_an_unknown_figure_lists_the_known_ones(folder):
    (folder / "t.csv").write_text("experiment,figure,value\nx,read.p42_us,1\n")
    with pytest.raises(
        flashtwin.FlashtwinError, match=r"t\.csv:2: 'read\.p42_us' is not a figure; available: mb_per_s, "
    ):
        read_results(folder, ())


def test_an_experiment_has_one_source(folder):
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("experiment,figure,value\nx,mb_per_s,1\n")
    with pytest.raises(flashtwin.FlashtwinError, match=r"b\.csv: x is in a\.csv, too: remove one"):
        read_results(folder, ())


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.csv", b"experiment,figure,value\nread-\xca,mb_per_s,1e\n", "value '1e': give a number above 0"),
        ("x.csv", b'experiment,figure,value\n"' + b"a" * 200_000, "field larger than field limit"),
        ("x.json", b"[1]", "no object of JSON"),
        ("x.json", b"[" * 100_000, "no JSON"),
        ("x.json", b'{"jobs": {"0": 1}}', "no summary of fio"),
        ("x.json", b'{"jobs": [{"read": {"total_ios": 5}}]}', "no summary of fio"),
        ("x.json", b'{"jobs": [{"read": {"total_ios": 1e999}}]}', "no summary of fio"),
    ],
)
def test_bad_results_are_reported(folder, name, data, said):
    (folder / name).write_bytes(data)
    with pytest.raises(flashtwin.FlashtwinError, match=said) as error:
        read_results(folder, ())
    assert str(folder / name) in str(error.value)
