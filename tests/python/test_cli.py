"""The command line: exit codes, the streams for its output, and that no incomplete files remain."""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flashtwin
from clients import wait_for
from conftest import LOAD

ENDLESS = ("--workload", "uniform:write=1,requests=1e10")


def wrong(result, *parts):
    """Check for exit code 2, one clear message, and nothing on standard output."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def keeps_the_summary(result, *parts):
    """Check for exit code 2 and one clear message. The summary of the run must be printed nevertheless."""
    assert result.returncode == 2, result.stderr
    assert "response time" in result.stdout
    wrong(subprocess.CompletedProcess([], 2, "", result.stderr), *parts)


def test_run_prints_a_summary_and_the_guess(cli, trace, small_device):
    result = cli("run", trace, "--device", small_device)
    assert result.returncode == 0, result.stderr
    assert "csv trace (guessed" in result.stderr
    assert "response time" in result.stdout
    assert "wall time" in result.stdout


def test_json_is_alone_on_standard_output_and_always_the_same(cli, trace, small_device, tmp_path):
    out = tmp_path / "summary.json"
    arguments = ("run", trace, "--device", small_device, "--policy", "gcar-cflru", "--json", "-o", out)
    first, second = cli(*arguments), cli(*arguments)
    assert json.loads(first.stdout)["policy"] == "gcar-cflru"
    assert first.stdout == second.stdout == out.read_text()


def test_compare_is_the_same_with_one_and_two_threads(cli, small_device, tmp_path):
    figure = tmp_path / "figure.png"
    arguments = ("compare", "--workload", LOAD, "--device", small_device, "--json")
    one = cli(*arguments, "--threads", 1)
    two = cli(*arguments, "--threads", 2, "--figure", figure)
    assert one.stdout == two.stdout
    names = ["lru", "cflru", "gcar-lru", "gcar-cflru"]
    assert [r["policy"] for r in json.loads(one.stdout)["results"]] == names
    assert figure.read_bytes()[:4] == b"\x89PNG"
    table = cli("compare", "--workload", LOAD, "--device", small_device, "--policies", "lru,gcar-lru")
    assert "mean response" in table.stdout
    assert "?: its 95 % interval contains 1" in table.stdout


def test_files_of_a_run(cli, trace, small_device, tmp_path):
    log, series = tmp_path / "log.parquet", tmp_path / "series.csv"
    result = cli(
        "run", trace, "--device", small_device, "--requests", log, "--series", series, "--interval", 0.5
    )
    assert result.returncode == 0, result.stderr
    assert pq.read_metadata(log).num_rows == 4000
    assert series.read_text().startswith("t_s,reads,writes,mb,")
    assert len(series.read_text().splitlines()) > 4


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("run",), ["either a trace file or --workload"]),
        (("run", "/no/such.csv"), ["/no/such.csv", "no such trace file"]),
        (("run", "--workload", LOAD, "--set", "buffer.capcity=1"), ['did you mean "capacity"']),
        (("run", "--workload", LOAD, "--set", "buffer"), ["KEY=VALUE"]),
        (("run", "--workload", LOAD, "--set", "gc.low_percent=99"), ["gc.low_percent"]),
        (("run", "--workload", LOAD, "--policy", "arcc"), ["policy: found", 'did you mean "arc"']),
        (("run", "--workload", LOAD, "--policy", "LRU"), ['found "LRU"', 'did you mean "lru"?']),
        (("run", "--workload", LOAD, "--policy", "gcar-arcc"), ['did you mean "gcar-arc"?']),
        (("run", "--workload", LOAD, "--policy", "gcar"), ["gcar is a filter over a policy: gcar-lru"]),
        (("policy", "trace", "own.py", "W1", "--capacity", "1"), ["as in own.py:MyPolicy"]),
        (("policy", "show", "LRU"), ['did you mean "lru"?']),
        (
            ("run", "--workload", LOAD, "--policies", "lru"),
            [
                "flashtwin run: error",
                "did you mean --policy? flashtwin compare and",
                "take --policies (see flashtwin run",
            ],
        ),
        (("run", "--workload", LOAD, "--queue-dept", "1"), ["did you mean --queue-depth?"]),
        (
            ("policy", "list", "--figure", "x"),
            ["flashtwin policy list: error", "flashtwin compare and flashtwin explain take --figure"],
        ),
        (("--foo", "run"), ["flashtwin: error"]),
        (("run", "--workload", "zipf:alpha=0.9,requests=1"), ["did you mean theta?"]),
        (("run", "--workload", "uniform:bs=4k,requests=1"), ["did you mean size?"]),
        (
            ("run", "--workload", LOAD, "--timeline", "x", "--timeline-window", "0s+1"),
            ['--timeline-window 0s+1: "1" has no unit (s, ms, us)'],
        ),
        (("run", "--workload", LOAD, "--policy", "cflru:window"), ["NAME:KEY=VALUE"]),
        (("run", "--workload", LOAD, "--policy", "cflru:windw=1"), ["did you mean window"]),
        (("run", "--workload", LOAD, "--queue-depth", "0"), ["--queue-depth 0"]),
        (("run", "--workload", LOAD, "--speed", "-1"), ["speed -1"]),
        (("run", "--workload", LOAD, "--speed", "1", "--queue-depth", "1"), ["not allowed with"]),
        (("run", "--workload", LOAD, "--beyond", "later"), ["wrap"]),
        (("run", "--workload", "zipf:write=1"), ["--requests-max"]),
        (("run", "--workload", "zipff:write=1"), ["zipf"]),
        (("compare", "--workload", LOAD, "--policies", "lru,lru"), ["twice"]),
        (("device", "show", "dmeo"), ["dmeo", "demo"]),
        (("validate", "/no/such/dir"), ["/no/such/dir"]),
        (("snapshot", "save", "/no/such/dir/x", "--device", "demo"), ["/no/such/dir/x"]),
        (("frobnicate",), ["frobnicate", "--help"]),
    ],
)
def test_wrong_arguments(cli, arguments, parts):
    wrong(cli(*arguments), *parts)


def test_traces_from_pipes_and_by_named_columns(cli, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("extra,len,type,lba,ts\n" + "".join(f"x,4096.0,W,{8 * i}.0,{i}e2\n" for i in range(500)))
    columns = ("--columns", "time=ts:us,offset=lba:sectors,size=len:bytes,op=type", "--device", "demo")
    expected = json.loads(cli("run", table, *columns, "--json").stdout)
    program = [sys.executable, "-m", "flashtwin.cli"]
    line = shlex.join([*program, "run", "-", *columns, "--json"])
    piped = subprocess.run(
        ["bash", "-c", f"cat {table} | {line}"], capture_output=True, text=True, check=True
    )
    line = (
        shlex.join([*program, "compare"])
        + f" <(cat {table}) "
        + shlex.join([*columns, "--policies", "lru,arc"])
    )
    substituted = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert substituted.returncode == 0, substituted.stderr
    found = json.loads(piped.stdout)
    for summary in (expected, found):
        summary.pop("workload", None)
    assert found == expected
    bad = cli("trace", "info", table, "--columns", "time=when:us,offset=lba,size=len,op=type")
    wrong(bad, 'no column "when"')


def test_errors_of_a_generated_load_do_not_speak_of_traces(cli):
    result = cli("run", "--workload", "uniform:footprint=1G,requests=10", "--device", "demo")
    wrong(result, "did you mean range?")
    assert "trace" not in result.stderr, result.stderr


def test_wrong_traces(cli, tmp_path, trace):
    bad = tmp_path / "bad.csv"
    bad.write_text("time_us,op,offset_bytes,size_bytes\n0,W,0,4096\n1,W,zero,4096\n")
    wrong(cli("run", bad, "--device", "demo"), "bad.csv", "line 3", "zero")
    wrong(cli("trace", "info", bad), "line 3")
    assert cli("trace", "info", bad, "--max-bad-lines", 1).returncode == 0
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    wrong(cli("run", empty, "--device", "demo"), "empty")
    packed = tmp_path / "cut.csv.zst"
    flashtwin.convert(trace, packed)
    packed.write_bytes(packed.read_bytes()[:-40])
    wrong(cli("run", packed, "--device", "demo"), "cut.csv.zst")
    beyond = tmp_path / "beyond.csv"
    beyond.write_text("time_us,op,offset_bytes,size_bytes\n0,W,99999999995904,4096\n")
    wrong(cli("run", beyond, "--device", "demo"), "--beyond wrap", "up to byte 100000000000000", "no device")
    beyond.write_text("time_us,op,offset_bytes,size_bytes\n0,W,10000000000,4096\n")
    wrong(
        cli("run", beyond, "--device", "demo"), "up to byte 10000004096", "devices that hold it", "nvme-tlc"
    )
    assert cli("run", beyond, "--device", "demo", "--addresses", "compact").returncode == 0
    assert cli("run", beyond, "--device", "demo", "--beyond", "wrap").returncode == 0
    wrong(cli("run", beyond, "--device", "demo", "--beyond", "drop"), "beyond the device")


def test_device_commands(cli, tmp_path):
    assert "demo" in cli("device", "list").stdout
    assert {d["name"] for d in json.loads(cli("device", "list", "--json").stdout)} == set(flashtwin.devices())
    mine = tmp_path / "mine.toml"
    mine.write_text(cli("device", "show", "demo", "--set", "buffer.policy=cflru").stdout)
    assert flashtwin.device(mine).policy == "cflru"
    assert cli("device", "check", mine).returncode == 0
    small = mine.read_text().replace("blocks_per_plane = 576", "blocks_per_plane = 64")
    bounds = "write_steady_iops_max = 1\nmixed_steady_iops_min = 1"
    mine.write_text(f"{small}\n[published]\nread_qd1_us = 50\n{bounds}\n")
    (measured,) = json.loads(cli("device", "check", mine, "--json").stdout)
    figures = {figure["name"]: figure for figure in measured["figures"]}
    assert len(figures) == 19
    assert figures["read_qd1_us"]["published"] == 50
    assert figures["write_qd1_us"]["published"] is None
    assert figures["write_steady_iops"]["published_max"] == 1
    assert [figures[name]["in_range"] for name in ("write_steady_iops", "mixed_steady_iops")] == [False, True]
    assert figures["read_qd1_us"]["in_range"] is None
    assert "1 or less: outside\n" in cli("device", "check", mine).stdout
    assert cli("device", "check", mine, "--quick").stdout.count("\n") == 1
    mine.write_text(mine.read_text().replace("chips", "chps"))
    wrong(cli("device", "check", mine), "mine.toml:", "chips")


def test_trace_commands(cli, trace, tmp_path):
    assert json.loads(cli("trace", "info", trace, "--json").stdout)["requests"] == 4000
    new = tmp_path / "new.csv.gz"
    assert "4 000 requests" in cli("trace", "convert", trace, new).stdout
    assert cli("trace", "info", new).returncode == 0
    wrong(cli("trace", "convert", trace, tmp_path / "new.txt"), ".ftb")


def test_snapshot(cli, small_device, tmp_path):
    state = tmp_path / "state"
    assert cli("snapshot", "save", state, "--device", small_device).returncode == 0
    result = cli("run", "--workload", LOAD, "--device", small_device, "--snapshot", state)
    assert "steady" in result.stdout


def worked_s(process):
    """Return the CPU time of a process in seconds.

    Unlike wall-clock time, it does not depend on other load.
    """
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def interrupt(arguments, ready_s, **options):
    """Start a command, and interrupt it after `ready_s` of CPU time. Return exit code and output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "flashtwin.cli", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    wait_for(lambda: worked_s(process) >= ready_s)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


def test_ctrl_c_prints_partial_results(small_device, tmp_path):
    log = tmp_path / "log.parquet"
    code, out, err = interrupt(("run", *ENDLESS, "--device", small_device, "--json", "--requests", log), 3)
    assert code == 130
    summary = json.loads(out)
    assert summary["interrupted"]
    assert "partial" in err
    assert pq.read_metadata(log).num_rows == summary["requests_submitted"]


def test_ctrl_c_in_a_comparison(small_device):
    code, out, err = interrupt(("compare", *ENDLESS, "--device", small_device, "--policies", "lru,cflru"), 3)
    assert code == 130
    assert "mean response" in out
    assert "not begun: cflru" in err


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("option", ["--requests", "-o", "--series"])
def test_a_full_disk_leaves_nothing_under_the_final_name(cli, small_device, tmp_path, option):
    target = tmp_path / "out" / "result"
    target.parent.mkdir()
    target.write_text("old")
    arguments = ("run", "--workload", "uniform:write=0.5,requests=100000", "--device", small_device)
    result = cli(
        *arguments, "--interval", 0.001, "--series", os.devnull, option, target, preexec_fn=limit_files
    )
    keeps_the_summary(result, str(target), "cannot write", "free some space")
    assert [(p.name, p.read_text()) for p in target.parent.iterdir()] == [("result", "old")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device(cli, small_device):
    run = ("run", "--workload", LOAD, "--device", small_device)
    for option in ("--requests", "-o", "--series"):
        keeps_the_summary(cli(*run, option, "/dev/full"), "/dev/full", "No space left")
    assert Path("/dev/full").is_char_device()
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "flashtwin.cli", *map(str, run), "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "standard output" in process.stderr


def test_a_closed_reader_is_no_error(small_device):
    command = f"{sys.executable} -m flashtwin.cli device show {small_device} | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stderr == ""


def test_help_shows_examples(cli):
    for command in ([], ["run"], ["compare"], ["trace", "convert"], ["device", "show"], ["policy", "trace"]):
        result = cli(*command, "--help")
        assert result.returncode == 0
        assert "example" in result.stdout
    assert cli("--version").stdout.startswith("flashtwin ")
