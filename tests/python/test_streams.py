"""Standard streams that are closed or full, control characters in names, formulas in CSV."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from clients import need
from conftest import LOAD, SMALL
from flashtwin._support.tables import csv_text
from flashtwin._support.words import shown

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
RUN = ["run", "--workload", LOAD, "--device", "demo", *SETTINGS]
#: A name that changes the colour of the terminal and fakes a line.
NAME = "x\x1b[31m\x07\u202egnp.csv"


def shell(script, *arguments, **options):
    """Run a shell script with the command line as $@."""
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "flashtwin.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.mark.parametrize("arguments", [RUN, ["--help"], ["device", "list"], ["doctor"]])
def test_closed_standard_output_is_an_error(arguments):
    done = shell('"$@" >&-', *arguments)
    assert done.returncode == 2
    assert done.stderr == (
        "flashtwin: error: standard output is closed; redirect it to a file or to /dev/null\n"
    )


def test_full_standard_output_is_an_error(cli):
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "flashtwin.cli", "device", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "flashtwin: error: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_closed_streams_get_no_file(tmp_path, closed):
    out = tmp_path / "out.json"
    done = shell(f'"$@" {closed}', *RUN, "--json", "-o", out)
    assert done.returncode == 0
    assert done.stdout == out.read_text()


def test_closed_standard_error_and_output_end_without_a_file(tmp_path):
    assert shell('"$@" >&- 2>&-', *RUN, "-o", tmp_path / "out").returncode == 2
    assert not list(tmp_path.iterdir())


def test_refused_thread_is_an_error():
    refuse = """
import sys, threading
def start(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
from flashtwin.cli import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", refuse, *RUN], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("flashtwin: error: no thread can be started")


def test_control_characters_of_names_are_escaped(cli, tmp_path, trace):
    path = tmp_path / NAME
    path.write_bytes(trace.read_bytes())
    found = []
    for arguments in (
        ["run", path, "--device", "demo", *SETTINGS],
        ["trace", "info", path],
        ["compare", path, "--device", "demo", *SETTINGS, "--policies", "lru,fifo"],
        ["policy", "hits", path, "--policies", "lru", "--capacity", "1MiB"],
        ["run", tmp_path / f"absent{NAME}"],
        ["report", tmp_path / f"absent{NAME}", "-o", tmp_path / "x.html"],
        ["sweep", tmp_path / f"absent{NAME}"],
        ["device", "show", f"absent{NAME}"],
        ["run", path, "--device", "demo", *SETTINGS, "-o", tmp_path / "absent" / NAME],
    ):
        done = cli(*arguments)
        text = done.stdout + done.stderr
        assert not set(text) & set("\x1b\x07\u202e"), arguments
        found.append("\\x1b[31m\\x07" in text or "\\u{1b}[31m\\u{7}" in text)
    assert all(found), found


def test_line_break_in_a_trace_name_is_escaped(cli, tmp_path, trace):
    path = tmp_path / "x\nflashtwin: error: forged"
    path.write_bytes(trace.read_bytes())
    done = cli("run", path, "--device", "demo", *SETTINGS)
    assert "\nflashtwin: error: forged" not in done.stdout + done.stderr


def test_table_on_a_terminal_has_no_control_characters_of_names():
    table = flashtwin._support.terminal.tables([f"a{NAME}", "b"], [[NAME, "1"]], 1, 100)
    assert "\x1b" not in flashtwin._support.terminal.as_text(table)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_has_no_formula(start):
    import pyarrow as pa

    table = pa.table({"policy": [f"{start}1+1.csv", "lru", "a,b"], "change": [-1.5, 2.0, None]})
    rows = list(csv.reader(io.StringIO(csv_text(table), newline="")))
    assert rows == [["policy", "change"], [f"'{shown(start)}1+1.csv", "-1.5"], ["lru", "2.0"], ["a,b", ""]]


def test_results_as_csv_have_no_formula(cli, tmp_path, trace):
    (tmp_path / "=1+1.csv").write_bytes(trace.read_bytes())
    settings = "\n".join(f"{key} = {value}" for key, value in SMALL.items())
    (tmp_path / "x.toml").write_text(f'devices=["demo"]\nworkloads=["=1+1.csv"]\n[set]\n{settings}\n')
    assert cli("sweep", "x.toml", "-o", "x.sweep", cwd=tmp_path).returncode == 0
    done = cli("results", "show", "x.sweep", "--csv", cwd=tmp_path)
    assert ",'=1+1.csv" in done.stdout
    assert ",=1+1.csv" not in done.stdout


def test_error_of_an_output_names_its_file(tmp_path):
    limited = 'ulimit -f 0; exec "$@"'
    for option in ("-o", "--record", "--requests"):
        path = tmp_path / "out.parquet"
        done = shell(limited, *RUN, option, path)
        assert done.returncode == 2
        assert f"{path}: cannot write" in done.stderr, done.stderr
        assert "standard output" not in done.stderr
        assert not list(tmp_path.iterdir())


def test_full_temporary_directory_is_named(short_path):
    need("nbdkit")
    done = shell(
        'ulimit -f 1; exec "$@"',
        "serve",
        "--device",
        "demo",
        *SETTINGS,
        env={**os.environ, "TMPDIR": str(short_path)},
    )
    assert done.returncode == 2
    assert f"{short_path}/flashtwin-" in done.stderr
    assert "device.toml: cannot write the device" in done.stderr
    assert not list(short_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--workload", b"zipf:\xff"],
        ["device", "show", b"\xff"],
        ["run", b"\xff.csv"],
        ["report", b"\xff", "-o", "x"],
    ],
)
def test_argument_that_is_not_utf8_is_an_error(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "flashtwin.cli", *arguments], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"flashtwin: error: ")
