"""The start of commands: the required packages are present, and Ctrl-C works during imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from conftest import SMALL

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
ENDLESS = ("--workload", "uniform:write=1,requests=1e10")
#: Script that imports the package and receives SIGINT during the import.
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "flashtwin._results":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from flashtwin_command import main
sys.exit(main())
"""


def test_ctrl_c_during_imports_is_a_line():
    command = [sys.executable, "-c", INTERRUPTED, "results", "show", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "\nflashtwin: interrupted\n"
    assert 'flashtwin = "flashtwin_command:main"' in PROJECT.read_text()


def without(tmp_path, module):
    """Return an environment in which a module is not installed."""
    (tmp_path / f"{module}.py").write_text("raise ImportError\n")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.parametrize(
    "command",
    [
        ("run", *ENDLESS, "--device", "raid5-array", "--gc-timeline", "x.png"),
        ("compare", *ENDLESS, "--figure", "x.png"),
        ("policy", "hits", *ENDLESS, "--capacity", "1MiB", "--figure", "x.png"),
        ("pts", "--device", "demo"),
        ("plot", "cdf", "missing.json", "-o", "x.png"),
    ],
    ids=lambda command: command[0],
)
def test_matplotlib_is_asked_for_before_the_work(cli, tmp_path, command):
    done = cli(*command, env=without(tmp_path, "matplotlib"))
    assert done.returncode == 2
    assert "pip install 'flashtwin[plot]'" in done.stderr


def test_duckdb_is_asked_for_before_the_results_are_read(cli, tmp_path):
    done = cli("results", "query", "no-such.sweep", "select 1", env=without(tmp_path, "duckdb"))
    assert done.returncode == 2
    assert "pip install 'flashtwin[query]'" in done.stderr


def test_results_do_not_depend_on_where_a_trace_lies(tmp_path, trace):
    found = []
    for place in ("a", "b/c"):
        path = tmp_path / place / "trace.csv"
        path.parent.mkdir(parents=True)
        path.write_text(trace.read_text() + "nonsense\n")
        options = flashtwin.TraceOptions(max_bad_lines=1)
        result = flashtwin.run(path, "demo", set=SMALL, trace_options=options)
        table = flashtwin.hits(path, ["lru"], [64], trace_options=options)
        found.append((result.to_json(), table.to_json()))
        assert str(tmp_path) not in found[0][0] + found[0][1]
    assert found[0] == found[1]
    assert "trace.csv: csv trace" in found[0][0]
    assert "the first: trace.csv, line" in found[0][0]
