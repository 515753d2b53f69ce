"""Fit of a device's times to tables of measurements, by CMA-ES.

The structure of the device (dies, planes, reserve, buffer) is not changed. The value of each key in
`PARAMETERS` is multiplied by a factor. A key with several values (times by page type) has one factor for all,
because percentiles of a table do not show which page type a request met. The cost is a weighted mean over the
figures of the fitted rows of

    ln(1 + e^2),  e = ln(modelled / measured) / tolerance

Because of the logarithm, a figure that the model cannot meet does not dominate the cost. Rows that are not
fitted are held out: the fit never runs their loads.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, TypeAlias

from .. import _core
from .._devices import Overrides, Spec, Value, as_toml
from .._devices import device as read_device
from .._support.estimates import student_t
from .._support.watch import Task, run_all
from ..calibrate.refine import needed
from ..errors import FlashtwinError, Interrupted
from .fits import Fit, fit_of
from .loads import ProbeBesideWrites, RandomReads
from .tables import Row, chosen_rows, read_table
from .timed import Lengths, Modelled, Timed, written

if TYPE_CHECKING or sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

#: Lengths of the runs of a fit. They are shorter than those of `device check --against`.
LENGTHS = Lengths(0.6, 1.0)
#: Patterns of all rows with response times.
TIMED_ROWS = "*/latency/*;*/reads/*"
#: Weight of a figure in kIOPS (a rate) in the cost. Every other figure has weight 1.
RATE_WEIGHT = 6.0
#: Tolerances: relative errors for which e = 1 in the formula of the cost, by the end of a figure's name.
TOLERANCES = {"kiops": 0.05, "p50": 0.1, "p99": 0.1, "p99.9": 0.2}
#: Keys of the device file whose values are fitted. For each key: the largest factor by which a value is
#: multiplied or divided, and whether values are rounded to whole numbers.
PARAMETERS: dict[str, tuple[float, bool]] = {
    "timing.read_us": (2.0, False),
    "timing.program_us": (3.0, False),
    "timing.erase_us": (4.0, False),
    "timing.transfer_ns_per_byte": (3.0, False),
    "nand.suspend_us": (4.0, False),
    "nand.suspend_rest_us": (4.0, False),
    "link.command_overhead_us": (2.0, False),
    "controller.request_us": (4.0, False),
    "buffer.background_depth": (4.0, True),
    "buffer.latency_us": (3.0, False),
    "buffer.pause_us": (1.5, False),
    "buffer.pause_every_us": (1.5, False),
    "buffer.pause_pages_per_s": (1.5, True),
}
#: A value is called identified if the fit of another seed is expected to differ from the mean of the fits by
#: at most this fraction, with this probability. Two fits may agree by chance, so the expectation is a
#: prediction interval (Student's t).
AGREEMENT = 0.10
CONFIDENCE = 0.95
#: Cost of a device that is not valid, such as one whose pauses are longer than the time between them.
_INVALID = 1e3
#: Standard deviation of the first points of the search, in coordinates that run from -1 to 1.
_SIGMA = 0.25

#: Function that is called with the number of evaluated devices, their final number, and the lowest cost.
OnEvaluated: TypeAlias = Callable[[int, int, float], None]
_Values: TypeAlias = "dict[str, list[float]]"


@dataclass(frozen=True)
class FittedTimes:
    """A device with times that were fitted to rows of tables of measurements.

    Attributes:
        spec: the device.
        start_cost: cost of the device before the fit.
        cost: cost of `spec`.
        values: fitted values by key. A key that is a list in the device file has one value per element.
        by_seed: for each seed, the values that its fit found.
        fit: the drive, and the figures that were fitted.
        interrupted: whether Ctrl-C ended the fit early.
    """

    spec: Spec
    start_cost: float
    cost: float
    values: Mapping[str, list[float]]
    by_seed: Sequence[Mapping[str, list[float]]]
    fit: Fit = field(repr=False)
    interrupted: bool = False

    def scatter(self, key: str) -> float:
        """Return the half-width of the interval in which the fit of another seed is expected, as a fraction.

        The interval is computed from the logarithms of the values that the seeds found. At least two seeds
        are needed. For a key with several values, the widest interval counts.
        """
        n = len(self.by_seed)
        seeds = zip(*(values[key] for values in self.by_seed), strict=True)
        deviation = max(stdev(map(math.log, values)) for values in seeds)
        return math.expm1(student_t(CONFIDENCE, n - 1) * deviation * math.sqrt(1 + 1 / n))

    def standing(self, key: str) -> str:
        """Return a text that states whether the fits of several seeds determine the values of a key."""
        if len(self.by_seed) < 2:
            return "fitted"
        scatter = self.scatter(key)
        which = "identified" if scatter <= AGREEMENT else "not identified"
        return f"fitted, {which}: another seed is expected within {_percent(scatter)}"

    def to_toml(self, name: str) -> str:
        """Return the device file. Each line with a fitted value ends in a comment that states this."""
        lines = [
            "# Written by `flashtwin calibrate fit --table`. Values without a comment were not fitted.",
        ]
        section = ""
        for line in self.spec.to_toml().splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            key = f"{section}.{line.partition(' =')[0]}"
            if line.startswith("name = "):
                lines.append(f"name = {json.dumps(name)}")
            elif key in self.values:
                lines.append(f"{line}  # {self.standing(key)}")
            else:
                lines.append(line)
        return "\n".join(lines) + "\n"


def fit_times(
    device: str | Path,
    tables: Sequence[str | Path],
    *,
    set: Overrides | None = None,
    drive: str | None = None,
    rows: str | None = None,
    evaluations: int = 200,
    seeds: Sequence[int] = (1,),
    threads: int = 1,
    on_evaluated: OnEvaluated | None = None,
) -> FittedTimes:
    """Fit the times of a device to rows of tables of measurements.

    Args:
        device: name or file of the device to begin with.
        tables: CSV files, of which only rows with response times are used.
        set: keys of the device to override.
        drive: drive whose rows are used, given as the first part of their names, such as "h0"; by default the
            drive to which the device is fitted.
        rows: rows to fit, as a pattern such as "*/latency/50", or several patterns separated by ";". By
            default those to which the device is fitted, or all rows of the drive.
        evaluations: number of devices that each fit simulates.
        seeds: seeds of the fits. A seed determines the loads and the search. With several seeds, the result
            is the fit with the lowest cost.
        threads: number of loads that run at the same time.
        on_evaluated: function to call after each batch of simulated devices (`OnEvaluated`).

    Raises:
        FlashtwinError: a table cannot be read, no row is chosen, or a package is missing.
        Interrupted: on Ctrl-C before a device has been simulated.
    """
    spec = read_device(device, set)
    chosen = _rows_to_fit(spec, tables, drive, rows)
    found: list[_Search] = []
    for seed in seeds:
        search = _Search(spec, chosen, seed, threads)

        def report(done: int, cost: float) -> None:
            if on_evaluated:
                on_evaluated(len(found) * evaluations + done, len(seeds) * evaluations, cost)

        search.run(evaluations, report)
        if search.best is None:
            if not found:
                raise Interrupted(None)
            break
        found.append(search)
        if search.interrupted:
            break
    best = min(found, key=lambda search: search.cost)
    assert best.best is not None
    values = best.values(best.best)
    keys = tuple(dict.fromkeys(row.name.partition("/")[0] for row in chosen))
    fitted = tuple(f"{row.name}:*" for row in chosen)
    return FittedTimes(
        _with_values(spec, values),
        best.start_cost,
        best.cost,
        values,
        [search.values(search.best) for search in found if search.best is not None],
        Fit(keys, spec.exported_bytes / 2**30, fitted),
        len(found) < len(seeds) or any(search.interrupted for search in found),
    )


def _rows_to_fit(
    spec: Spec, tables: Sequence[str | Path], drive: str | None, patterns: str | None
) -> list[Row]:
    """Return the rows with response times that are to be fitted."""
    fit = fit_of(spec.name)
    of_drive = [
        row
        for table in tables
        for row in chosen_rows(
            read_table(table), [drive] if drive else list(fit.keys) if fit else None, patterns
        )
        if isinstance(row.load, ProbeBesideWrites | RandomReads) and not row.doubt
    ]
    if patterns is None and fit is not None and drive in (None, *fit.keys):
        of_drive = [
            row for row in of_drive if any(fit.role(row.name, figure) == "fitted" for figure in row.figures)
        ]
    if not of_drive:
        raise FlashtwinError(
            f"{spec.name}: no row with response times is chosen: give --drive, as the names of rows "
            "begin, or another --rows"
        )
    drives = sorted({row.name.partition("/")[0] for row in of_drive})
    if len(drives) > 1 and fit is None:
        raise FlashtwinError(f"the table has rows of {', '.join(drives)}: give one as --drive")
    return of_drive


def _percent(fraction: float) -> str:
    """Format a fraction; beyond a factor of ten, its size does not matter."""
    return f"{fraction:.0%}" if fraction < 9 else "a factor of more than 10"


def tolerance(figure: str) -> float:
    """Return the tolerance of a figure: the relative error e = 1 in the formula of the cost."""
    return TOLERANCES[figure.removesuffix("_us").rpartition("_")[2]]


def penalty(e: float) -> float:
    """Return the cost of an error `e`, which is given as a multiple of the tolerance."""
    return math.log(1 + e * e)


def cost(rows: Sequence[Row], found: Sequence[Mapping[str, Modelled]]) -> float:
    """Return the cost of a device: the weighted mean over the figures of all rows."""
    costs = weights = 0.0
    for row, modelled in zip(rows, found, strict=True):
        for figure, measured in row.figures.items():
            if figure not in modelled:
                continue
            weight = RATE_WEIGHT if figure == "kiops" else 1.0
            ratio = modelled[figure].value / measured
            costs += weight * penalty(math.log(max(ratio, 1e-9)) / tolerance(figure))
            weights += weight
    return costs / weights


class _Search:
    """The fit of one seed.

    A point of the search has one coordinate from -1 to 1 for each key: ln(factor) / ln(largest factor). The
    values of the device are multiplied by the factor.
    """

    def __init__(self, spec: Spec, rows: Sequence[Row], seed: int, threads: int) -> None:
        self._spec = spec
        self._rows = rows
        self._seed = seed
        self._threads = threads
        table = tomllib.loads(spec.to_toml())
        self._first: _Values = {}
        for key in PARAMETERS:
            section, name = key.split(".")
            value = table.get(section, {}).get(name)
            values = value if isinstance(value, list) else [value]
            if all(isinstance(each, int | float) and each > 0 for each in values):
                self._first[key] = [float(each) for each in values]
        self._written: _core.Device | None = None
        self.start_cost = self.cost = math.inf
        self.best: Sequence[float] | None = None
        self.interrupted = False

    @property
    def _size(self) -> int:
        return len(self._first)

    def values(self, point: Sequence[float]) -> _Values:
        """Return the values that a point stands for, rounded to three digits."""
        coordinates = iter(point)
        found: _Values = {}
        for key, values in self._first.items():
            largest, whole = PARAMETERS[key]
            factor = math.exp(max(-1.0, min(1.0, next(coordinates))) * math.log(largest))
            for value in values:
                new = max(1.0, float(round(value * factor))) if whole else float(f"{value * factor:.3g}")
                found.setdefault(key, []).append(new)
        return found

    def run(self, evaluations: int, report: Callable[[int, float], None]) -> None:
        """Search until the given number of devices was simulated, or until Ctrl-C."""
        try:
            self._run(evaluations, report)
        except KeyboardInterrupt:
            self.interrupted = True

    def _run(self, evaluations: int, report: Callable[[int, float], None]) -> None:
        start = [0.0] * self._size
        options = {
            "maxfevals": evaluations,
            "seed": self._seed,
            "bounds": [-1, 1],
            "verbose": -9,
            "verb_log": 0,
        }
        strategy = needed("cma").CMAEvolutionStrategy(start, _SIGMA, options)
        costs = self._costs([start])
        if costs is None:
            return
        self.start_cost = self.cost = costs[0]
        self.best, done = start, 0
        report(done, self.cost)
        while not strategy.stop():
            points = strategy.ask()
            costs = self._costs(points)
            if costs is None:
                return
            strategy.tell(points, costs)
            done += len(points)
            at = min(range(len(points)), key=costs.__getitem__)
            if costs[at] < self.cost:
                self.best, self.cost = list(points[at]), costs[at]
            report(min(done, evaluations), self.cost)

    def _costs(self, points: Sequence[Sequence[float]]) -> list[float] | None:
        """Return the costs of points; None after Ctrl-C."""
        if self._written is None:
            self._written = written(self._spec, self._seed, _core.Control())
        specs = [self._spec_at(point) for point in points]
        tasks = [task for spec in specs if spec is not None for task in self._tasks(spec)]
        found, self.interrupted = run_all(tasks, self._threads, None)
        if self.interrupted:
            return None
        figures = iter([each for each in found if isinstance(each, Mapping)])
        return [
            _INVALID if spec is None else cost(self._rows, [next(figures) for _ in self._rows])
            for spec in specs
        ]

    def _spec_at(self, point: Sequence[float]) -> Spec | None:
        """Return the device with the values of a search point; None if they are not permitted together."""
        try:
            return _with_values(self._spec, self.values(point))
        except FlashtwinError:
            return None

    def _tasks(self, spec: Spec) -> Iterator[Task]:
        """Return one task for each row.

        All devices of the search begin in the same state of the flash: it does not depend on their times.
        """
        timed = Timed(spec, self._seed, LENGTHS, self._written)
        for row in self._rows:
            yield Task(row.name, partial(_figures, timed, row))


def _figures(timed: Timed, row: Row, control: _core.Control) -> Mapping[str, Modelled]:
    if isinstance(row.load, ProbeBesideWrites):
        return timed.beside_writes(row.load, control)
    assert isinstance(row.load, RandomReads)
    return timed.reads(row.load, control)


def _overrides(values: Mapping[str, Sequence[float]]) -> dict[str, Value]:
    """Return values as overrides of a device: a key with one value as a number, otherwise as a list."""
    found: dict[str, Value] = {}
    for key, each in values.items():
        whole = PARAMETERS[key][1]
        numbers = [int(value) if whole else value for value in each]
        found[key] = numbers[0] if len(numbers) == 1 else f"[{', '.join(map(str, numbers))}]"
    return found


def _with_values(spec: Spec, values: Mapping[str, Sequence[float]]) -> Spec:
    """Return the device with other values."""
    settings = [(key, as_toml(value)) for key, value in _overrides(values).items()]
    return Spec.parse(spec.to_toml(), spec.name, settings)
