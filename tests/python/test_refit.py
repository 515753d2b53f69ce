"""The refit of a published drive takes no step that makes a figure worse than with the drive's profile."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "refit.py"


@pytest.fixture(scope="module")
def refit():
    spec = importlib.util.spec_from_file_location("refit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_figure_is_worse_than_by_hand(refit):
    def measured(x):
        """Return three errors.

        Two errors depend on the first value in opposite ways; the third depends on the second value.
        """
        return {"a": 0.05 - x[0], "b": 0.01 + x[0] / 10, "c": 0.03 - x[1]}

    found = refit.search(measured, 2, 4, 1)
    errors = measured(found)
    assert found[0] == 0, "the mean would be less, but b worse"
    assert abs(errors["c"]) < 0.002
    assert refit.mean_error({"a": 0.0, "b": 0.02, "c": 0.0}, measured([0, 0])) == float("inf")


def test_a_run_without_figures_is_no_improvement(refit):
    def measured(x):
        return {"a": 0.05 - x[0]} if x[0] < 0.015 else {}

    assert refit.search(measured, 1, 1, 1) == [0.01 + 0.0025]
