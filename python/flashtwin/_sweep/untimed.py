"""Cells without time: write amplification of a load under a placement scheme and a victim rule."""

from __future__ import annotations

import json
from typing import Any

from .. import _core
from .._devices import Value
from .._placement.rules import scheme_of, victim_of
from .._placement.run import Load, base_words, measure, table_bytes
from .._placement.waf import Waf
from .._results import body
from .._support.folders import fetch
from .._support.memory import need
from ..errors import FlashtwinError
from ..workloads import source
from .experiment import AXES, Experiment
from .work import CellJob, StoppedError, check_version

#: Parameters that are not words (keys) of the setup, with their defaults.
RULES = {"scheme": "handle", "victim": "greedy"}


def identity_of(experiment: Experiment, axes: dict[str, Value], workload: dict[str, Any]) -> dict[str, Any]:
    """Return all that determines the result of a cell.

    Raises:
        FlashtwinError: the combination is invalid.
    """
    assert experiment.untimed is not None
    given = {k: v for k, v in axes.items() if k not in AXES}
    rules = {name: str(given.pop(name, default)) for name, default in RULES.items()}
    untimed = {"scale": 1, "warm": None, "capacities": 2.0, **experiment.untimed}
    device = experiment.device(str(axes["device"]))
    settings = {k: v for k, v in {**experiment.settings, **given}.items() if v is not None}
    base, page_bytes = base_words(device, settings, int(str(untimed["scale"])))
    if scheme_of(rules["scheme"]).factory or victim_of(rules["victim"]).factory:
        raise FlashtwinError(
            "a class of a file may change while its results stay: use flashtwin placement waf"
        )
    return {
        "flashtwin": _core.__version__,
        "words": base,
        "page_bytes": page_bytes,
        **rules,
        **untimed,
        "workload": workload,
        "seed": int(str(axes["seed"])),
    }


def run_untimed(job: CellJob, control: _core.Control | None = None) -> bytes:
    """Run a cell. Return the result as bytes, which are equal on all machines."""
    what = job.identity
    check_version(what["flashtwin"])
    need(table_bytes(what["words"]))
    control = control or _core.Control()
    if job.trace is None:
        workload = source(what["workload"]["text"])
    else:
        workload = source(fetch(job.trace, what["workload"]["sha256"])[0])
    try:
        row = measure(
            Load(workload, what["page_bytes"], what["seed"]),
            what["words"],
            scheme_of(what["scheme"]),
            victim_of(what["victim"]),
            warm=what["warm"],
            capacities=what["capacities"],
            points=10,
            control=control,
        )
    except FlashtwinError:
        if control.stopped:
            raise StoppedError from None
        raise
    return body.encode(json.dumps(summary_of(row)), [], [])


def summary_of(row: Waf) -> dict[str, Any]:
    """Return the figures of a row, without the device and the rules, which identify its cell."""
    figures = {key: value for key, value in row.to_dict().items() if key not in ("device", *RULES)}
    return {**figures, "warnings": []}
