"""flashtwin: a deterministic twin of a flash device.

Replay a block trace or a generated load on a model of an SSD, in virtual time, and see what a cache
or garbage-collection policy does to latency, write amplification and wear:

    >>> import flashtwin
    >>> result = flashtwin.run("zipf:write=0.8,requests=20000", "demo", policy="gcar-lru")
    >>> both = flashtwin.compare(flashtwin.example_trace(), ["lru", "gcar-lru"], "demo")

The same arguments give the same bytes on every machine. Names end in their units.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def _homes() -> dict[str, str]:
    """The public names, each with the module that defines it; a public module has none."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: line.module or "" for line in imports for alias in line.names}


_HOMES = _homes()
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name: a command should start faster than all of them can be imported."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = (
        getattr(import_module(f".{home}", __name__), name) if home else import_module(f".{name}", __name__)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """The package; a module that has been imported does not hide the function that is called like it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
