"""Joint refinement of all parameters: sensitivities first, then CMA-ES in the coordinates that they give."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from .. import _core
from ..errors import FlashtwinError
from .figures import LINEAR_FROM, Figures, cost, errors, tolerance, weight
from .parameters import BY_NAME, Values

Evaluate: TypeAlias = Callable[[Values], Figures]
#: Of NumPy, which is no dependency of what does not fit.
Array: TypeAlias = Any
Module: TypeAlias = Any

#: Logarithm within which a parameter is believed before anything is measured.
_PRIOR = 0.7
_DAMPING = (0.0, 0.05, 0.3, 2.0)
#: A step that gains less than this share is the last.
_GAIN = 0.01


@dataclass(frozen=True)
class Refined:
    """What a refinement found.

    Attributes:
        values: the parameters with the least cost.
        cost: mean of the errors, each in tolerances and squared.
        spreads: standard error of the logarithm of each parameter.
        sensitivities: change of each figure's logarithm with that of each parameter.
        evaluations: number of devices that were measured for it.
    """

    values: Values
    cost: float
    spreads: dict[str, float]
    sensitivities: dict[str, Figures]
    evaluations: int


class Journal:
    """Evaluations that are done, one a line of a file, so that an interrupted fit goes on where it was."""

    def __init__(self, evaluate: Evaluate, path: Path | None, context: str) -> None:
        self._evaluate = evaluate
        self._path = path
        self._context = context
        self._known: dict[str, Figures] = {}
        self.evaluations = 0
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            # The last line of a fit that was killed.
            return
        self._known[entry["key"]] = entry["figures"]

    def __call__(self, values: Values) -> Figures:
        """Return the figures of a device; a device that cannot be built has none."""
        text = json.dumps([_core.__version__, self._context, values], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        self.evaluations += 1
        if key not in self._known:
            try:
                self._known[key] = self._evaluate(values)
            except FlashtwinError:
                self._known[key] = {}
            if self._path is not None:
                line = json.dumps({"key": key, "figures": self._known[key]})
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        return self._known[key]


class Refinement:
    """One joint refinement of the parameters that are not whole numbers."""

    def __init__(
        self,
        target: Figures,
        start: Values,
        evaluate: Journal,
        *,
        threads: int,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> None:
        self._target = target
        self._start = start
        self._journal = evaluate
        self._on_progress = on_progress
        self._numpy = needed("numpy")
        self.names = [name for name in start if not BY_NAME[name].whole]
        self._pool = ThreadPoolExecutor(threads)
        self._x = self._numpy.array([math.log(start[name]) for name in self.names])
        self._errors = self._at(self._x)
        self._cost = cost(self._errors)
        #: Figures that count, in an order.
        self._figures = sorted(self._errors)

    def values(self, x: Sequence[float]) -> Values:
        """Return the parameters at a point."""
        changed = {name: BY_NAME[name].clip(math.exp(at)) for name, at in zip(self.names, x, strict=True)}
        return {**self._start, **changed}

    def run(self, steps: int, generations: int, seed: int) -> Refined:
        """Refine by at most so many linear steps and generations; the same seed gives the same parameters."""
        if not steps:
            return Refined(self.values(self._x), self._cost, {}, {}, self._journal.evaluations)
        jacobian = self._linear_steps(steps)
        if generations:
            self._search(self._whitening(jacobian), generations, seed)
            jacobian = self._jacobian()
        self._pool.shutdown()
        spreads = self._numpy.sqrt(self._numpy.diag(self._covariance(jacobian)) * max(1.0, self._cost))
        return Refined(
            self.values(self._x),
            self._cost,
            {name: float(spread) for name, spread in zip(self.names, spreads, strict=True)},
            {
                name: {
                    figure: float(jacobian[row, column] * tolerance(figure))
                    for row, figure in enumerate(self._figures)
                }
                for column, name in enumerate(self.names)
            },
            self._journal.evaluations,
        )

    def _at(self, x: Sequence[float]) -> Figures:
        return errors(self._target, self._journal(self.values(x)))

    def _all(self, points: Sequence[Sequence[float]]) -> list[Figures]:
        return list(self._pool.map(self._at, points))

    def _take(self, points: Sequence[Array], found: Sequence[Figures], phase: str) -> list[float]:
        """Go to the best of some points if it is better than where the search is."""
        costs = [cost(each) for each in found]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] < self._cost:
            self._x, self._errors, self._cost = points[best], found[best], costs[best]
        if self._on_progress:
            self._on_progress(phase, self._cost)
        return costs

    def _jacobian(self) -> Array:
        """Return the change of each error with the logarithm of each parameter, by central differences."""
        steps = [BY_NAME[name].step for name in self.names]
        points = []
        for column, step in enumerate(steps):
            for sign in (1, -1):
                point = self._x.copy()
                point[column] += sign * step
                points.append(point)
        found = self._all(points)
        jacobian = self._numpy.zeros((len(self._figures), len(steps)))
        for column, step in enumerate(steps):
            above, below = found[2 * column], found[2 * column + 1]
            for row, figure in enumerate(self._figures):
                if figure in above and figure in below:
                    jacobian[row, column] = (above[figure] - below[figure]) / (2 * step)
        return jacobian

    def _information(self, jacobian: Array) -> tuple[Array, Array]:
        """Return the curvature of the cost and its slope; figures far off count less, as in the cost."""
        now = self._numpy.array([self._errors.get(figure, 0.0) for figure in self._figures])
        by_size = self._numpy.maximum(1, self._numpy.abs(now) / LINEAR_FROM)
        weights = self._numpy.array([weight(figure) for figure in self._figures]) / by_size
        prior = self._numpy.eye(len(self.names)) / _PRIOR**2
        return jacobian.T @ (weights[:, None] * jacobian) + prior, jacobian.T @ (weights * now)

    def _covariance(self, jacobian: Array) -> Array:
        return self._numpy.linalg.inv(self._information(jacobian)[0])

    def _whitening(self, jacobian: Array) -> Array:
        return self._numpy.linalg.cholesky(self._covariance(jacobian))

    def _linear_steps(self, steps: int) -> Array:
        """Take damped least-squares steps while they help.

        Where one no longer does, the sensitivities are measured anew: in between they are only updated by
        what the step changed (Broyden).
        """
        numpy = self._numpy
        jacobian, exact = self._jacobian(), True
        for _ in range(steps):
            information, slope = self._information(jacobian)
            points = []
            for damping in _DAMPING:
                damped = information + damping * numpy.diag(numpy.diag(information))
                points.append(self._x - numpy.clip(numpy.linalg.solve(damped, slope), -_PRIOR, _PRIOR))
            x, before, had = self._x, self._errors, self._cost
            self._take(points, self._all(points), "linear")
            if self._cost <= had * (1 - _GAIN):
                jacobian, exact = self._updated(jacobian, self._x - x, before), False
            elif exact:
                break
            else:
                jacobian, exact = self._jacobian(), True
        return jacobian if exact else self._jacobian()

    def _updated(self, jacobian: Array, step: Array, before: Figures) -> Array:
        """Return the sensitivities that explain the errors after a step."""
        numpy = self._numpy
        change = [self._errors.get(figure, 0.0) - before.get(figure, 0.0) for figure in self._figures]
        surprise = numpy.array(change) - jacobian @ step
        return jacobian + numpy.outer(surprise, step) / (step @ step)

    def _search(self, whitening: Array, generations: int, seed: int) -> None:
        """Search about the point with CMA-ES, one standard error being the unit of every direction."""
        origin = self._x.copy()
        options = {"seed": seed, "verbose": -9, "maxiter": generations, "verb_log": 0}
        strategy = needed("cma").CMAEvolutionStrategy([0.0] * len(self.names), 1.0, options)
        while not strategy.stop():
            asked = strategy.ask()
            points = [origin + whitening @ z for z in asked]
            strategy.tell(asked, self._take(points, self._all(points), "CMA-ES"))


def needed(module: str) -> Module:
    """Import a module of the extra `calibrate`."""
    try:
        return import_module(module)
    except ImportError:
        raise FlashtwinError(
            f"a fit needs {module}, which is not installed; pip install 'flashtwin[calibrate]'"
        ) from None
