"""Options of a run: functions, command line, experiments and documentation derive from one definition.

`FLASHTWIN_WRITE_DOCS=1 pytest tests/python/test_options.py` rewrites the table of docs/python.md."""

import inspect
import os
from pathlib import Path

import pytest

import flashtwin
from flashtwin._devices import DEFAULT_DEVICE
from flashtwin.cli import options as command_line
from flashtwin.cli.parser import build
from flashtwin.options import (
    PreconditionOptions,
    RunOptions,
    StateOptions,
    WorkloadOptions,
    experiment_options,
    options_of,
    run_options,
)

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BEGIN = "<!-- from here on written by `FLASHTWIN_WRITE_DOCS=1 pytest tests/python/test_options.py` -->\n"
END = "<!-- up to here -->\n"
#: Functions with the options that they take.
FUNCTIONS = {
    "run": (flashtwin.run, RunOptions),
    "compare": (flashtwin.compare, WorkloadOptions),
    "serve": (flashtwin.serve, StateOptions),
    "save_snapshot": (flashtwin.save_snapshot, PreconditionOptions),
}
LOAD = "uniform:write=1,requests=100"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_show_their_options(name):
    function, kind = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    for option, known in options_of(kind).items():
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option].default == known.default
        assert f"\n    {option}: " in function.__doc__
    assert "{" + "options}" not in function.__doc__
    assert max(map(len, function.__doc__.splitlines())) <= 110


def test_unknown_and_repeated_arguments_are_refused():
    with pytest.raises(TypeError, match=r"^run\(\) got an unexpected keyword argument 'polcy'"):
        flashtwin.run(LOAD, "demo", polcy="lru")
    with pytest.raises(TypeError, match=r"^compare\(\) missing a required argument: 'workload'"):
        flashtwin.compare()


def test_arguments_may_be_given_by_name():
    named = flashtwin.run(workload=LOAD, device="instant", precondition="none", seed=3)
    placed = flashtwin.run(LOAD, "instant", precondition="none", seed=3)
    assert named.to_json() == placed.to_json()


def test_the_command_line_has_the_defaults_of_the_functions():
    args = build().parse_args(["run", "trace.csv"])
    found = command_line.read(args, RunOptions)
    assert args.device == inspect.signature(flashtwin.run).parameters["device"].default
    defaults = run_options()
    for name, value in found.items():
        assert (value or None) == (defaults[name] or None), name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": -1}, "seed: -1: give a whole number from 0"),
        ({"seed": 1.5}, "seed: 1.5: give a whole number from 0"),
        ({"requests_max": 0}, "requests_max: 0: give a whole number from 1"),
        ({"threads": 1025}, "threads: 1025: give a whole number from 1 to 1024"),
        ({"beyond": "wrp"}, 'beyond "wrp" is unknown'),
    ],
)
def test_values_out_of_range_are_refused(given, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.run(LOAD, "instant", precondition="none", **given)


def test_experiments_take_the_options_that_they_name(tmp_path):
    values = {
        "precondition": "none",
        "warmup_requests": 10,
        "warmup_requests_max": 20,
        "requests_max": 50,
        "beyond": "wrap",
        "series_s": 1.0,
    }
    assert values.keys() == experiment_options().keys()
    experiment = {"devices": ["instant"], "workloads": [LOAD], "run": values}
    table = flashtwin.sweep(experiment, tmp_path).table
    for name, value in values.items():
        assert table[name].to_pylist() == [value]


def test_the_default_device_is_named_in_the_documentation():
    page = (PAGE.parent / "devices.md").read_text()
    assert f"If no device is named, commands and functions use `{DEFAULT_DEVICE}`" in page
    for function in (*(function for function, _ in FUNCTIONS.values()), flashtwin.pts):
        # None means the device of a recording or, without one, the default.
        default = None if function in (flashtwin.run, flashtwin.compare) else DEFAULT_DEVICE
        assert inspect.signature(function).parameters["device"].default == default


def rows():
    forms = command_line.forms()
    for name, option in options_of(RunOptions).items():
        takers = [f"`{function}`" for function, (_, kind) in FUNCTIONS.items() if name in options_of(kind)]
        takers += ["`[run]`"] if option.in_experiment else []
        flags = f"`{forms[name]}`" if name in forms else ""
        meaning = f"{option.help}. {option.details}".strip()
        cells = (f"`{name}`", flags, ", ".join(takers), meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def test_the_page_has_every_option():
    table = "| argument | command line | taken by | meaning |\n|---|---|---|---|\n" + "".join(rows())
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    old, tail = rest.split(END)
    if os.environ.get("FLASHTWIN_WRITE_DOCS"):
        PAGE.write_text(f"{head}{BEGIN}{table}{END}{tail}")
        return
    assert old == table, BEGIN
