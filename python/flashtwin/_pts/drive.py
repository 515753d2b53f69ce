"""The drive under test. It can be purged and preconditioned, and keeps its state between rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from .. import _core
from .._support.memory import need
from .._support.watch import OnProgress, Task, run_all
from ..errors import FlashtwinError, Interrupted
from ..options import run_options
from ..pacing import ClosedLoop

T = TypeVar("T")
#: Result of a run: its summary, the histogram of all requests, its history.
Ran: TypeAlias = "tuple[dict[str, Any], _core.Histogram, list[dict[str, Any]]]"

#: Names of block sizes, by bytes.
SIZES = {512: "0.5 KiB", **{1024 << i: f"{1 << i} KiB" for i in range(11)}}


@dataclass(frozen=True)
class Access:
    """An access pattern: block size, percentage of reads, random or sequential addresses."""

    block_bytes: int
    reads_percent: int
    sequential: bool = False

    @property
    def workload(self) -> str:
        """Return the generated load. Addresses are multiples of the block size."""
        pattern = "sequential" if self.sequential else "uniform"
        write = 1 - self.reads_percent / 100
        return f"{pattern}:write={write:.2f},size={self.block_bytes},align={self.block_bytes}"

    @property
    def mix(self) -> str:
        """Reads to writes, such as 65/35."""
        return f"{self.reads_percent}/{100 - self.reads_percent}"

    @property
    def size(self) -> str:
        """The block size in words."""
        return SIZES[self.block_bytes]


@dataclass(frozen=True)
class Measured:
    """Results of a round.

    Attributes:
        iops: requests completed per second of virtual time.
        mb_per_s: throughput in 10^6 bytes per second.
        mean_us: mean response time.
        five_nines_us: 99.999th percentile of the response time.
        max_us: longest response time.
        gc_write_amplification: pages programmed per page programmed for the host; None if no page was
            programmed for the host.
    """

    iops: float
    mb_per_s: float
    mean_us: float
    five_nines_us: float
    max_us: float
    gc_write_amplification: float | None


class Drive:
    """A device that keeps its state from round to round."""

    def __init__(self, spec: _core.Spec, *, seed: int, progress: OnProgress | None) -> None:
        self.spec = spec
        self._seed = seed
        self._runs = 0
        self._progress = progress
        # Memory is needed for two devices, because during a purge the new and the old device exist.
        need(spec.tables_bytes, devices=2)
        self._device = _core.Device(spec)

    def purge(self) -> None:
        """Put the drive into the state of a new drive, which was never written."""
        self._device = _core.Device(self.spec)

    def write_through(self, label: str, access: Access, times: int, queue_depth: int) -> None:
        """Write `times` times the capacity of the drive."""
        requests = -(-times * self.spec.exported_bytes // access.block_bytes)
        self._watched(label, lambda control: self._run(control, access, queue_depth, requests=requests))

    def round(
        self, label: str, accesses: Sequence[Access], queue_depth: int, span_s: float
    ) -> dict[Access, Measured]:
        """Run each access for a time span with `queue_depth` requests in flight. Return the figures."""

        def work(control: _core.Control) -> dict[Access, Measured]:
            measured = {}
            for access in accesses:
                if control.stopped:
                    break
                summary, histogram, _ = self._run(control, access, queue_depth, span_s=span_s)
                measured[access] = _measured(summary, histogram)
            return measured

        return self._watched(label, work)

    def saturate(self, label: str, access: Access, times: int, queue_depth: int, interval_s: float) -> Ran:
        """Write a multiple of the capacity. Return the summary, the histogram and the history by interval."""
        requests = -(-times * self.spec.exported_bytes // access.block_bytes)
        return self._watched(
            label,
            lambda control: self._run(
                control, access, queue_depth, requests=requests, interval_s=interval_s, history=True
            ),
        )

    def _watched(self, label: str, work: Callable[[_core.Control], T]) -> T:
        """Run work in a thread, while this thread shows progress and handles Ctrl-C. Return its result."""
        results, interrupted = run_all([Task(label, work)], 1, self._progress)
        if interrupted:
            raise Interrupted(None)
        return cast(T, results[0])

    def _run(
        self,
        control: _core.Control,
        access: Access,
        queue_depth: int,
        *,
        span_s: float | None = None,
        requests: int | None = None,
        interval_s: float | None = None,
        history: bool = False,
    ) -> Ran:
        """Run a load from the state of the previous load. Return its summary, histogram and history."""
        # The addresses of each run are different.
        seed = self._seed + self._runs
        self._runs += 1
        as_json, _, histograms, _, windows, *_ = self._device.run(
            _core.Workload.generated(access.workload, self.spec.exported_bytes, seed),
            control,
            run_options(
                pacing=ClosedLoop(queue_depth),
                requests_max=requests,
                series_s=interval_s,
                history=history,
                precondition="",
                seed=seed,
            ),
            span_max_s=span_s,
        )
        summary: dict[str, Any] = json.loads(as_json)
        if summary["read_only"]:
            raise FlashtwinError(
                f"{self.spec.name}: the drive reached its end of life in a test "
                f"({access.workload}); raise wear.erase_limit"
            )
        return summary, histograms[2], json.loads(windows)["windows"] if windows else []


def _measured(summary: dict[str, Any], histogram: _core.Histogram) -> Measured:
    latency = summary["all"]
    return Measured(
        summary["throughput"]["iops"],
        summary["throughput"]["mb_per_s"],
        latency["mean_us"],
        min(_at(histogram, 0.99999) * 1e-3, latency["max_us"]),
        latency["max_us"],
        summary["flash"]["gc_write_amplification"],
    )


def _at(histogram: _core.Histogram, share: float) -> float:
    """Return the response time in ns that the given fraction of the requests does not exceed."""
    wanted = share * sum(count for _, count in histogram)
    seen = 0
    for ns, count in histogram:
        seen += count
        if seen >= wanted:
            return ns
    return 0.0
