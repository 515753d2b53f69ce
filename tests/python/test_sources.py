"""Test programs, unsafe code, and the words of comments and names."""

import ast
import collections
import re
from pathlib import Path

import pytest

from test_words import CODE, rust_comments

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parents[1].name for path in ROOT.glob("crates/*/tests/all.rs"))


@pytest.mark.parametrize("crate", CRATES)
def test_every_test_file_is_a_module_of_the_test_program(crate):
    place = ROOT / "crates" / crate / "tests"
    modules = re.findall(r"^mod (\w+);$", (place / "all.rs").read_text(), re.MULTILINE)
    assert sorted(modules) == sorted(path.stem for path in place.iterdir() if path.name != "all.rs")


def test_no_crate_has_tests_outside_its_test_program():
    assert sorted(path.parent.name for path in ROOT.glob("crates/*/tests")) == CRATES


# Matches unsafe blocks and declarations, but not the type of a function of another language.
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


SOURCES = sorted(
    path
    for pattern in ("crates/**/*.rs", "examples/**/*.rs", "benches/**/*.rs", "fuzz/**/*.rs")
    for path in ROOT.glob(pattern)
    if "target" not in path.parts and "corpus" not in path.parts
)
PYTHON = sorted(
    path
    for folder in ("python", "tests", "experiments", "tools", "fuzz")
    for path in (ROOT / folder).rglob("*.py")
    if "target" not in path.parts
)

#: Words with which a doc comment lacks its subject or depends on the sentence before it.
OPENING = re.compile(
    r"(?:What|Which|Who|Whoever|The same|It|Its|Those|They|That|Them|Their|These|Such|Both,|Likewise|Also|And"
    r"|But|See the field|Of (?:it|these|those|them)|Does the same|So (?:many|much|often|long))\b"
)
#: Words that are not terms of computing. In names, they are separated by `_` or are parts of CamelCase.
RIDDLES = re.compile(
    r"\b(?:go on|goes on|going on|went on|came|tell|tells|told|telling|untold|say|says|said|saying|hear|hears"
    r"|heard|answer|answers|answered|answering|under way|heir|heirs|who|whoever|whom|nobody|anybody|somebody"
    r"|everybody|leave off|leaves off|left off|let go|lets go|take up|takes up|taken up)\b"
)
TEST_RIDDLES = re.compile(r"(?:test_)?(?:what|who|whoever|whatever|where|it|its|they|those|that|these)_")
#: Words refused in comments, in addition to those of `tests/words.txt`.
COMMENT_RIDDLES = re.compile(r"\b(?:goes on|go on|going on|went on|came|somebody|everybody)\b")
#: Names in files that other programs read, and names of events whose text the golden results hash.
KEPT = {"gc_left_off", "Came", "Answered"}

RUST_DOC = re.compile(r"^\s*//[/!] ?(.*)$")
#: Matches a name. Also matches whole comments, strings and characters, so that names within them are skipped.
RUST_NAME = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|\b[A-Za-z_]\w*""", re.DOTALL)
RUST_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)")
PYTHON_TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)


def rust_docs(text):
    """Return the first line of each doc comment of a Rust file, with its number."""
    before = None
    for number, line in enumerate(text.splitlines(), 1):
        found = RUST_DOC.match(line)
        if found and not before:
            yield number, found[1]
        before = found


def python_docs(text):
    """Return the first line of each docstring of a Python file, and of comments with `#:`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield getattr(node, "lineno", 1), ast.get_docstring(node).splitlines()[0]
    before = False
    for number, line in enumerate(text.splitlines(), 1):
        is_doc = line.lstrip().startswith("#:")
        if is_doc and not before:
            yield number, line.lstrip()[2:].strip()
        before = is_doc


def rust_names(text):
    """Return each name in the code of a Rust file, with its words and its line."""
    for found in RUST_NAME.finditer(text):
        if found[0][0] not in "/\"'" and found[0] not in KEPT:
            words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", found[0]).replace("_", " ").lower()
            yield text.count("\n", 0, found.start()) + 1, found[0], words


def unclear(text, is_rust):
    """Return the unclear places of a source file, each with its kind, its line and its text."""
    for line, doc in rust_docs(text) if is_rust else python_docs(text):
        if OPENING.match(doc):
            yield "doc comment without its subject", line, doc
    tests = RUST_TEST if is_rust else PYTHON_TEST
    for found in tests.finditer(text):
        if TEST_RIDDLES.match(found[1]) or RIDDLES.search(found[1].replace("_", " ")):
            yield "name of a test", text.count("\n", 0, found.start()) + 1, found[1]
    if is_rust:
        for line, name, words in rust_names(text):
            if RIDDLES.search(words):
                yield "name", line, name
        for line, comment in rust_comments(text):
            for found in COMMENT_RIDDLES.finditer(CODE.sub(" ", comment)):
                yield "word of a comment", line, found[0]


def test_comments_and_names_explain_themselves():
    """Counts by kind are shown with `pytest -s`."""
    found = [
        (kind, f"{path.relative_to(ROOT)}:{line}: {kind}: {text}")
        for path in [*SOURCES, *PYTHON]
        for kind, line, text in unclear(path.read_text(), path.suffix == ".rs")
    ]
    print(dict(collections.Counter(kind for kind, _ in found)))
    assert not found, "\n".join(text for _, text in found)


def test_unclear_comments_and_names_are_found():
    rust = """//! What a map is.

/// Goes on.
/// It is full.
fn goes_on(who: u8) {}

/// Returns the map.
fn is_whole(gc_left_off: &str) {
    // What came before.
    let goes = "told";
}

#[test]
fn what_is_full_stays() {}
"""
    assert list(unclear(rust, is_rust=True)) == [
        ("doc comment without its subject", 1, "What a map is."),
        ("name of a test", 13, "what_is_full_stays"),
        ("name", 5, "goes_on"),
        ("name", 5, "who"),
        ("word of a comment", 9, "came"),
    ]
    python = (
        '"""What a map is."""\n\n#: The same.\nA = 1\n\n\ndef test_who_is_full():\n    """Return it."""\n'
    )
    assert list(unclear(python, is_rust=False)) == [
        ("doc comment without its subject", 1, "What a map is."),
        ("doc comment without its subject", 3, "The same."),
        ("name of a test", 7, "test_who_is_full"),
    ]
