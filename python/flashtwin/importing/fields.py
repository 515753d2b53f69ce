"""Parameters of an XML element of MQSim. Parameters that were not read can be listed."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeVar

from ..errors import DeviceError
from .draft import count, number
from .xml import Node

T = TypeVar("T")


class Fields:
    """Parameters by name, with positions for messages."""

    def __init__(self, node: Node, origin: str) -> None:
        self._node = node
        self._origin = origin
        self._fields = {child.tag: child for child in node.children}
        self._used: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether the parameter exists and has a value."""
        found = self._fields.get(name)
        return bool(found and found.text)

    def text(self, name: str, default: str | None = None) -> str:
        """Return the value of a parameter. A missing parameter without a default is an error."""
        self._used.add(name)
        if self.has(name):
            return self._fields[name].text
        if default is None:
            node = self._node
            raise DeviceError(f"{self._origin}:{node.line}: <{node.tag}> has no {name}, which is needed")
        return default

    def number(self, name: str, default: str | None = None, most: int = 10**9) -> Decimal:
        """Return a value as a number."""
        return number(self.text(name, default), self.place(name), most=Decimal(most))

    def count(self, name: str, default: str | None = None, least: int = 1, most: int = 2**32 - 1) -> int:
        """Return a value as a whole number."""
        return count(self.text(name, default), self.place(name), least, most)

    def flag(self, name: str, default: str = "false") -> bool:
        """Return a value as true or false."""
        return self.word(name, {"true": True, "false": False, "1": True, "0": False}, default)

    def word(self, name: str, words: dict[str, T], default: str | None = None) -> T:
        """Return the entry of `words` for a value. Upper and lower case do not matter."""
        found = self.text(name, default)
        for word, value in words.items():
            if word.lower() == found.lower():
                return value
        raise self.wrong(name, f"found {found[:80]!r}; must be one of {', '.join(words)}")

    def place(self, name: str) -> str:
        """Return the position of a parameter, for messages."""
        node = self._fields.get(name, self._node)
        return f"{self._origin}:{node.line}: {name}"

    def wrong(self, name: str, message: str) -> DeviceError:
        """Return an error at the position of a parameter."""
        return DeviceError(f"{self.place(name)}: {message}")

    def said(self, *names: str) -> str:
        """Return a text with the names and values of parameters, which describes the origin of a key."""
        return ", ".join(f"{name} = {self.text(name, '')}" for name in names if self.has(name))

    def unused(self) -> list[Node]:
        """Return the parameters that were not read."""
        return [child for child in self._node.children if child.tag not in self._used and not child.children]
