"""Parameter files of DiskSim (`.parv`): blocks of `name = value`, with nested blocks and lists."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..errors import DeviceError

#: Maximum depth of nested blocks. DiskSim's own files have a depth of 3.
DEPTH_MAX = 20


@dataclass
class Value:
    """The text of a value, and its line."""

    text: str
    line: int


@dataclass
class Block:
    """A block: its type, its name (empty for a nested block), its line, and its contents."""

    type: str
    name: str
    line: int
    values: dict[str, Value] = field(default_factory=dict)


#: A token: a comment, a mark such as `{` or `=`, or a sequence of other characters.
_TOKEN = re.compile(r"#[^\n]*|[{}\[\],=;]|[^{}\[\],=;#]+")


class _Tokens:
    """Yields the tokens of a file with their lines. Comments and blanks are skipped."""

    def __init__(self, text: str, origin: str) -> None:
        self.origin = origin
        self.line = 1
        self._found = iter(self._all(text))
        self.next: tuple[str, int] | None = next(self._found, None)

    @staticmethod
    def _all(text: str) -> list[tuple[str, int]]:
        tokens, line = [], 1
        for match in _TOKEN.finditer(text):
            token = match[0]
            start = line + token[: len(token) - len(token.lstrip())].count("\n")
            line += token.count("\n")
            if token.strip() and not token.startswith("#"):
                tokens.append((" ".join(token.split()), start))
        return tokens

    def take(self) -> str:
        """Return the next token."""
        if self.next is None:
            raise self.wrong("the file ends within a block; close it with }")
        token, self.line = self.next
        self.next = next(self._found, None)
        return token

    def wrong(self, message: str) -> DeviceError:
        return DeviceError(f"{self.origin}:{self.line}: {message}")


def read_parv(text: str, origin: str) -> list[Block]:
    """Return all blocks with a type, both outermost and nested ones, in the order of the file.

    Raises:
        DeviceError: the file is wrong; the message gives file and line.
    """
    tokens = _Tokens(text, origin)
    blocks: list[Block] = []
    while tokens.next is not None:
        token = tokens.take()
        following = tokens.next[0] if tokens.next else ""
        if following == "{":
            words = token.split()
            line = tokens.line
            tokens.take()
            # The token may begin with words of earlier lines ("instantiate ... as X"), which end without a
            # mark. Only its last words belong to the block.
            kind, name = (words[-2], words[-1]) if len(words) > 1 else (words[0], "")
            _block(Block(kind, name, line), tokens, blocks, 1)
    return blocks


def _block(block: Block, tokens: _Tokens, blocks: list[Block], depth: int) -> None:
    """Read the contents of a block. Its `{` has already been read."""
    if depth > DEPTH_MAX:
        raise tokens.wrong(f"more than {DEPTH_MAX} blocks within each other")
    blocks.append(block)
    while (token := tokens.take()) != "}":
        if token == ",":
            continue
        line = tokens.line
        mark = tokens.take()
        if mark != "=":
            raise tokens.wrong(f"found {mark!r} after {token!r}; must be `{token} = value`")
        if token in block.values:
            raise tokens.wrong(f"{token!r} is given twice; remove one")
        block.values[token] = Value(_value(tokens, blocks, depth), line)


def _value(tokens: _Tokens, blocks: list[Block], depth: int) -> str:
    """Read a value: a text, a list, or a block. For a block, the result is its type."""
    token = tokens.take()
    if token in ("}", ",", "="):
        raise tokens.wrong(f"found {token!r} in place of a value")
    if token == "[":
        parts = [token]
        opened = 1
        while opened:
            parts.append(tokens.take())
            opened += (parts[-1] == "[") - (parts[-1] == "]")
        return " ".join(parts)
    if tokens.next and tokens.next[0] == "{":
        tokens.take()
        _block(Block(token, "", tokens.line), tokens, blocks, depth + 1)
    return token
