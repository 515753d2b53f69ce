"""Results as fio would print them: its text and its `json+`, for scripts that read those (docs/fio.md)."""

from .jsonplus import to_json_plus
from .text import to_text

__all__ = ["to_json_plus", "to_text"]
