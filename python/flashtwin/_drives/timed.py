"""Response times and rates of a device in virtual time.

Simulates the loads that the rows of a table of measurements (`tables`) describe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .. import _core
from .._devices import Spec
from ..errors import Interrupted
from .loads import CLOSED_IN_FLIGHT, ProbeBesideWrites, RandomReads

#: A thread of the load generator drops requests if it lags behind its schedule by more than these seconds.
BEHIND_MAX_S = 5.0
#: Number of parts of a measurement. The standard error is computed from the differences between parts.
PARTS = 5
#: Share of the drive that is written before a measurement, at least. By then, chips collect steadily again;
#: the preconditioning (`WRITTEN`) leaves them some free blocks.
COLLECTS_AFTER = 0.015
#: Preconditioning of the drive before reads and before writes.
WRITTEN = "random:3"


@dataclass(frozen=True)
class Lengths:
    """Lengths of a measurement in seconds of virtual time.

    Attributes:
        warm_s: length of the load before the measurement.
        span_s: length of the measurement.
    """

    warm_s: float
    span_s: float


FULL = Lengths(4.0, 10.0)
QUICK = Lengths(0.5, 2.0)

_Histogram = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Modelled:
    """A figure of the device, and the standard error of the figure as a fraction of it."""

    value: float
    error: float


def written(spec: Spec, seed: int, control: _core.Control) -> _core.Device:
    """Return a new device, preconditioned by the random writes that `WRITTEN` specifies."""
    device = _core.Device(spec)
    if not device.precondition(WRITTEN, seed, control):
        raise Interrupted(None)
    return device


class Timed:
    """A device that was overwritten several times (`WRITTEN`). Each load runs on a copy of it."""

    def __init__(self, spec: Spec, seed: int, lengths: Lengths, written: _core.Device | None = None) -> None:
        """Prepare a device. `written`, if given, is an overwritten device with equal flash, to be copied."""
        self._spec = spec
        self._seed = seed
        self._lengths = lengths
        self._written = written
        self._sequential: Modelled | None = None
        self._found: dict[ProbeBesideWrites | RandomReads, Mapping[str, Modelled]] = {}

    def _device(self, control: _core.Control) -> _core.Device:
        """Return a new copy of the overwritten device."""
        if self._written is None:
            self._written = written(self._spec, self._seed, control)
        return self._written.fork(self._spec, None)

    def run(
        self, clients: Sequence[tuple[str, int]], control: _core.Control, lengths: Lengths | None = None
    ) -> tuple[Sequence[Sequence[tuple[_Histogram, _Histogram]]], float]:
        """Run several loads at the same time on a copy of the device.

        `clients` has each load with its limit of requests in flight. Returns the histograms of reads and of
        writes, by load and by part of the measurement, and the write amplification of the flash.
        """
        lengths = lengths or self._lengths
        device = self._device(control)
        exported = self._spec.exported_bytes
        loads = [
            (_core.Workload.generated(text, exported, self._seed + i), in_flight)
            for i, (text, in_flight) in enumerate(clients)
        ]
        histograms, host, media, ended = device.run_clients(
            loads, control, lengths.warm_s, lengths.span_s, PARTS, BEHIND_MAX_S
        )
        if not ended:
            raise Interrupted(None)
        return histograms, media / host if host else math.nan

    def beside_writes(self, load: ProbeBesideWrites, control: _core.Control) -> Mapping[str, Modelled]:
        """Return the figures of a probe (the measured load) that runs beside a load of writes.

        A load is run only once, even if several rows have it.
        """
        if load not in self._found:
            # Warm up until the buffer is full, because no page is programmed before, and until chips collect.
            pages = max(1.2 * self._spec.buffer_pages, COLLECTS_AFTER * self._spec.exported_bytes / 4096)
            lengths = Lengths(max(self._lengths.warm_s, pages / load.per_s), self._lengths.span_s)
            histograms, _ = self.run(load.clients, control, lengths)
            figures = {"kiops": self._rate(histograms)}
            for at, op in enumerate(("read", "write")):
                figures |= percentiles(op, [part[at] for part in histograms[0]])
            self._found[load] = figures
        return self._found[load]

    def writes(self, control: _core.Control) -> tuple[Modelled, float]:
        """Return the rate and the write amplification of uniform writes in a closed loop."""
        histograms, waf = self.run([("uniform:write=1", CLOSED_IN_FLIGHT)], control)
        return self._rate(histograms), waf

    def reads(self, load: RandomReads, control: _core.Control) -> Mapping[str, Modelled]:
        """Return the figures of random reads. A load is run only once, even if several rows have it."""
        if load in self._found:
            return self._found[load]
        text = f"uniform:write=0,size={load.io_bytes},align={min(load.io_bytes, 4096)}"
        span_s = min(self._lengths.span_s, 2.0)
        histograms, _ = self.run(
            [(text, load.depth)] * load.processes, control, Lengths(min(self._lengths.warm_s, 0.1), span_s)
        )
        parts = [[part for client in histograms for part in client[i][0]] for i in range(PARTS)]
        figures = {"kiops": self._rate(histograms, span_s), **percentiles("read", parts)}
        self._found[load] = figures
        return figures

    def sequential(self, control: _core.Control) -> Modelled:
        """Return the throughput in MB/s of sequential writes of 512 KiB at depth 1 on a new device."""
        if self._sequential is not None:
            return self._sequential
        device = _core.Device(self._spec)
        load = _core.Workload.generated("sequential:write=1,size=512k", self._spec.exported_bytes, self._seed)
        span_s = min(1.0, self._lengths.span_s)
        _, host, _, _ = device.run_clients([(load, 1)], control, 0.2, span_s, PARTS, BEHIND_MAX_S)
        self._sequential = Modelled(host / span_s / 1e6, 0.0)
        return self._sequential

    def _rate(
        self, histograms: Iterable[Sequence[tuple[_Histogram, _Histogram]]], span_s: float | None = None
    ) -> Modelled:
        """Return the rate of all clients together in thousands of requests per second."""
        by_part = [
            sum(count for client in clients for histogram in client for _, count in histogram)
            for clients in zip(*histograms, strict=True)
        ]
        span_s = span_s or self._lengths.span_s
        return Modelled(sum(by_part) / span_s / 1000, _share(by_part))


def percentiles(op: str, parts: Sequence[_Histogram]) -> dict[str, Modelled]:
    """Return the percentiles over all parts of a measurement.

    `parts` has one histogram per part. The standard error is computed from the percentiles of the parts.
    """
    found = {}
    whole = sorted(pair for part in parts for pair in part)
    for name, share in (("50", 0.5), ("99", 0.99), ("99.9", 0.999)):
        values = [_at(sorted(part), share) for part in parts if part]
        if values:
            found[f"{op}_p{name}_us"] = Modelled(_at(whole, share), _share(values))
    return found


def _at(histogram: _Histogram, share: float) -> float:
    """Return the quantile of a histogram in microseconds."""
    rank = math.ceil(sum(count for _, count in histogram) * share)
    for ns, count in histogram:
        rank -= count
        if rank <= 0:
            return ns / 1000
    return math.nan


def _share(values: Sequence[float]) -> float:
    """Return the standard error of the mean of values, as a fraction of the mean."""
    n = len(values)
    mean = sum(values) / n if n else 0.0
    if n < 2 or not mean:
        return 0.0
    squares = sum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / (n - 1) / n) / mean
