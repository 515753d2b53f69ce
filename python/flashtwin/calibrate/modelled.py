"""Computes results of the experiments: runs their loads on a modelled device in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from .. import _core
from .._devices import Spec
from .._support.files import write_text
from .._support.record import Record
from ..fio import to_json_plus
from ..options import run_options
from ..pacing import ClosedLoop
from .figures import BEYOND_MIN, OTHERS, OTHERS_PERCENT, PERCENTILES, Figures
from .loads import EMPTY, FILLED, REFILLED, STEADY, TRIMMED, Load
from .results import MANIFEST

#: Histograms of reads, of writes, and of both.
_Histograms: TypeAlias = "tuple[_core.Histogram, _core.Histogram, _core.Histogram]"

#: How a host fills a drive.
_FILL = "sequential:write=1,size=128k"
_FILL_DEPTH = 32
#: Load of random writes that runs until they are steady.
_WEAR_IN = "uniform:write=1,size=4k,align=4k"
_WEAR_IN_REQUESTS = 60000
#: Loads that trim half of the drive, or the whole drive, in requests of 1 MiB.
_TRIM = "sequential:trim=1,size=1M,align=1M,range=50%"
_TRIM_ALL = "sequential:trim=1,size=1M,align=1M"


class Bench:
    """Runs loads on a device. A load starts on a copy of a prepared device, or after the previous load.

    All loads that require the steady state run one after the other on the same device. If `in_order` is true,
    loads that require an empty or a filled device do so, too, as on a drive. The buffer then has data of the
    previous load, and blocks that a trim emptied are not yet erased.
    """

    def __init__(self, spec: Spec, seed: int, *, in_order: bool = False) -> None:
        self._spec = spec
        self._seed = seed
        self._kept = (STEADY, FILLED, EMPTY) if in_order else (STEADY,)
        self._control = _core.Control()
        self._states: dict[str, _core.Device] = {}

    def run(self, load: Load) -> tuple[dict[str, Any], dict[str, _core.Histogram]]:
        """Run a load. Return its summary and its histograms."""
        if load.state not in self._states:
            self._states[load.state] = self._made(load.state)
        device = self._states[load.state]
        # Random writes do not change the steady state. Therefore one device is brought into this state once,
        # and then runs all loads that require it.
        if load.state not in self._kept:
            device = device.fork(self._spec, None)
        elif load.state == EMPTY:
            self._run(device, Load("", _TRIM_ALL, 1, EMPTY, self._spec.exported_bytes >> 20))
        as_json, (read, write, every) = self._run(device, load)
        return json.loads(as_json), {"read": read, "write": write, "all": every}

    def _made(self, state: str) -> _core.Device:
        device = _core.Device(self._spec)
        if state in (FILLED, REFILLED):
            # The data are written by requests, so that they pass through the buffer and fill whole rows
            # (pages that a die programs at once). Preconditioning does not do that.
            fill = Load("", _FILL, _FILL_DEPTH, state, self._spec.exported_bytes >> 17)
            for _ in range(1 if state == FILLED else 2):
                self._run(device, fill)
        elif state in (STEADY, TRIMMED):
            device.precondition("steady", self._seed, self._control)
            device.fill_buffer("steady", self._seed, self._control)
            # Preconditioning leaves an SLC cache empty.
            self._run(device, Load("", _WEAR_IN, _FILL_DEPTH, state, _WEAR_IN_REQUESTS))
        if state == TRIMMED:
            self._run(device, Load("", _TRIM, 1, state, self._spec.exported_bytes >> 21))
        return device

    def _run(self, device: _core.Device, load: Load) -> tuple[str, _Histograms]:
        # Each load has a seed of its own. With equal addresses, a load would overwrite exactly the pages that
        # the previous load wrote.
        seed = self._seed + crc32(load.name.encode())
        as_json, _, histograms, *_ = device.run(
            _core.Workload.generated(load.text, self._spec.exported_bytes, seed),
            self._control,
            run_options(
                pacing=ClosedLoop(load.depth),
                requests_max=load.requests + load.warmup,
                warmup_requests=load.warmup,
                precondition="",
                seed=seed,
            ),
        )
        return as_json, histograms


def measure(spec: Spec, loads: Iterable[Load], seed: int, *, in_order: bool = False) -> Figures:
    """Return the figures of a device under loads.

    If `in_order` is true, loads run one after the other, as on a drive that is filled only once.
    """
    bench = Bench(spec, seed, in_order=in_order)
    found: Figures = {}
    for load in loads:
        summary, histograms = bench.run(load)
        others = [kind for kind in OTHERS if summary[kind]["requests"]]
        if not others:
            found[f"{load.name}/mb_per_s"] = summary["throughput"]["mb_per_s"]
        for kind in others:
            found[f"{load.name}/{kind}.p{OTHERS_PERCENT}_us"] = summary[kind][f"p{OTHERS_PERCENT}_us"]
        for kind in ("read", "write") if load.latencies else ():
            for what, us in percentiles(histograms[kind]).items():
                found[f"{load.name}/{kind}.{what}"] = us
    return found


def save_results(
    spec: Spec, loads: Iterable[Load], folder: Path, *, seed: int, times: int, said: Callable[[str], None]
) -> None:
    """Write fio's output of each load, and the manifest, in the form that `calibrate fit` reads.

    Args:
        times: factor by which the requests of each load are multiplied. The written figures are then more
            exact than those that a fit computes from shorter runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(spec, seed)
    loads = list(loads)
    for load in loads:
        said(load.name)
        summary, histograms = bench.run(load.longer(times))
        record = Record(summary, histograms, [], [])
        write_text(folder / f"{load.name}.json", to_json_plus(record), "the results of an experiment")
    manifest = {
        "drive": spec.name,
        "capacity_bytes": spec.exported_bytes,
        "seed": seed,
        "experiments": [{"name": load.name} for load in loads],
    }
    write_text(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n", "the manifest")


def percentiles(histogram: _core.Histogram) -> Figures:
    """Return those percentiles of a histogram beyond which there are enough requests."""
    total = sum(count for _, count in histogram)
    wanted = [percent for percent in PERCENTILES if total * (100 - percent) >= 100 * BEYOND_MIN]
    found: Figures = {}
    seen = 0
    for ns, count in histogram:
        seen += count
        while wanted and seen * 100 >= wanted[0] * total:
            found[f"p{wanted.pop(0):g}_us"] = ns / 1e3
    return found
