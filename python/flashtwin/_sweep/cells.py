"""Cells of an experiment.

The cells of a sweep. A cell contains everything that determines its result; its key is a hash of this.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import _core
from .._devices import Spec, Value
from .._policies import Choice, overrides_for
from .._support.folders import fetch, is_remote
from ..errors import DeviceError, FlashtwinError
from ..options import experiment_options
from ..pacing import OpenLoop, default_for, given_pacing
from ..workloads import source
from .experiment import AXES, RUN_PREFIX, Experiment
from .untimed import identity_of
from .work import CellJob, StateJob


@dataclass(frozen=True)
class Cell:
    """A point of the matrix.

    Attributes:
        axes: value of the cell on each axis.
        job: the run; None if the combination is invalid, in which case `error` has the reason.
        state: preconditioned state from which the run starts; None for a new device.
    """

    axes: dict[str, Value]
    job: CellJob | None
    state: StateJob | None
    error: str | None


def key_of(identity: object) -> str:
    """Return the hash of a plain value."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cells_of(experiment: Experiment) -> list[Cell]:
    """Return all cells, one per combination of axis values. The value of the last axis changes fastest."""
    maker = _Maker(experiment)
    names = list(experiment.axes)
    cells = [
        maker.cell(dict(zip(names, values, strict=True)))
        for values in itertools.product(*experiment.axes.values())
    ]
    _check(experiment, cells)
    return cells


def _check(experiment: Experiment, cells: list[Cell]) -> None:
    """Raise an error if a value is invalid in every cell: it is then an error of the experiment."""
    errors = {cell.error for cell in cells if cell.error is not None}
    if not errors:
        return
    plural = {"device": "devices", "policy": "policies", "workload": "workloads", "seed": "seeds"}
    by_axis = {axis: plural.get(axis, f"parameters.{axis}") for axis in experiment.axes}
    # Axes that the error message names are checked first, because the error is most likely there.
    keys = {**{f"set.{key}": key for key in experiment.settings}, **{v: k for k, v in by_axis.items()}}
    for place, key in keys.items():
        values = experiment.axes.get(key, [None])
        for value in values:
            with_it = [cell for cell in cells if key not in cell.axes or cell.axes[key] == value]
            first = next((cell.error for cell in with_it if cell.error is not None), "")
            if all(cell.error is not None for cell in with_it) and (key in first or len(values) > 1):
                raise experiment.places.wrong(place, first)
    if all(cell.error is not None for cell in cells):
        raise experiment.places.wrong("devices", f"no cell can be made: {cells[0].error}")


class _Maker:
    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._choices = {
            policy: Choice.read(None if policy is None else str(policy))
            for policy in experiment.axes["policy"]
        }
        # These functions are cached, because many cells have the same device, workload or flash.
        self._spec = cache(self._read_spec)
        self._workload = cache(self._read_workload)
        self._flash = cache(_flash)
        self._state = cache(_state)

    def cell(self, axes: dict[str, Value]) -> Cell:
        try:
            job, state = self._jobs(axes)
        except FlashtwinError as e:
            return Cell(axes, None, None, str(e))
        return Cell(axes, job, state, None)

    def _jobs(self, axes: dict[str, Value]) -> tuple[CellJob, StateJob | None]:
        if self._experiment.untimed is not None:
            workload, trace, *_ = self._workload(axes["workload"])
            identity = identity_of(self._experiment, axes, workload)
            return CellJob(key_of(identity), identity, trace), None
        parameters = {axis: value for axis, value in axes.items() if axis not in AXES}
        of_run = {k.removeprefix(RUN_PREFIX): v for k, v in parameters.items() if k.startswith(RUN_PREFIX)}
        of_device = {k: v for k, v in parameters.items() if not k.startswith(RUN_PREFIX)}
        if "speed" in of_run or "queue_depth" in of_run:
            # An axis with a pacing (`speed` or `queue_depth`) replaces the pacing in `[run]`.
            base = {k: v for k, v in self._experiment.run.items() if k not in ("speed", "queue_depth")}
        else:
            base = self._experiment.run
        run = {**base, **of_run}
        device, toml, range_bytes = self._spec(axes["device"], axes["policy"], tuple(of_device.items()))
        workload, trace, timed, endless = self._workload(axes["workload"])
        if endless and run.get("requests_max") is None:
            raise FlashtwinError(
                f"{axes['workload']}: the load is endless; add requests=N, or give requests_max in [run]"
            )
        seed = int(str(axes["seed"]))
        if trace is None:
            # This call raises errors that occur only with this size of device or with this seed.
            _core.Workload.generated(workload["text"], range_bytes, seed)
        pacing = given_pacing(run) or default_for(timed)
        settings = {name: run.get(name, option.default) for name, option in experiment_options().items()}
        precondition = str(settings["precondition"])
        identity = {
            "flashtwin": _core.__version__,
            "device": toml,
            "label": self._choices[axes["policy"]].label,
            "workload": workload,
            "seed": seed,
            "speed": float(pacing.speed) if isinstance(pacing, OpenLoop) else None,
            "queue_depth": None if isinstance(pacing, OpenLoop) else pacing.queue_depth,
            **settings,
        }
        job = CellJob(key_of(identity), identity, trace)
        return job, None if precondition == "none" else self._state(
            self._flash(toml, device), precondition, seed
        )

    def _read_spec(
        self, name: str, policy: str | None, parameters: tuple[tuple[str, Value], ...]
    ) -> tuple[str, str, int]:
        choice, among = self._choices[policy], list(self._choices.values())
        settings = {**self._experiment.settings, **dict(parameters)}
        spec = choice.spec(self._experiment.path(name), overrides_for(choice, among, settings))
        return name, spec.to_toml(), spec.exported_bytes

    def _read_workload(self, text: str) -> tuple[dict[str, Any], str | None, bool, bool]:
        """Return four properties of a workload.

        The properties are the identity, the path of the trace (None for a generated load), whether the
        workload has times, and whether it is endless.
        """
        if is_remote(text):
            local, sha256 = fetch(text, None)
            path = text
        else:
            opened = source(self._experiment.path(text))
            if opened.path is None:
                load = _core.Workload.generated(text, 1 << 62, 0)
                return {"text": text}, None, load.timed, load.requests_total is None
            path = str(opened.path.resolve())
            local, sha256 = fetch(path, None)
        options = self._experiment.trace.to_json()
        timed = _core.Workload.trace(local, options).timed
        return {"sha256": sha256, "options": json.loads(options)}, path, timed, False


def _flash(toml: str, name: str) -> str:
    """Return the device without its buffer, which does not affect the preconditioned state of the flash."""
    try:
        return Spec.parse(toml, name, [("buffer", "none")]).to_toml()
    except DeviceError:
        # The device is invalid without its buffer. It then shares its state only with devices that have the
        # same buffer.
        return toml


def _state(flash: str, precondition: str, seed: int) -> StateJob:
    version = _core.__version__
    return StateJob(key_of([version, flash, precondition, seed]), version, flash, precondition, seed)


def unique_jobs(cells: list[Cell]) -> Iterator[tuple[CellJob, StateJob | None]]:
    """Yield the jobs to run. Cells with equal jobs share one run."""
    seen = set()
    for cell in cells:
        if cell.job is not None and cell.job.key not in seen:
            seen.add(cell.job.key)
            yield cell.job, cell.state
