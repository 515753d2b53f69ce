"""A fit: first estimates, choices by trial, joint refinement, and which parameters are identified."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

from ..errors import FlashtwinError
from . import loads
from .figures import Figures, cost, errors
from .first import caches_reads, choose_channels, choose_dies, choose_reserve, is_near, protected
from .modelled import measure
from .parameters import BY_NAME, Profile, Values
from .refine import Journal, Refined, Refinement
from .results import Results

#: Maximum capacity of a model in bytes. A larger model takes longer to run and gives the same rates.
_CAPACITY_MAX = 2 << 30
#: Largest number of requests that a modelled load has, as a multiple of that in a quick plan. Fitted loads do
#: not change over time, so more requests add little.
_TIMES = 2
#: Half-width of an interval in standard errors. Two would suffice for independent errors, but the percentiles
#: of a run are correlated. In fits to modelled devices with known parameters (experiments/recovery.py), one
#: in ten parameters was outside an interval of two standard errors.
_STANDARD_ERRORS = 4
#: A parameter is identified if its interval extends by at most this fraction of its value to either side.
IDENTIFIED = 0.10
#: If the cost of a model exceeds this, drive and model are assumed to differ in structure, and no parameter
#: counts as identified.
_COST_MAX = 2.0
#: A fill (sequential writes to an empty drive) is fitted only if it has at least this multiple of the
#: buffer's size. Shorter ones measure the buffer more than the flash.
_FILL_TO_BUFFER = 10
#: Relative change of the parameters between runs of the same requests. The differences between these runs
#: give the noise that remains if requests are equal. The direct effect of so small a change on a figure is
#: negligible.
_JITTER = 0.0003
#: First value that is tried for the time of a suspension, in us.
_SUSPEND_US = 20.0
#: SLC caches that are tried first: their percentages of the raw capacity, and their program time as a
#: fraction of that of the other flash.
_CACHES = (2.5, 5.0, 10.0, 20.0)
_CACHE_PROGRAM = 0.3
#: Factors by which the best of the percentages in `_CACHES` is then multiplied, to try values near it.
_CACHE_TIMES = (0.7, 0.84, 1.2, 1.4)
#: A cache is assumed only if the cost with it is below this fraction of the cost without a cache.
_CACHE_GAIN = 0.8
#: Other numbers of components are refined, too, if their cost is below this multiple of the refined cost.
_PROMISING = 3.0
#: Reserves in percent that are tried in addition to the one that yields the measured rate.
_RESERVES = (6.0, 9.0, 13.0, 18.0, 26.0, 36.0)
#: Largest number of rounds. In each, the reserve is chosen, then suspension and spread.
_RESERVE_ROUNDS = 3
#: Values that are tried first for the spread of program times.
_SPREADS = (1.1, 1.3, 1.5, 1.7)


@dataclass(frozen=True)
class Calibration:
    """A fitted profile and its quality.

    Attributes:
        profile: the device.
        first: parameters before the refinement.
        refined: the refinement, with the standard errors of the parameters.
        measured: all measured figures.
        modelled: the same figures, modelled with the profile.
        drive_bytes: capacity of the drive; that of the model may be smaller.
        unknown: parameters that are numbers of components and for which other values fit as well; also
            "protected" if no experiment determines it.
    """

    profile: Profile
    first: Values
    refined: Refined
    measured: Figures
    modelled: Figures
    drive_bytes: int
    unknown: frozenset[str]

    def relative_error(self, figure: str) -> float:
        """Return the modelled minus the measured value of a figure, as a fraction of the measured value."""
        return self.modelled[figure] / self.measured[figure] - 1

    def spread(self, name: str) -> float | None:
        """Return the half-width of a parameter's interval as a fraction of its value; None if not refined."""
        spread = self.refined.spreads.get(name)
        return None if spread is None else _STANDARD_ERRORS * spread

    def identified(self, name: str) -> bool:
        """Whether the experiments determine a parameter."""
        if self.refined.cost > _COST_MAX:
            return False
        if BY_NAME[name].whole:
            return name not in self.unknown
        spread = self.spread(name)
        return spread is not None and spread <= IDENTIFIED and name not in self.refined.doubtful

    def standing(self, name: str) -> str:
        """Return how a parameter's value was determined: measured, estimated, fitted or assumed."""
        if BY_NAME[name].whole:
            return "measured" if self.identified(name) else "assumed"
        if not self.refined.spreads:
            return "estimated"
        return "fitted" if self.identified(name) else "assumed"


def fit(
    results: Results,
    *,
    steps: int = 12,
    generations: int = 0,
    seed: int = 1,
    threads: int = 1,
    host_us: float = 0.0,
    journal: Path | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> Calibration:
    """Fit a profile to figures of experiments. The fit does not use held-out figures; it only reports them.

    Args:
        results: results of the experiments.
        steps: maximum number of linear steps. If it is 0, the first estimates are kept.
        generations: number of generations of CMA-ES, after the linear steps.
        seed: seed of the loads and of CMA-ES.
        threads: number of evaluations at the same time; it does not change the result.
        host_us: time that the host adds to each request. It is subtracted from the overhead of the device.
        journal: file of completed evaluations, from which an interrupted fit continues.
        on_progress: function to call with phase and cost after each step.

    Raises:
        FlashtwinError: an experiment or an extra package is missing.
    """
    results.require_whole()
    figures, drive_bytes, uncertain = results.figures, results.capacity_bytes, results.uncertain
    fills = [load for load in loads.writes(drive_bytes) if load.name.startswith("write-fill")]
    results.require_size({load.name: load.requests for load in fills})
    capacity = min(drive_bytes, _CAPACITY_MAX)
    unseen = {load.name for load in [*loads.held_out(), *loads.measured_only(capacity)]}
    shown = protected(figures)
    # If the requests are known, they are replayed, so that drive and model have the same noise of random
    # requests.
    loads_seed = seed if results.seed is None else results.seed
    target = {name: value for name, value in figures.items() if name.split("/")[0] not in unseen}

    def profile_of(values: Values) -> Profile:
        return Profile(values, capacity, shown is not False)

    def under(which: list[loads.Load], *times_max: int) -> Callable[..., Figures]:
        # Modelled runs are as long as the measurement, because tails and drifts depend on the length.
        exact = [load.as_measured(results.requests, *times_max) for load in which]

        def figures_of(values: Values, run: int = 0) -> Figures:
            # The noise is computed from several runs. Their requests differ or, if the requests are known,
            # their parameters differ slightly.
            shift = 0 if results.seed is not None else run
            spec = profile_of(_jittered(values, run - shift)).spec()
            return measure(spec, exact, loads_seed + shift, in_order=results.in_order)

        return figures_of

    strides = [load for load in loads.reads() if load.name.startswith("read-stride")]
    first = choose_dies(target, drive_bytes, under(strides, _TIMES), uncertain)
    first, channels_known = choose_channels(first, target, under(loads.reads(), _TIMES), uncertain)
    in_order = [
        load for load in loads.writes(capacity) if load.name.startswith(("write-fill", "write-burst"))
    ]
    first = _choose_cache(first, target, under(in_order), uncertain)
    steady = [load for load in loads.writes(capacity) if load.name == "write-random"]
    rate = "write-random/mb_per_s"
    if rate not in target:
        raise FlashtwinError(f"{steady[0].name}: no results; run this experiment")
    first = choose_reserve(first, target[rate], lambda values: under(steady, _TIMES)(values)[rate])
    beside = [load for load in loads.writes(capacity) if load.name.startswith("beside")]
    first = _confirm_reserve(
        first, target, under([*steady, *beside], _TIMES), under(beside, _TIMES), uncertain
    )
    if capacity < drive_bytes:
        target = _without_buffered_fills(target, capacity, first.get("buffer", 0.0))
    if not caches_reads(target):
        # This drive does not cache reads, but the buffer of the model always does. It cannot fit these
        # figures.
        target = {name: value for name, value in target.items() if not name.startswith("read-range-")}
    context = hashlib.sha256(json.dumps([sorted(target.items()), capacity, seed]).encode()).hexdigest()
    # Reads with strides are not refined; they have already determined the numbers of dies and planes. Large
    # strides have few addresses, so their rates depend on how many of these pages are in the buffer.
    refining = [load for load in loads.reads() if load not in strides] + loads.writes(capacity)
    evaluate = Journal(under(refining, _TIMES), journal, context)

    def refine(start: Values) -> Refined:
        least = profile_of(start).least_steps()
        refinement = Refinement(
            target,
            start,
            evaluate,
            threads=threads,
            steps=least,
            uncertain=uncertain,
            on_progress=on_progress,
        )
        return refinement.run(steps, generations, seed)

    refined = refine(first)
    if steps:
        refined, channels_known = _recount(refined, target, evaluate, refine, threads)
    every = [load for load in loads.every(capacity) if load.name in results.requests]
    modelled = under(every)(refined.values)
    # Up to here, modelled figures include the time of the host, as measured ones do. The device file omits
    # this time.
    refined = _without_host(refined, host_us)
    # In the order of the loads.
    both = {name: figures[name] for name in modelled if name in figures}
    unknown = set() if channels_known else {"channels", "dies"}
    if shown is None:
        unknown.add("protected")
    return Calibration(
        profile_of(refined.values), first, refined, both, modelled, drive_bytes, frozenset(unknown)
    )


def _jittered(values: Values, run: int) -> Values:
    """Return the parameters for a run: unchanged in run 0, otherwise changed slightly, to show the noise."""
    rng = random.Random(run)
    factors = {name: 1 + rng.choice((-_JITTER, _JITTER)) for name in values if not BY_NAME[name].whole}
    return {name: value * factors.get(name, 1.0) for name, value in values.items()} if run else values


def _without_host(refined: Refined, host_us: float) -> Refined:
    """Return the refinement with the overhead of the device alone, without the time of the host."""
    if not host_us:
        return refined
    fitted = refined.values["overhead"]
    left = BY_NAME["overhead"].clip(fitted - host_us)
    spreads = dict(refined.spreads)
    if spreads:
        spreads["overhead"] *= fitted / left
    return replace(refined, values={**refined.values, "overhead": left}, spreads=spreads)


def _without_buffered_fills(target: Figures, capacity_bytes: int, buffer_bytes: float) -> Figures:
    """Return the figures without those of short fills (sequential writes to an empty drive).

    The data of short fills mostly end in the model's buffer.
    """
    shares = {f"write-fill-{percent}/mb_per_s": percent / 100 for percent in loads.FILLS}
    least = _FILL_TO_BUFFER * buffer_bytes
    return {name: value for name, value in target.items() if shares.get(name, 1) * capacity_bytes >= least}


def _recount(
    refined: Refined,
    target: Figures,
    evaluate: Callable[[Values], Figures],
    refine: Callable[[Values], Refined],
    threads: int,
) -> tuple[Refined, bool]:
    """Try other numbers of channels, dies and planes again, now with the refined parameters.

    Returns:
        The better refinement, and whether all other numbers fit the figures clearly worse.
    """

    def best_other(of: Refined) -> tuple[float, Values]:
        def error(values: Values) -> float:
            return cost(errors(target, evaluate(values), of.noise))

        others = _other_counts(of.values)
        with ThreadPoolExecutor(threads) as pool:
            costs = list(pool.map(error, others))
        return min(zip(costs, others, strict=True), key=lambda each: each[0], default=(math.inf, {}))

    other_cost, other = best_other(refined)
    if other_cost < _PROMISING * refined.cost:
        again = refine(other)
        if again.cost < refined.cost:
            refined = again
            other_cost, _ = best_other(refined)
    return refined, not is_near(other_cost, refined.cost)


def _other_counts(values: Values) -> list[Values]:
    """Return variants of the parameters with other numbers of channels, dies and planes.

    In each variant, one of these numbers is doubled and another one is halved.
    """
    return [
        {**values, more: 2 * values[more], less: values[less] / 2}
        for more, less in permutations((name for name in values if BY_NAME[name].whole), 2)
        if values[less] % 2 == 0 and 2 * values[more] <= BY_NAME[more].high
    ]


def _choose_cache(
    values: Values,
    target: Figures,
    measure_writes: Callable[[Values], Figures],
    uncertain: Figures | None = None,
) -> Values:
    """Return the parameters whose SLC cache (or lack of one) fits the writes to an empty drive best.

    A trial is necessary, because no closed form determines the cache if the buffer absorbs the writes to a
    small cache, or if channels limit its rate.
    """
    plain = {name: value for name, value in values.items() if not name.startswith("slc")}
    program = BY_NAME["slc_program"].clip(_CACHE_PROGRAM * values["program"])
    cached = [{**plain, "slc": percent, "slc_program": program} for percent in _CACHES]
    cached += [values] if "slc" in values else []

    def error(each: Values) -> float:
        try:
            return cost(errors(target, measure_writes(each), uncertain))
        except FlashtwinError:
            return cost({})

    best = min(cached, key=error)
    best = min([best, *({**best, "slc": best["slc"] * times} for times in _CACHE_TIMES)], key=error)
    return best if error(best) < _CACHE_GAIN * error(plain) else plain


def _confirm_reserve(
    values: Values,
    target: Figures,
    measure_steady: Callable[[Values], Figures],
    measure_beside: Callable[[Values], Figures],
    uncertain: Figures | None = None,
) -> Values:
    """Return the parameters whose reserve, suspension and program spread fit steady writes best.

    Reads that run beside the writes are fitted, too. `values` has the reserve that yields the measured write
    rate. That reserve may be wrong: if an SLC cache limits the rate, many reserves give nearly the same rate.
    Without suspension, reads beside writes may fit only with a wrong reserve. Therefore reserve and
    suspension are chosen in turn.
    """
    reserves = (values["reserve"], *_RESERVES)

    def error(each: Values) -> float:
        return cost(errors(target, measure_steady(each), uncertain))

    for _ in range(_RESERVE_ROUNDS):
        before = values
        values = min([values, *({**values, "reserve": percent} for percent in reserves)], key=error)
        values = _choose_beside(values, target, measure_beside, uncertain)
        if values == before:
            break
    return values


def _choose_beside(
    values: Values,
    target: Figures,
    measure_beside: Callable[[Values], Figures],
    uncertain: Figures | None = None,
) -> Values:
    """Return the parameters whose suspension and program spread fit the reads beside writes best.

    Several values are tried, because their effect on the percentiles is not linear. A refinement that starts
    far from the best values cannot find them.
    """
    tried: list[Values] = []
    rest = {name: value for name, value in values.items() if name != "suspend"}
    for spread in _SPREADS:
        plain = {**rest, "program_spread": spread}
        tried += [plain, {**plain, "suspend": _SUSPEND_US}]

    def error(each: Values) -> float:
        try:
            return cost(errors(target, measure_beside(each), uncertain))
        except FlashtwinError:
            return cost({})

    return min(tried, key=error)
