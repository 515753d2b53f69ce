"""Decisions have one place, and texts use one word for one thing: `tests/words.txt` lists what they avoid."""

import ast
import io
import itertools
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted(
    path for name in ("flashtwin", "flashtwin_command") for path in (ROOT / "python" / name).rglob("*.py")
)

#: Rust files, whose comments are checked.
RUST = sorted(
    path
    for pattern in ("crates/**/*.rs", "examples/**/*.rs", "benches/src/*.rs", "fuzz/**/*.rs")
    for path in ROOT.glob(pattern)
    if "target" not in path.parts
)
RUST_COMMENT = re.compile(r"(?:^|\s)//[/!]? ?(.*)$")

#: Parts of pages that Rust tests compare with the sources of the policies, translation layers and keys.
GENERATED = re.compile(r"<!-- from here on written by.*?<!-- up to here -->", re.DOTALL)
KEY_ROW = re.compile(
    r"^\| `(?:name|description|[a-z]+\.\w+)` \|(?:[^|\n]|\\\|)*(?:\|[^|\n]*){3}\|$", re.MULTILINE
)
#: Pages whose tables are printed by `experiments/`.
PRINTED = ("array-claims.md", "live-claims.md")
ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
#: Name of an argument in the part of a docstring that explains arguments.
ARGUMENT = re.compile(r"^ +\w+:", re.MULTILINE)

DECISION = re.compile(r"(?<![A-Za-z])D-(\d+)\b")
#: References to sections of a specification that readers do not have, such as "F1.7" or "policies.md C5".
SPECIFICATION = re.compile(
    r"\bF1\.\d|(?<!/)\bpolicies\.md (?:[A-F]\d*|0)\b|reference-models|peers-and-users|\bspec/policies"
)


def written_by_hand(page):
    """Return a page without its generated parts, with as many lines as before."""

    def blank(found):
        return "\n" * found.group().count("\n")

    return KEY_ROW.sub(blank, GENERATED.sub(blank, page.read_text()))


def prose(page):
    """Return the prose of a page: without code, link targets and generated parts."""
    text = written_by_hand(page)
    if page.name in PRINTED:
        text = ROW.sub("", text)
    return CODE.sub(lambda found: " " + "\n" * found.group().count("\n"), text)


def texts(source):
    """Return the texts of a module that users may read, each with its line.

    They are all strings of several words.
    """
    tree = ast.parse(source.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, ARGUMENT.sub("", re.sub(r"`[^`\n]*`", " ", node.value))


def rust_comments(text):
    """Return the comments of a Rust file, consecutive lines together, each with its first line."""
    lines = text.splitlines()
    found = [RUST_COMMENT.search(line) for line in lines]
    # Two slashes within a string, as in an address, begin no comment.
    found = [None if f and '"' in line[: f.start()] else f for f, line in zip(found, lines, strict=True)]
    for has, group in itertools.groupby(enumerate(found, 1), lambda numbered: numbered[1] is not None):
        if has:
            block = list(group)
            yield block[0][0], "\n".join(f[1] for _, f in block)


def python_comments(text):
    """Return the comments of a Python file, consecutive lines together, each with its first line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [(t.start[0], t.string.lstrip("#: ")) for t in tokens if t.type == tokenize.COMMENT]
    for _, group in itertools.groupby(enumerate(comments), lambda numbered: numbered[1][0] - numbered[0]):
        block = [comment for _, comment in group]
        yield block[0][0], "\n".join(text for _, text in block)


def avoided():
    """Return a pattern for each phrase to avoid, with the phrase to use in its place."""
    found = []
    for line in (ROOT / "tests" / "words.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            phrases, use = line.split(":", 1)
            for phrase in phrases.split(","):
                words = r"\s+".join(map(re.escape, phrase.split()))
                found.append((re.compile(rf"\b{words}\b", re.IGNORECASE), use.strip()))
    return found


def complaints(path, text, first_line=1):
    """Return the words and phrases of a text that must be avoided."""
    for pattern, use in avoided():
        for match in pattern.finditer(text):
            line = first_line + text[: match.start()].count("\n")
            yield f"{path.relative_to(ROOT)}:{line}: {match.group()!r}: use {use}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_avoid_the_listed_words(page):
    found = list(complaints(page, prose(page)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(ROOT / "python")))
def test_help_and_errors_avoid_the_listed_words(source):
    found = [complaint for line, text in texts(source) for complaint in complaints(source, text, line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [*RUST, *SOURCES],
    ids=lambda source: str(source.relative_to(ROOT)),
)
def test_comments_avoid_the_listed_words(source):
    comments = rust_comments if source.suffix == ".rs" else python_comments
    found = [
        complaint
        for line, text in comments(source.read_text())
        for complaint in complaints(source, CODE.sub(" ", text), line)
    ]
    assert not found, "\n".join(found)


def test_comments_are_found():
    rust = 'let a = "http://b"; // one\n    /// two\n    //! three\nlet b = 1;\n// four\n'
    assert list(rust_comments(rust)) == [(2, "two\nthree"), (5, "four")]
    assert list(python_comments("a = 1  # one\n#: two\nb = '# c'\n# three\n")) == [
        (1, "one\ntwo"),
        (4, "three"),
    ]


def test_the_word_check_finds_a_word_and_ignores_code():
    page = ROOT / "README.md"
    assert [text.split(": ", 1)[1] for text in complaints(page, "The page is still\nto come.")]
    assert not list(complaints(page, CODE.sub(" ", "`flashtwin ctl SOCKET power cut`")))


def named_decisions():
    """Return the numbers of the decisions that any file names, each with the files that name it."""
    found = {}
    for folder in ("docs", "crates", "python", "devices", "experiments", "benches", "tools", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".md", ".rs", ".py", ".toml", ".js", ".sh"} and "target" not in path.parts:
                for number in DECISION.findall(path.read_text()):
                    found.setdefault(int(number), set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_decision_has_one_anchor():
    page = (ROOT / "docs" / "decisions.md").read_text()
    anchors = [int(number) for number in re.findall(r"^### D-(\d+)$", page, re.MULTILINE)]
    assert len(anchors) == len(set(anchors))
    named = named_decisions()
    missing = {number: files for number, files in named.items() if number not in anchors}
    assert not missing


def test_decisions_have_a_question_and_a_decision():
    page = (ROOT / "docs" / "decisions.md").read_text()
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        name, text = section.split("\n", 1)
        assert re.match(r"D-\d+$", name)
        assert re.findall(r"^- \*\*(.*?):\*\*", text, re.MULTILINE)[:2] == ["Question", "Decision"], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_decisions_lead_to_them(page):
    decisions = (ROOT / "docs" / "decisions.md").read_text()
    for text, number in re.findall(r"\[(D-\d+)\]\((?:docs/)?(?:decisions\.md)?#d-(\d+)\)", page.read_text()):
        assert text == f"D-{number}"
        assert f"\n### {text}\n" in decisions


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_specification_that_readers_lack(page):
    assert not SPECIFICATION.findall(written_by_hand(page))
