"""Formats of fio and HdrHistogram: bins equal those of fio, and numbers equal those of the run."""

import json
import math
import re
import shutil
import subprocess

import pytest

import flashtwin
from conftest import SMALL
from flashtwin.fio import bins
from flashtwin.fio.text import number

LOAD = "zipf:theta=0.9,write=0.6,trim=0.05,flush=0.02,size=4096,requests=4000"


@pytest.fixture(scope="module")
def result():
    return flashtwin.run(LOAD, "demo", set=SMALL, pacing=flashtwin.ClosedLoop(8), log=True)


def latencies(result, op):
    """Return the response times of all requests of the kind `op`, in ns."""
    rows = result.requests.to_pydict()
    return [ps / 1000 for ps, what in zip(rows["response_ps"], rows["op"], strict=True) if what == op]


# Percentiles printed by fio 3.33, which are middles of bins.
FIO_PRINTED = (302, 326, 338, 386, 418, 524, 652, 772, 892, 980, 1512, 1752, 2192, 2640, 5664, 5728)


def test_bins_are_those_of_fio():
    for middle in FIO_PRINTED:
        assert bins.middle_of(bins.index_of(middle)) == middle
    assert [bins.index_of(ns) for ns in (0, 1, 127, 128, 129, 130, 255, 256, 260)] == [
        0, 1, 127, 128, 128, 129, 191, 192, 193
    ]  # fmt: skip
    # Bins are adjacent. In each octave they are twice as wide as in the octave below.
    for index in range(1855):
        middle = bins.middle_of(index)
        assert bins.index_of(middle) == index
        assert bins.index_of(middle - 1) <= index <= bins.index_of(middle + 1)
    assert bins.index_of(10**13) == 1855


def test_counts_are_those_that_fio_would_have_of_these_requests(result):
    job = json.loads(result.to_fio_json())["jobs"][0]
    for op in ("read", "write"):
        exact = latencies(result, op)
        assert len(set(exact)) > 100
        expected = {}
        for ns in sorted(exact):
            middle = str(bins.middle_of(bins.index_of(round(ns))))
            expected[middle] = expected.get(middle, 0) + 1
        clat = job[op]["clat_ns"]
        assert clat["bins"] == expected
        assert clat["N"] == job[op]["total_ios"] == len(exact)
        assert clat["max"] == pytest.approx(max(exact), abs=1)
        assert 0 <= min(exact) - clat["min"] + 1 <= min(exact) / 1000 + 1
        assert clat["mean"] == pytest.approx(sum(exact) / len(exact), rel=1e-6)
        for percent, ns in clat["percentile"].items():
            ranked = sorted(exact)[max(0, math.ceil(float(percent) / 100 * len(exact)) - 1)]
            assert bins.index_of(round(ranked)) == bins.index_of(ns), percent
        assert list(clat["percentile"])[-3:] == ["99.900000", "99.950000", "99.990000"]
        assert job[op]["iops"] == pytest.approx(len(exact) / result.summary["span_s"], rel=1e-5)
        assert job[op]["bw"] == pytest.approx(job[op]["iops"] * 4, rel=1e-3)
        assert job[op]["lat_ns"]["mean"] == clat["mean"]
    assert job["trim"]["total_ios"] == result.summary["counts"]["trims"]["requests"] > 0
    assert job["sync"]["total_ios"] == result.summary["counts"]["flushes"]["requests"] > 0
    below = sum(ns < 10_000_000 for op in ("read", "write") for ns in latencies(result, op))
    listed = [*job["latency_ns"].values(), *job["latency_us"].values()]
    listed += [job["latency_ms"][limit] for limit in ("2", "4", "10")]
    assert sum(listed) == pytest.approx(below / result.latency["requests"] * 100, abs=0.1)
    everything = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
    assert sum(everything) == pytest.approx(100, abs=1e-3)
    options = {"name": "zipf", "ioengine": "flashtwin", "filename": "demo", "rw": "randrw", "bs": "4096"}
    assert job["job options"] == options | {"iodepth": "8", "rwmixread": job["job options"]["rwmixread"]}


def test_a_script_of_fio_reads_it(result, tmp_path):
    script = shutil.which("fio_jsonplus_clat2csv")
    if script is None:
        pytest.skip("no fio to try its scripts of")
    (tmp_path / "out.json").write_text(result.to_fio_json())
    for options in ([], ["--validate"]):
        command = [script, *options, "out.json", "out.csv"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    rows = (tmp_path / "out_job0.csv").read_text().splitlines()
    assert rows[0].startswith("nsec, ")
    assert len(rows) > 100


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (7243.6, "7243"), (373_500, "374k"), (907_400, "907k"), (14_640, "14.6k"), (14_970, "15.0k")],
)
def test_numbers_are_formatted_as_by_fio(value, said):
    assert number(value) == said


def test_the_text_has_fios_lines(result, cli):
    done = cli("run", "--workload", LOAD, "--device", "demo", "--queue-depth", 8, "--fio", "text",
               *(word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == result.to_fio()
    text = result.to_fio()
    iops = result.summary["counts"]["reads"]["requests"] / result.summary["span_s"]
    assert f"  read: IOPS={number(iops)}, BW=" in text
    assert re.search(r"^    clat \(usec\): min=\d+, max=\d+, avg=[\d.]+, stdev=[\d.]+$", text, re.MULTILINE)
    assert re.search(r"^     \|  1\.00th=\[ *\d+\],  5\.00th=\[ *\d+\], 10\.00th=", text, re.MULTILINE)
    assert re.search(r"^  WRITE: bw=[\d.]+[KM]iB/s \([\d.]+[kM]B/s\), .*run=\d+-\d+msec$", text, re.MULTILINE)
    counts = [result.summary["counts"][kind]["requests"] for kind in ("reads", "writes", "trims", "flushes")]
    assert f"issued rwts: total={','.join(map(str, counts))} short" in text


def read_hgrm(path):
    rows = []
    for line in path.read_text().splitlines()[2:]:
        if line.startswith("#["):
            rows.append(tuple(float(n) for n in re.findall(r"= +([\d.]+)", line)))
        else:
            rows.append(tuple(float(cell) for cell in line.split()))
    return rows


def test_hgrm_matches_the_log(result, tmp_path):
    written = result.save_hgrm(tmp_path / "x.hgrm")
    assert [path.name for path in written] == ["x.hgrm", "x.read.hgrm", "x.write.hgrm"]
    for path, ops in zip(written, (("read", "write"), ("read",), ("write",)), strict=True):
        exact = sorted(ns for op in ops for ns in latencies(result, op))
        *rows, mean, most, buckets = read_hgrm(path)
        # HdrHistogram's levels: five for each halving of the distance to 100 %.
        levels = [
            0,
            0.1,
            0.2,
            0.3,
            0.4,
            0.5,
            0.55,
            0.6,
            0.65,
            0.7,
            0.75,
            0.775,
            0.8,
            0.825,
            0.85,
            0.875,
            0.8875,
        ]
        assert [row[1] for row in rows[: len(levels)]] == pytest.approx(levels)
        for value, level, seen, *beyond in rows:
            ranked = exact[max(0, math.ceil(level * len(exact)) - 1)]
            assert value * 1000 == pytest.approx(ranked, rel=2e-3, abs=1)
            assert seen == sum(round(ns) <= value * 1000 + 1e-6 for ns in exact)
            assert beyond == ([] if level == 1 else [pytest.approx(1 / (1 - level), abs=0.006)])
        assert rows[-1][1:] == (1.0, len(exact))
        assert mean[0] == pytest.approx(sum(exact) / len(exact) / 1000, abs=0.001)
        assert most == (pytest.approx(exact[-1] / 1000, abs=0.001), len(exact))
        assert buckets == (32, 2048)


def test_hgrm_of_the_command_omits_absent_operations(cli, tmp_path):
    load = ("--workload", "uniform:write=1,requests=50", "--device", "demo", "--precondition", "none")
    done = cli("run", *load, "--hgrm", tmp_path / "w.hgrm", "--fio", "json+")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("*")) == ["w.hgrm", "w.write.hgrm"]
    job = json.loads(done.stdout)["jobs"][0]
    assert job["job options"]["rw"] == "randwrite"
    assert job["read"]["clat_ns"] == {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
