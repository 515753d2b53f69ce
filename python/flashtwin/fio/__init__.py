"""Results in fio's text and `json+` formats, for scripts that read fio's output (docs/fio.md)."""

from .jsonplus import to_json_plus
from .text import to_text

__all__ = ["to_json_plus", "to_text"]
