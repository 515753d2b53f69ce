"""Comparison of a device with tables of measurements: measured figures, modelled figures, differences."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from .. import _core
from .._devices import Overrides, as_toml
from .._devices import device as read_device
from .._support.files import whole_file
from .._support.watch import OnProgress, Task, run_all
from ..errors import FlashtwinError, Interrupted
from .fits import Fit, fit_of
from .loads import CapacityShare, ProbeBesideWrites, RandomReads, Rewrite, SequentialPass, Writes
from .tables import Row, chosen_rows, read_table
from .timed import FULL, QUICK, Modelled, Timed
from .untimed import Untimed

_UNIFORM = Rewrite(CapacityShare(), "uniform:write=1", 4.0)


@dataclass(frozen=True)
class Cell:
    """A figure of a row.

    Attributes:
        device: name of the device.
        row: name of the row.
        drive: description of the drive.
        figure: name of the figure, which ends in its unit.
        measured: figure of the drive.
        modelled: figure of the device; None if the row is not run.
        error_percent: difference between the modelled and the measured figure, in percent of the latter.
        run_error_percent: standard error of the modelled figure, in percent.
        role: "fitted" if the fit of the device used this figure, "held out" if the fit did not, and "open" if
            the device is not fitted to any drive.
        note: reason why the row is not run; empty if it is run.
        release: version of flashtwin that computed the modelled figure.
        command: command line that repeats the run of this row.
    """

    device: str
    row: str
    drive: str
    figure: str
    measured: float
    modelled: float | None
    error_percent: float | None
    run_error_percent: float | None
    role: str
    note: str = ""
    release: str = ""
    command: str = ""

    def __str__(self) -> str:
        """Return the line of `flashtwin device check --against`."""
        if self.modelled is None or self.error_percent is None:
            return f"{self.row:<36} {self.figure:<15} {self.measured:>10.6g} not run: {self.note}"
        return (
            f"{self.row:<36} {self.figure:<15} {self.measured:>10.5g} {self.modelled:>10.5g} "
            f"{self.error_percent:>+7.1f} % {self.run_error_percent or 0:>8.1f} %  {self.role}"
        )


@dataclass(frozen=True)
class Check:
    """All figures of a device that were compared."""

    device: str
    cells: Sequence[Cell]

    def to_json(self) -> str:
        """Return the cells as JSON."""
        cells = [asdict(cell) for cell in self.cells]
        return json.dumps({"device": self.device, "cells": cells}, indent=2)

    def write(self, path: str | Path) -> None:
        """Write the cells as a table: Parquet if the name ends in .parquet, otherwise CSV.

        Raises:
            FlashtwinError: a package is missing, or the file cannot be written.
        """
        write_cells(self.cells, path)

    def errors(self) -> Iterator[tuple[str, str, list[float]]]:
        """Return the absolute errors in percent, by role (fitted or held out) and name of the figure."""
        groups: dict[tuple[str, str], list[float]] = {}
        for cell in self.cells:
            if cell.error_percent is not None:
                groups.setdefault((cell.role, cell.figure), []).append(abs(cell.error_percent))
        for (role, figure), errors in sorted(groups.items()):
            yield role, figure, errors

    def __str__(self) -> str:
        """Return a table with one line per figure, and a summary."""
        lines = [
            f"{'row':<36} {'figure':<15} {'measured':>10} {'modelled':>10} {'error':>9} {'of the run':>10}"
        ]
        lines += map(str, self.cells)
        lines.append("")
        for role, figure, errors in self.errors():
            lines.append(
                f"{role:<9} {figure:<15} {len(errors):>3} figures, median error {median(errors):.1f} %, "
                f"largest {max(errors):.1f} %"
            )
        return "\n".join(lines)


def write_cells(cells: Sequence[Cell], path: str | Path) -> None:
    """Write cells as a table: Parquet if the name ends in .parquet, otherwise CSV.

    Raises:
        FlashtwinError: the file cannot be written.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.Table.from_pylist([asdict(cell) for cell in cells])
    with whole_file(Path(path), "the table of figures") as file:
        if Path(path).suffix == ".parquet":
            parquet.write_table(table, file)
        else:
            csv.write_csv(table, file)


def check_device(
    device: str | Path,
    tables: Sequence[str | Path],
    *,
    set: Overrides | None = None,
    drive: str | None = None,
    rows: str | None = None,
    quick: bool = False,
    seed: int = 1,
    threads: int = 1,
    progress: OnProgress | None = None,
    fit: Fit | None = None,
) -> Check:
    """Run the loads of tables of measurements on a device, and compare its figures with the measured ones.

    Args:
        device: name or file.
        tables: CSV files.
        set: keys of the device to override.
        drive: the drive to compare with, given as the first part of the names of its rows, such as "h0"; by
            default the drive to which the device is fitted.
        rows: rows to run, as a pattern such as "*/latency/*", or several patterns separated by ";".
        quick: shorter runs, whose errors are larger.
        seed: seed of the initial state and of the loads.
        threads: number of rows that run at the same time.
        progress: function to call about ten times a second.
        fit: drive and rows to which the device is fitted; by default those of the profile, if flashtwin's
            profile of this name is a fitted one.

    Raises:
        FlashtwinError: a table cannot be read, no row is chosen, or the device is an array.
        Interrupted: on Ctrl-C.
    """
    spec = read_device(device, set)
    fit = fit or fit_of(spec.name)
    read = {str(table): read_table(table) for table in tables}
    keys = [drive] if drive else list(fit.keys) if fit else None
    chosen = {table: chosen_rows(own, keys, rows) for table, own in read.items()}
    if not any(chosen.values()):
        raise FlashtwinError(
            f"{spec.name}: no row is chosen: give --drive, as the names of rows begin, or another --rows"
        )
    lengths = QUICK if quick else FULL
    usable_gib, soc_bytes = (fit.usable_gib, fit.soc_bytes) if fit else (None, None)
    runner = _Runner(Timed(spec, seed, lengths), Untimed(spec, usable_gib, seed, quick, soc_bytes))
    tasks = [Task(row.name, runner.task(row)) for own in chosen.values() for row in own]
    results, interrupted = run_all(tasks, threads, progress)
    if interrupted:
        raise Interrupted(None)
    options = [word for key, value in (set or {}).items() for word in ("--set", f"{key}={as_toml(value)}")]
    options += ["--drive", drive] if drive else []
    options += ["--quick"] if quick else []
    options += ["--seed", str(seed)] if seed != 1 else []
    cells: list[Cell] = []
    places = [(table, row) for table, own in chosen.items() for row in own]
    for (table, row), found in zip(places, results, strict=True):
        assert isinstance(found, Mapping)
        words = ["flashtwin", "device", "check", str(device), "--against", table, "--rows", _only(row)]
        command = shlex.join([*words, *options])
        cells += (
            replace(cell, release=_core.__version__, command=command)
            for cell in _cells(spec.name, row, found, fit)
        )
    return Check(spec.name, cells)


def _only(row: Row) -> str:
    """Return a pattern, for the argument `rows`, that matches the name of this row."""
    return re.sub(r"[*?[;]", "?", row.name)


class _Runner:
    """Runs the loads of rows on one device. The rate of uniform writes is measured only once for all rows."""

    def __init__(self, timed: Timed, untimed: Untimed) -> None:
        self._timed = timed
        self._untimed = untimed
        self._writes: Modelled | None = None

    def task(self, row: Row) -> Callable[[_core.Control], object]:
        """Return a function that runs a row."""
        return lambda control: self._figures(row, control)

    def _figures(self, row: Row, control: _core.Control) -> Mapping[str, Modelled]:
        load = row.load
        if load is None or row.doubt:
            return {}
        if isinstance(load, ProbeBesideWrites):
            return self._timed.beside_writes(load, control)
        if isinstance(load, RandomReads):
            return self._timed.reads(load, control)
        return self._of_writes(load, row, control)

    def _of_writes(self, load: Writes, row: Row, control: _core.Control) -> Mapping[str, Modelled]:
        waf = self._untimed.waf(load, control)
        if "waf" in row.figures:
            return {"waf": Modelled(waf, 0.0)}
        # The flash limits the rate of writes, so the rate is inversely proportional to write amplification.
        # The rate of the row is therefore computed from a rate measured on the device under a base load
        # (sequential or uniform writes): rate of the base load x WAF of the base load / WAF of the row.
        if "mb_per_s" in row.figures:
            ratio = self._untimed.waf(SequentialPass(), control) / waf
            sequential = self._timed.sequential(control)
            return {"mb_per_s": Modelled(sequential.value * ratio, sequential.error)}
        if self._writes is None:
            self._writes = self._timed.writes(control)[0]
        ratio = self._untimed.waf(_UNIFORM, control) / waf
        return {"kiops": Modelled(self._writes.value * ratio, self._writes.error)}


def _cells(device: str, row: Row, found: Mapping[str, Modelled], fit: Fit | None) -> Iterator[Cell]:
    for figure, measured in row.figures.items():
        modelled = found.get(figure)
        role = "open" if fit is None else fit.role(row.name, figure)
        if modelled is None:
            note = row.doubt or "no such request"
            yield Cell(device, row.name, row.drive, figure, measured, None, None, None, role, note)
            continue
        error = (modelled.value / measured - 1) * 100
        yield Cell(
            device,
            row.name,
            row.drive,
            figure,
            measured,
            modelled.value,
            error,
            modelled.error * 100,
            role,
        )
