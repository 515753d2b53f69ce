"""The workloads of a study. A trace of the user replaces the generated stand-in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import FlashtwinError
from .definition import Load

#: Environment variable with a folder of traces. It is used if no folder is given.
VARIABLE = "FLASHTWIN_TRACES"


class Loads:
    """Converts names of workloads to generated loads and traces."""

    def __init__(self, loads: Mapping[str, Load], folder: str | os.PathLike[str] | None) -> None:
        folder = folder or os.environ.get(VARIABLE)
        if folder is not None and not Path(folder).is_dir():
            raise FlashtwinError(f"{os.fspath(folder)}: no such folder of traces")
        self._loads = loads
        self._folder = None if folder is None else Path(folder)
        self._traces = {} if self._folder is None else _found(loads, self._folder)

    def text(self, name: str) -> str:
        """Return the workload that a name stands for, as for `sweep`. Other text is returned unchanged."""
        base, _, arrivals = name.partition("/")
        load = self._loads.get(base)
        if load is None:
            return name
        if base in self._traces:
            return str(self._traces[base])
        if not arrivals and not load.arrivals:
            return load.text
        if arrivals not in load.arrivals:
            known = ", ".join(f"{base}/{each}" for each in load.arrivals) or base
            raise FlashtwinError(f"workload {name!r}: unknown arrivals; known: {known}")
        return f"{load.text},{load.arrivals[arrivals]}"

    def is_trace(self, name: str) -> bool:
        """Whether a trace of the user replaces the stand-in."""
        return name.partition("/")[0] in self._traces

    def missing(self) -> list[str]:
        """Return a note for each trace that the folder lacks. Without a folder, there are no notes."""
        if self._folder is None:
            return []
        lacking = [load for name, load in self._loads.items() if load.trace and name not in self._traces]
        return [
            f"trace {load.trace}: not in {self._folder}; its generated stand-in runs. Source: {load.source}"
            for load in lacking
        ]

    def resolved(self, experiment: Mapping[str, Any]) -> dict[str, Any]:
        """Return the experiment with names of workloads replaced by the workloads. Duplicates are removed."""
        texts = [self.text(name) for name in experiment["workloads"]]
        return {**experiment, "workloads": list(dict.fromkeys(texts))}


def _found(loads: Mapping[str, Load], folder: Path) -> dict[str, Path]:
    files = {file.name.partition(".")[0].lower(): file for file in sorted(folder.iterdir(), reverse=True)}
    wanted = {name: load.trace.lower() for name, load in loads.items() if load.trace is not None}
    return {name: files[stem] for name, stem in wanted.items() if stem in files}
