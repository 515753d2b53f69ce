"""Joint refinement of all parameters: linear (least-squares) steps, then a search by CMA-ES."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from .. import _core
from .._support.inputs import RESULTS_MAX, parse_json, read_text
from ..errors import FlashtwinError
from .figures import LINEAR_FROM, Figures, allowed, cost, errors, weight
from .parameters import BY_NAME, Values

#: Function that returns the figures of a device in the run with a given number. Several runs of one device
#: show the noise of its figures.
Evaluate: TypeAlias = Callable[[Values, int], Figures]
#: NumPy arrays and the NumPy module. They are Any, because NumPy is imported only for a fit.
Array: TypeAlias = Any
Module: TypeAlias = Any

#: Standard deviation of a parameter's logarithm that is assumed before any measurement. It is also the
#: largest step.
_PRIOR = 0.7
_DAMPINGS = ((0.0, 0.3), (0.05, 2.0))
#: A step is successful only if it lowers the cost by at least this fraction.
_GAIN = 0.01
#: Factors that are tried for parameters with a nonlinear effect, one tuple per round. If their first
#: estimates are far off, linear steps do not find the best values.
_FACTORS = ((0.65, 0.8, 1.25, 1.5), (0.9, 1.1), (0.95, 1.05))
#: Factors that are tried for parameters that closed forms estimate well, one tuple per round.
_NEAR_FACTORS = ((0.94, 0.97, 1.03, 1.06), (0.98, 1.02), (0.99, 1.01))
_TRIED = {
    # No closed form determines the program time if the link limits sequential writes.
    "program": _FACTORS,
    "erase": _FACTORS,
    "program_spread": _FACTORS,
    "reserve": _FACTORS,
    "request": _FACTORS,
    "buffer": _NEAR_FACTORS,
    "slc": _FACTORS,
}
_ROUNDS = len(_FACTORS)
#: No alternatives are tried if the cost is below this value. It corresponds to an error of about a sixth of
#: the tolerance in each figure.
_ENOUGH = 0.03
#: Number of runs from which the noise of figures and parameters is computed.
_RUNS = 4
#: A parameter is doubtful if changing its logarithm by `_DOUBT` increases the cost by less than the factor
#: `_WORSE`.
_DOUBT = 0.10
_WORSE = 3.0
#: A change of a figure counts as no change if it is below this multiple of the standard deviation between
#: seeds.
_NOISES = 2.0


@dataclass(frozen=True)
class Refined:
    """Result of a refinement.

    Attributes:
        values: the parameters with the lowest cost.
        cost: mean of the squared errors; errors are multiples of the tolerance.
        spreads: standard error of the logarithm of each parameter.
        sensitivities: by parameter and figure, the derivative of the figure's logarithm with respect to the
            parameter's logarithm.
        evaluations: number of evaluated devices.
        noise: standard deviation of the logarithm of each figure between runs.
        doubtful: parameters for which other values fit nearly as well if all other parameters are adjusted.
    """

    values: Values
    cost: float
    spreads: dict[str, float]
    sensitivities: dict[str, Figures]
    evaluations: int
    noise: Figures = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()


class Journal:
    """Completed evaluations of a fit, one per line of a file. A fit that was interrupted reuses them."""

    def __init__(self, evaluate: Evaluate, path: Path | None, context: str) -> None:
        self._evaluate = evaluate
        self._path = path
        self._context = context
        self._known: dict[str, Figures] = {}
        self.evaluations = 0
        if path is not None and path.exists():
            for line in read_text(path, "journal of a fit", RESULTS_MAX).splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            entry = parse_json(line)
            self._known[entry["key"]] = {str(name): float(value) for name, value in entry["figures"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            # This is the incomplete last line of a fit that was killed.
            return

    def __call__(self, values: Values, run: int = 0) -> Figures:
        """Return the figures of the device with these parameters. An invalid device has no figures."""
        text = json.dumps([_core.__version__, self._context, values, run], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        self.evaluations += 1
        if key not in self._known:
            try:
                self._known[key] = self._evaluate(values, run)
            except FlashtwinError:
                self._known[key] = {}
            if self._path is not None:
                line = json.dumps({"key": key, "figures": self._known[key]})
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        return self._known[key]


class Refinement:
    """One joint refinement of all parameters that are not whole numbers."""

    def __init__(
        self,
        target: Figures,
        start: Values,
        evaluate: Journal,
        *,
        threads: int,
        steps: Mapping[str, float] | None = None,
        uncertain: Mapping[str, float] | None = None,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> None:
        """Begin at `start`.

        Args:
            steps: by parameter, the smallest change of its logarithm that affects the device.
            uncertain: standard errors of the logarithms of measured figures.
        """
        self._target = target
        self._start = start
        self._journal = evaluate
        self._on_progress = on_progress
        self._numpy = needed("numpy")
        self.names = [name for name in start if not BY_NAME[name].whole]
        #: For the logarithm of each parameter: the smallest change that affects the device, and the change
        #: with which sensitivities are measured.
        self._least = [(steps or {}).get(name, 0.0) for name in self.names]
        self._steps = [
            max(BY_NAME[name].step, least) for name, least in zip(self.names, self._least, strict=True)
        ]
        self._pool = ThreadPoolExecutor(threads)
        self._x = self._numpy.array([math.log(start[name]) for name in self.names])
        self._uncertain = dict(uncertain or {})
        self._noise: Figures = self._uncertain
        self._errors = self._at(self._x)
        self._cost = cost(self._errors)
        #: Figures that the fit compares, in a fixed order.
        self._figures = sorted(self._errors)

    def values(self, x: Sequence[float]) -> Values:
        """Return the parameters at a point of the search, whose coordinates are logarithms."""
        changed = {name: BY_NAME[name].clip(math.exp(at)) for name, at in zip(self.names, x, strict=True)}
        return {**self._start, **changed}

    def run(self, steps: int, generations: int, seed: int) -> Refined:
        """Refine with at most `steps` linear steps and `generations` of CMA-ES, which `seed` determines."""
        if not steps:
            return Refined(self.values(self._x), self._cost, {}, {}, self._journal.evaluations)
        self._measure_noise()
        # Far from the best values, one-sided differences are accurate enough to show the direction.
        jacobian = self._linear_steps(steps, self._side(1))
        before = self._allowed()
        self._measure_noise()
        jacobian *= (before / self._allowed())[:, None]
        refined = self._x
        for which in range(_ROUNDS):
            if self._cost > _ENOUGH and self._jump(jacobian, which):
                jacobian = self._linear_steps(steps, jacobian, renew=False)
        if generations:
            self._search(self._whitening(jacobian), generations, seed)
        if self._x is not refined:
            jacobian = self._jacobian()
        spreads = self._spreads(jacobian)
        narrow = [name for name, spread in spreads.items() if spread < _DOUBT]
        doubtful = self._doubtful(jacobian, narrow)
        self._pool.shutdown()
        return Refined(
            self.values(self._x),
            self._cost,
            spreads,
            {
                name: {
                    figure: float(jacobian[row, column] * allowed(figure, self._noise))
                    for row, figure in enumerate(self._figures)
                }
                for column, name in enumerate(self.names)
            },
            self._journal.evaluations,
            self._noise,
            doubtful,
        )

    def _at(self, x: Sequence[float], run: int = 0) -> Figures:
        return errors(self._target, self._journal(self.values(x), run), self._noise)

    def _allowed(self) -> Array:
        return self._numpy.array([allowed(figure, self._noise) for figure in self._figures])

    def _measure_noise(self) -> None:
        """Measure how much each figure varies between several runs with the current parameters."""
        runs = list(self._pool.map(lambda run: self._journal(self.values(self._x), run), range(_RUNS)))
        self._noise = {
            name: math.hypot(
                float(self._numpy.std([math.log(run[name]) for run in runs], ddof=1)),
                self._uncertain.get(name, 0.0),
            )
            for name in self._target
            if all(run.get(name, 0) > 0 for run in runs)
        }
        self._errors = self._at(self._x)
        self._cost = cost(self._errors)

    def _all(self, points: Sequence[Sequence[float]]) -> list[Figures]:
        return list(self._pool.map(self._at, points))

    def _take(self, points: Sequence[Array], found: Sequence[Figures], phase: str) -> list[float]:
        """Return the cost of each point, computed from its errors in `found`.

        If the best of them has a lower cost than the current point, it becomes the current point.
        """
        costs = [cost(each) for each in found]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] < self._cost:
            self._x, self._errors, self._cost = points[best], found[best], costs[best]
        if self._on_progress:
            self._on_progress(phase, self._cost)
        return costs

    def _jacobian(self) -> Array:
        """Return the sensitivities: derivatives of the errors by the parameters' logarithms.

        They are computed as central differences.
        """
        return (self._side(-1) + self._side(1)) / 2

    def _side(self, sign: int) -> Array:
        """Return the sensitivities from one-sided differences, for larger (1) or smaller (-1) parameters."""
        numpy = self._numpy
        points = []
        for column, step in enumerate(self._steps):
            point = self._x.copy()
            point[column] += sign * step
            points.append(point)
        here = self._in_order(self._errors)
        columns = [
            numpy.where([figure in each for figure in self._figures], self._in_order(each) - here, 0.0)
            * sign
            / step
            for each, step in zip(self._all(points), self._steps, strict=True)
        ]
        return numpy.array(columns).T

    def _weights(self, found: Figures) -> Array:
        """Return the weights of figures. Large errors have less weight, because their cost is linear."""
        numpy = self._numpy
        by_size = numpy.maximum(1, numpy.abs(self._in_order(found)) / LINEAR_FROM)
        return numpy.array([weight(figure) for figure in self._figures]) / by_size

    def _in_order(self, found: Figures) -> Array:
        return self._numpy.array([found.get(figure, 0.0) for figure in self._figures])

    def _information(self, jacobian: Array, found: Figures) -> tuple[Array, Array]:
        """Return curvature and slope of the cost over the logarithms of the parameters."""
        weights = self._weights(found)
        prior = self._numpy.eye(len(self.names)) / _PRIOR**2
        slope = jacobian.T @ (weights * self._in_order(found))
        return jacobian.T @ (weights[:, None] * jacobian) + prior, slope

    def _covariance(self, jacobian: Array) -> Array:
        return self._numpy.linalg.inv(self._information(jacobian, self._errors)[0])

    def _spreads(self, jacobian: Array) -> dict[str, float]:
        """Return the standard error of the logarithm of each parameter: the largest of three estimates.

        The first follows from the curvature of the cost, and assumes errors that are independent and equal.
        The second permits errors within an experiment to be correlated. The third is how much the fitted
        parameters change between runs with other seeds, because the measurement, too, is only one run.
        """
        numpy = self._numpy
        covariance = self._covariance(jacobian)
        runs = numpy.array([self._in_order(self._at(self._x, run)) for run in range(_RUNS)])
        weakest = self._weakest(runs.std(axis=0, ddof=1))
        by_curvature = numpy.sqrt(numpy.diag(self._covariance(weakest)) * max(1.0, self._cost))
        experiments = [figure.split("/")[0] for figure in self._figures]
        names = list(dict.fromkeys(experiments))
        slopes = numpy.zeros((len(names), len(self.names)))
        weighted = jacobian * (self._weights(self._errors) * self._in_order(self._errors))[:, None]
        for experiment, row in zip(experiments, weighted, strict=True):
            slopes[names.index(experiment)] += row
        few = len(names) / max(1, len(names) - len(self.names))
        by_experiment = numpy.sqrt(few * ((slopes @ covariance) ** 2).sum(axis=0))
        moves = (runs * self._weights(self._errors)) @ jacobian @ covariance
        by_seed = math.sqrt(2) * moves.std(axis=0, ddof=1)
        largest = numpy.max([by_curvature, by_experiment, by_seed], axis=0)
        return {name: float(spread) for name, spread in zip(self.names, largest, strict=True)}

    def _weakest(self, noise: Array) -> Array:
        """Return cautious sensitivities, from which intervals are computed.

        For each parameter, the side (larger or smaller values) with the smaller sensitivities counts. For
        example, if a link limits a rate, a faster controller changes nothing, although a slower one would.
        Changes within the noise between seeds count as no change.
        """
        numpy = self._numpy
        limits = _NOISES * math.sqrt(2) * noise[:, None] / numpy.array(self._steps)
        sides = [numpy.where(abs(side) > limits, side, 0.0) for side in (self._side(-1), self._side(1))]
        weights = self._weights(self._errors)[:, None]
        below, above = ((weights * side**2).sum(axis=0) for side in sides)
        return numpy.where(below < above, sides[0], sides[1])

    def _whitening(self, jacobian: Array) -> Array:
        return self._numpy.linalg.cholesky(self._covariance(jacobian))

    def _linear_steps(self, steps: int, jacobian: Array, *, renew: bool = True) -> Array:
        """Take damped least-squares steps as long as they lower the cost enough.

        Return the sensitivities at the end.

        After an unsuccessful step, the sensitivities are measured again if `renew` is true. Otherwise they
        are only updated after each step, by Broyden's method.
        """
        numpy = self._numpy
        exact = False
        for _ in range(steps):
            information, slope = self._information(jacobian, self._errors)
            x, before, had = self._x, self._errors, self._cost
            # Less damped steps are tried first, because mostly one of them is successful.
            for dampings in _DAMPINGS:
                points = []
                for damping in dampings:
                    damped = information + damping * numpy.diag(numpy.diag(information))
                    points.append(x - numpy.clip(numpy.linalg.solve(damped, slope), -_PRIOR, _PRIOR))
                self._take(points, self._all(points), "linear")
                if self._cost <= had * (1 - _GAIN):
                    break
            if self._cost <= had * (1 - _GAIN):
                jacobian, exact = self._updated(jacobian, self._x - x, before), False
            elif exact or not renew:
                break
            else:
                jacobian, exact = self._jacobian(), True
        return jacobian if exact or not renew else self._jacobian()

    def _jump(self, jacobian: Array, which: int) -> bool:
        """Try other values of each parameter in `_TRIED`, with and without adjusting all other parameters.

        Return whether a tried value lowered the cost enough.
        """
        had = self._cost
        for name in (name for name in _TRIED if name in self.names):
            column = self.names.index(name)
            points = []
            for factor in _TRIED[name][which]:
                point = self._x.copy()
                # The change is at least the smallest one that affects the device.
                change = math.copysign(max(abs(math.log(factor)), self._least[column]), math.log(factor))
                point[column] = math.log(BY_NAME[name].clip(math.exp(point[column] + change)))
                points.append(point)
            alone = self._all(points)
            followed = [
                point + self._following(jacobian, column, found)
                for point, found in zip(points, alone, strict=True)
            ]
            self._take([*points, *followed], [*alone, *self._all(followed)], f"{name} tried")
        return self._cost < had * (1 - _GAIN)

    def _following(self, jacobian: Array, fixed: int, found: Figures) -> Array:
        """Return the step that best reduces the given errors, for all parameters except `fixed`."""
        numpy = self._numpy
        free = [column for column in range(len(self.names)) if column != fixed]
        information, slope = self._information(jacobian, found)
        step = numpy.zeros(len(self.names))
        step[free] = -numpy.linalg.solve(information[numpy.ix_(free, free)], slope[free])
        return numpy.clip(step, -_PRIOR, _PRIOR)

    def _doubtful(self, jacobian: Array, names: Sequence[str]) -> frozenset[str]:
        """Return the parameters that can be changed by `_DOUBT` without a much worse fit.

        Their intervals are narrower than this change. They are not reliable, because they were computed from
        sensitivities, which hold only near the best fit.
        """
        doubtful = set()
        for name in names:
            column = self.names.index(name)
            points = []
            for sign in (-1, 1):
                point = self._x.copy()
                point[column] += sign * max(_DOUBT, self._least[column])
                points.append(point)
            alone = self._all(points)
            followed = [
                point + self._following(jacobian, column, found)
                for point, found in zip(points, alone, strict=True)
            ]
            if min(map(cost, [*alone, *self._all(followed)])) < max(_WORSE * self._cost, _ENOUGH):
                doubtful.add(name)
        return frozenset(doubtful)

    def _updated(self, jacobian: Array, step: Array, before: Figures) -> Array:
        """Return the sensitivities, updated by Broyden's method.

        The updated sensitivities predict exactly the change of the errors that was observed for the step.
        """
        numpy = self._numpy
        change = [self._errors.get(figure, 0.0) - before.get(figure, 0.0) for figure in self._figures]
        surprise = numpy.array(change) - jacobian @ step
        return jacobian + numpy.outer(surprise, step) / (step @ step)

    def _search(self, whitening: Array, generations: int, seed: int) -> None:
        """Search around the current point with CMA-ES, in multiples of the parameters' standard errors."""
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
