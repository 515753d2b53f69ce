"""The leaderboard: every buffer policy under the same loads on the same devices (docs/leaderboard.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .. import _core
from .._policies import policies as every_policy
from .._results import Results
from .._support.estimates import Estimate, mean_of, ratio_of
from .._support.files import write_text
from .._sweep import OnSweepProgress, sweep
from ..errors import FlashtwinError
from ..study.definition import VARIANTS, Study, read
from ..study.loads import Loads
from ..traces import example_trace
from .command import Command

__all__ = ["FIGURES", "OUTCOME", "board", "definition"]

#: Name of the file with the outcome in the directory of a leaderboard.
OUTCOME: Final = "leaderboard.json"
#: Measures of the ranking: columns of the results, with their names. Lower is better, except for hits.
FIGURES: Final[dict[str, str]] = {
    "all_mean_us": "mean (us)",
    "all_p99_us": "p99 (us)",
    "all_p999_us": "p99.9 (us)",
    "flash_erases": "erases",
    "flash_gc_write_amplification": "GC write amplification",
    "hits_ratio": "hits (%)",
}
#: The policy that others are compared to.
BASELINE: Final = "lru"
_CONFIDENCE: Final = 0.95
#: Name of the workload that is the example trace of flashtwin.
_EXAMPLE: Final = "example"

#: Descriptions of the states in which drives start, by value of `precondition`.
STATES: Final = {"sequential": "filled in order", "steady": "random steady state"}

#: Device, state, situation and workload.
_Place = tuple[str, str, str, str]
#: The figures of each seed, by policy.
_Found = dict[_Place, dict[str, dict[int, dict[str, float]]]]


def definition() -> Study:
    """Read the file of the leaderboard. Its matrices and workloads are written as in a study."""
    return read(str(Path(__file__).with_name("board.toml")))


def board(
    directory: str | os.PathLike[str],
    *,
    variant: str = "quick",
    policies: Sequence[str] | None = None,
    threads: int | None = None,
    dask: str | None = None,
    traces: str | os.PathLike[str] | None = None,
    progress: Callable[[str], OnSweepProgress] | None = None,
) -> dict[str, Any]:
    """Run the unfinished sweeps of the leaderboard, rank the policies and write the outcome.

    Args:
        directory: directory of the leaderboard; each matrix is a sweep in a subdirectory.
        variant: "quick" or "full".
        policies: names, which may have parameters; by default all policies. LRU is added if it is missing.
        threads: number of runs at the same time; by default the number of cores.
        dask: Dask cluster that runs the cells, as for `sweep`.
        traces: folder with published traces, which replace the generated loads that stand in for them; by
            default the folder in the variable FLASHTWIN_TRACES.
        progress: function that receives the name of a matrix, and returns a `progress` function for `sweep`.

    Raises:
        FlashtwinError: an argument is wrong, or results can no longer be saved.
        Interrupted: on Ctrl-C; finished cells are kept.
    """
    if variant not in VARIANTS:
        raise FlashtwinError(f"variant: {variant!r}: must be {' or '.join(VARIANTS)}")
    ranked = list(dict.fromkeys([BASELINE, *(every_policy() if policies is None else policies)]))
    study = definition()
    loads = Loads(study.loads, traces)
    found: _Found = {}
    commands: dict[_Place, Command] = {}
    failed = 0
    for matrix in study.matrices:
        # A situation has one matrix per device and state. The matrix is called SITUATION@DEVICE-STATE.
        situation = matrix.partition("@")[0]
        experiment = {**study.experiment(matrix, variant), "policies": ranked}
        state = STATES[experiment["run"]["precondition"]]
        texts = {_text(loads, name): name for name in experiment["workloads"]}
        results = sweep(
            {**experiment, "workloads": list(texts)},
            Path(directory) / f"{matrix}.sweep",
            threads=threads,
            dask=dask,
            progress=progress(matrix) if progress else None,
        )
        failed += results.failed
        for device in experiment["devices"]:
            for text, name in texts.items():
                settings = experiment.get("run", {}), experiment.get("set", {})
                commands[device, state, situation, name] = Command(device, text, *settings)
        for row in _rows(results):
            place = (row["device"], state, situation, texts[row["workload"]])
            found.setdefault(place, {}).setdefault(row["policy"], {})[row["seed"]] = row
    outcome = {
        "title": study.title,
        "about": study.about,
        "variant": variant,
        "flashtwin_version": _core.__version__,
        "failed": failed,
        "ranks": [_rank(found, case, policy) for case in _cases(found) for policy in ranked],
        "rows": list(_each(found, commands, loads)),
    }
    write_text(Path(directory) / OUTCOME, json.dumps(outcome, indent=1) + "\n", "the outcome")
    return outcome


def _text(loads: Loads, name: str) -> str:
    text = loads.text(name)
    return str(example_trace()) if text == _EXAMPLE else text


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    columns = ["device", "policy", "workload", "seed", "status", *FIGURES]
    for row in results.table.select(columns).to_pylist():
        if row["status"] == "ok":
            yield {**row, "hits_ratio": 100 * (row["hits_ratio"] or 0.0)}


def _cases(found: _Found) -> list[tuple[str, str, str]]:
    return list(dict.fromkeys(place[:3] for place in found))


def _rank(found: _Found, case: tuple[str, str, str], policy: str) -> dict[str, Any]:
    """Return how a policy compares with the baseline, over all loads of a case (device, state, situation).

    A figure is given as the geometric mean of its ratios to the baseline, hits as the mean difference in
    percentage points.
    """
    device, state, situation = case
    ranks: dict[str, Any] = {"device": device, "state": state, "situation": situation, "policy": policy}
    here = [by_policy for place, by_policy in found.items() if place[:3] == case]
    for figure in FIGURES:
        by_seed: dict[int, list[tuple[float, float]]] = {}
        for by_policy in here:
            base = by_policy.get(BASELINE, {})
            for seed, row in by_policy.get(policy, {}).items():
                if seed in base and None not in (row[figure], base[seed][figure]):
                    by_seed.setdefault(seed, []).append((row[figure], base[seed][figure]))
        if figure == "hits_ratio":
            points = [sum(a - b for a, b in pairs) / len(pairs) for pairs in by_seed.values()]
            ranks[figure] = _ends(mean_of(points, _CONFIDENCE))
        else:
            # Pairs with a value of 0 have no ratio and are omitted. Under some loads, for example, no block
            # is erased.
            measured = [[pair for pair in pairs if min(pair) > 0] for pairs in by_seed.values()]
            means = [ratio_of(pairs, _CONFIDENCE).value for pairs in measured]
            ranks[figure] = _ends(ratio_of([(mean, 1.0) for mean in means if mean], _CONFIDENCE))
    return ranks


def _ends(estimate: Estimate) -> list[float | None]:
    return [
        None if end is None else float(f"{end:.6g}") for end in (estimate.value, estimate.low, estimate.high)
    ]


def _each(found: _Found, commands: Mapping[_Place, Command], loads: Loads) -> Iterator[dict[str, Any]]:
    for place, by_policy in found.items():
        device, state, situation, name = place
        for policy, by_seed in by_policy.items():
            yield {
                "device": device,
                "state": state,
                "situation": situation,
                "workload": f"{name} (trace)" if loads.is_trace(name) else name.partition("/")[0],
                "policy": policy,
                "seeds": sorted(by_seed),
                "command": commands[place].text(policy),
                "figures": {
                    figure: [by_seed[seed][figure] for seed in sorted(by_seed)] for figure in FIGURES
                },
            }
