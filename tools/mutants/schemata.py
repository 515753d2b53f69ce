"""Source files in which every mutated place checks whether one of its mutants is selected.

For example, `a + b` becomes `(if crate::mutant::is(7) { (a) - (b) } else { a + b })`. The body of a function
starts with `if crate::mutant::is(8) { return 0; }`. An arm of a match gets a guard. Comments around these
parts map the compiler's errors back to the mutants.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
#: Comments around the text of a mutant.
MARK = re.compile(rb"/\*(<|>)(\d+)\*/")


class Mutant(NamedTuple):
    """A mutant as `cargo mutants` lists it. Positions are (line, column) in characters; both count from 1."""

    name: str
    file: str
    genre: str
    start: tuple[int, int]
    end: tuple[int, int]
    replacement: str

    @classmethod
    def of(cls, entry: dict) -> Mutant:
        """Create a mutant from an entry of the list."""
        start, end = (
            (entry["span"][side]["line"], entry["span"][side]["column"]) for side in ("start", "end")
        )
        return cls(entry["name"], entry["file"], entry["genre"], start, end, entry["replacement"])


def runs(number: int) -> bytes:
    """Return the expression that checks whether a mutant is selected."""
    return b"crate::mutant::is(%d)" % number


def marked(number: int, text: bytes) -> bytes:
    """Enclose a text in comments that name the mutant to which it belongs."""
    return b"/*<%d*/%s/*>%d*/" % (number, text, number)


class Source:
    """A source file, the places in it that are mutated, and the mutants of each place."""

    def __init__(self, text: bytes, mutants: dict[int, Mutant]) -> None:
        self.text = text
        self.lines = text.decode().splitlines(keepends=True)
        self.tree = PARSER.parse(text)
        self.places: dict[tuple[int, int, str], list[tuple[int, Mutant, tree_sitter.Node]]] = {}
        for number, mutant in mutants.items():
            node = self.node(mutant)
            start, end = node.start_byte, node.end_byte
            if mutant.genre == "FnValue":
                start = end = self.offset(mutant.start)
            elif mutant.genre == "MatchArm":
                start, end = self.pattern(node)
            self.places.setdefault((start, end, mutant.genre), []).append((number, mutant, node))

    def offset(self, place: tuple[int, int]) -> int:
        """Return the byte offset of a place."""
        line, column = place
        before = "".join(self.lines[: line - 1]) + self.lines[line - 1][: column - 1]
        return len(before.encode())

    def node(self, mutant: Mutant) -> tree_sitter.Node:
        """Return the expression or arm that is mutated."""
        start, end = self.offset(mutant.start), self.offset(mutant.end)
        kinds = {
            "BinaryOperator": ("binary_expression", "compound_assignment_expr"),
            "UnaryOperator": ("unary_expression",),
            "MatchArm": ("match_arm",),
            "StructField": ("struct_expression",),
        }.get(mutant.genre)
        node = self.tree.root_node.descendant_for_byte_range(start, end)
        while kinds and node.type not in kinds:
            node = node.parent
        return node

    @staticmethod
    def pattern(arm: tree_sitter.Node) -> tuple[int, int]:
        """Return the start and the end of the pattern of a match arm, the part before `=>`."""
        pattern = arm.child_by_field_name("pattern")
        return pattern.start_byte, pattern.end_byte

    def render(self) -> bytes:
        """Return the file with all its mutants."""
        order = sorted(self.places, key=lambda place: (place[0], place[2] != "FnValue", -place[1]))
        return self.part(0, len(self.text), order)

    def part(self, start: int, end: int, places: list[tuple[int, int, str]]) -> bytes:
        """Return the text from `start` to `end`, with the mutated places in it.

        `places` has outer places before inner ones.
        """
        parts, at, i = [], start, 0
        while i < len(places):
            place = places[i]
            inner = []
            i += 1
            while i < len(places) and places[i][0] < place[1]:
                inner.append(places[i])
                i += 1
            parts += [self.text[at : place[0]], self.place(place, inner)]
            at = place[1]
        return b"".join([*parts, self.text[at:end]])

    def place(self, place: tuple[int, int, str], inner: list[tuple[int, int, str]]) -> bytes:
        """Return the text of a place, with its mutants."""

        def text(node: tree_sitter.Node) -> bytes:
            within = [p for p in inner if node.start_byte <= p[0] and p[1] <= node.end_byte]
            return self.part(node.start_byte, node.end_byte, within)

        start, end, genre = place
        here = self.places[place]
        plain = self.part(start, end, inner)
        if genre == "FnValue":
            returns = (b"if %s { return %s; } " % (runs(n), m.replacement.encode()) for n, m, _ in here)
            return b"".join(marked(n, one) for (n, _, _), one in zip(here, returns, strict=True))
        if genre == "MatchArm":
            ((number, _, arm),) = here
            pattern = arm.child_by_field_name("pattern")
            condition = pattern.child_by_field_name("condition")
            if condition is None:
                return plain + marked(number, b" if !%s" % runs(number))
            before = self.part(
                start, condition.start_byte, [p for p in inner if p[1] <= condition.start_byte]
            )
            return before + marked(number, b"!%s && (%s)" % (runs(number), text(condition)))
        result = plain
        for number, mutant, node in here:
            result = self.either(number, self.mutated(mutant, node, text), result)
        return result

    @staticmethod
    def either(number: int, mutated: bytes, plain: bytes) -> bytes:
        """Return an expression that evaluates to the mutant if it is selected."""
        switch = b"(if %s { %s } else { %s })"
        return marked(number, switch % (runs(number), mutated, plain))

    def mutated(
        self, mutant: Mutant, node: tree_sitter.Node, text: Callable[[tree_sitter.Node], bytes]
    ) -> bytes:
        """Return the text of the expression that the mutation creates."""
        replacement = mutant.replacement.encode()
        if mutant.genre == "BinaryOperator":
            left, right = (node.child_by_field_name(side) for side in ("left", "right"))
            form = b"%s %s %s" if node.type == "compound_assignment_expr" else b"(%s) %s (%s)"
            return form % (text(left), replacement, text(right))
        if mutant.genre == "UnaryOperator":
            return b"(%s)" % text(node.named_children[-1])
        if mutant.genre == "StructField":
            start, end = self.offset(mutant.start), self.offset(mutant.end)
            if self.text[end : end + 1] == b",":
                end += 1
            return self.text[node.start_byte : start] + self.text[end : node.end_byte]
        return replacement


class Schemata:
    """All files of a crate with their mutants, and the mutants that compile."""

    def __init__(self, root: Path, mutants: list[Mutant]) -> None:
        self.mutants = dict(enumerate(mutants))
        self.sources = {mutant.file: (root / mutant.file).read_bytes() for mutant in mutants}
        # A function that returns `impl Trait` must return a single type. The value of the mutant and the body
        # have different types, so such mutants are not tried.
        self.untried = {n for n, m in self.mutants.items() if m.genre == "FnValue" and "-> impl " in m.name}
        self.viable = set(self.mutants) - self.untried

    def write(self, work: Path) -> None:
        """Write each file that has mutants. Mutants that do not compile are omitted."""
        for file, source in self.sources.items():
            here = {n: m for n, m in self.mutants.items() if m.file == file and n in self.viable}
            text = Source(source, here).render()
            target = work / file
            if file.endswith("/lib.rs"):
                text += b"\n#[doc(hidden)]\npub mod mutant;\n"
            if target.read_bytes() != text:
                target.write_bytes(text)
        self.work = work

    def leave_out(self, errors: list[dict]) -> int:
        """Remove the mutants that cause compile errors; return their number."""
        before = len(self.viable)
        for error in errors:
            if (error["code"] or {}).get("code") == "E0004":
                self.viable -= self.uncovered(error)
                continue
            spans = sorted(error["spans"], key=lambda span: not span["is_primary"])
            for span in spans:
                found = self.at(span["file_name"], span["byte_start"], span["byte_end"])
                if found:
                    self.viable -= found
                    break
        return before - len(self.viable)

    def uncovered(self, error: dict) -> set[int]:
        """Return the mutant that makes a match incomplete.

        If the error names a pattern, this is the mutant of the arm with that pattern. Otherwise, it is the
        mutant of the last arm.
        """
        (span,) = (span for span in error["spans"] if span["is_primary"])
        tree = PARSER.parse((self.work / span["file_name"]).read_bytes())
        node = tree.root_node.descendant_for_byte_range(span["byte_start"], span["byte_end"])
        while node.type != "match_expression":
            node = node.parent
        arms = [arm for arm in node.child_by_field_name("body").named_children if arm.type == "match_arm"]
        missing = [name.encode() for name in re.findall(r"`([^`]+)`", error["message"])]
        last, named = set(), set()
        for arm in arms:
            text = arm.child_by_field_name("pattern").text
            here = {int(mark[2]) for mark in MARK.finditer(text)}
            here = {number for number in here if self.mutants[number].genre == "MatchArm"}
            last = here or last
            named = here if any(name in text for name in missing) else named
        return named or last

    def at(self, file: str, start: int, end: int) -> set[int]:
        """Return the innermost mutant around a place in a written file.

        If there is none, return all mutants within the place.
        """
        path = self.work / file
        if not path.is_file():
            return set()
        opened: dict[int, int] = {}
        around, within = [], set()
        for mark in MARK.finditer(path.read_bytes()):
            number = int(mark[2])
            if mark[1] == b"<":
                opened[number] = mark.end()
                continue
            begin = opened[number]
            if begin <= start and end <= mark.start():
                around.append((mark.start() - begin, number))
            elif start <= begin and mark.start() <= end:
                within.add(number)
        return {min(around)[1]} if around else within
