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


# Declarations and blocks; not the type of a function of another language.
UNSAFE = re.compile(r"\bunsafe (?:\{|fn \w|impl|trait)")


def test_unsafe_code_is_listed_and_explained():
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Unsafe code\n")[1].split("\n## ")[0]
    listed = sorted(re.findall(r"`([\w/-]+\.rs)`", section))
    found, unexplained = set(), []
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        lines = path.read_text().splitlines()
        name = str(path.relative_to(ROOT / "crates"))
        for number, line in enumerate(lines):
            if UNSAFE.search(line.split("//")[0]):
                found.add(name)
                before = "\n".join(lines[max(0, number - 6) : number + 1])
                if "SAFETY:" not in before and "# Safety" not in before:
                    unexplained.append(f"{name}:{number + 1}")
    assert sorted(found) == listed
    assert unexplained == []
