"""Expressions that combine selected rows, such as "(a / b) / (c / d)"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import FlashtwinError

_OPERATORS: Final[dict[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

#: Maximum length of an expression. It keeps the nesting depth far below Python's recursion limit.
_LENGTH_MAX: Final = 500


class Expression:
    """Sums, differences, products and quotients of numbers and of the rows a, b, c and d."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        if len(text) > _LENGTH_MAX:
            raise FlashtwinError(f"{where}: value: {len(text)} characters; give at most {_LENGTH_MAX}")
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise FlashtwinError(f"{where}: value = {text!r}: not an expression such as a / b") from None
        self.names: set[str] = set()
        self._check(self._tree, where)

    def _check(self, node: ast.AST, where: str) -> None:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            self._check(node.left, where)
            self._check(node.right, where)
        elif isinstance(node, ast.Name) and node.id in ("a", "b", "c", "d"):
            self.names.add(node.id)
        elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
            raise FlashtwinError(f"{where}: value = {self.text!r}: only + - * / of numbers and a, b, c, d")

    def of(self, values: Mapping[str, float]) -> float | None:
        """Evaluate the expression. The result is None for a division by 0 or an overflow."""
        try:
            return self._of(self._tree, values)
        except (ZeroDivisionError, OverflowError):
            return None

    def _of(self, node: ast.AST, values: Mapping[str, float]) -> float:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self._of(node.left, values), self._of(node.right, values))
        if isinstance(node, ast.Name):
            return values[node.id]
        assert isinstance(node, ast.Constant)
        return float(node.value)  # type: ignore[arg-type]
