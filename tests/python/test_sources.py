"""Every test file of a crate is part of its one test program."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parents[1].name for path in ROOT.glob("crates/*/tests/all.rs"))


@pytest.mark.parametrize("crate", CRATES)
def test_every_test_file_is_a_module_of_the_test_program(crate):
    place = ROOT / "crates" / crate / "tests"
    modules = re.findall(r"^mod (\w+);$", (place / "all.rs").read_text(), re.MULTILINE)
    assert sorted(modules) == sorted(path.stem for path in place.iterdir() if path.name != "all.rs")


def test_no_crate_has_tests_outside_its_test_program():
    assert sorted(path.parent.name for path in ROOT.glob("crates/*/tests")) == CRATES
