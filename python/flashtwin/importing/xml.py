"""XML files of MQSim: elements with their text and line number.

Document type declarations are rejected, and therefore also entities.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from ..errors import DeviceError

#: Maximum depth of nested elements. MQSim's files have a depth of 4.
DEPTH_MAX = 20


@dataclass
class Node:
    """An element."""

    tag: str
    line: int
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def child(self, tag: str) -> Node | None:
        """Return the first child with this name."""
        return next((child for child in self.children if child.tag == tag), None)


def read_xml(text: str, origin: str) -> Node:
    """Return the outermost element.

    Raises:
        DeviceError: the file is wrong; the message gives file and line.
    """
    parser = expat.ParserCreate("utf-8")
    top = Node("", 0)
    open_nodes = [top]

    def start(tag: str, _attributes: dict[str, str]) -> None:
        if len(open_nodes) > DEPTH_MAX:
            raise _RefusedError(f"more than {DEPTH_MAX} elements within each other")
        node = Node(tag, parser.CurrentLineNumber)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def end(_tag: str) -> None:
        node = open_nodes.pop()
        node.text = " ".join(node.text.split())

    def data(part: str) -> None:
        open_nodes[-1].text += part

    def document_type(*_: object) -> None:
        raise _RefusedError("a document type; files of MQSim have none: remove it")

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as e:
        raise DeviceError(f"{origin}:{e.lineno}: not XML: {expat.errors.messages[e.code]}") from e
    except _RefusedError as e:
        raise DeviceError(f"{origin}:{parser.CurrentLineNumber}: {e}") from e
    return top.children[0]


class _RefusedError(Exception):
    """Ends the parser."""
