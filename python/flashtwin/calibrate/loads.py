"""The loads of the experiments, in the form in which the model runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

#: States that a load may start from.
EMPTY, FILLED, REFILLED, STEADY, TRIMMED = "empty", "filled", "refilled", "steady", "trimmed"
#: States of the drive in which loads write a fixed percentage of the capacity.
_SHARES = (EMPTY, REFILLED, TRIMMED)

#: Ratio of the number of measured requests in a full plan to that in a quick plan.
TIMES = 4
#: Largest number of requests that a modelled device runs, as a multiple of that in a quick plan. More would
#: take minutes.
_LONGEST = 32
#: A load with fewer requests than this fills a part of the drive or buffer, so its number of requests is
#: never changed.
_REPEATED_MIN = 1000


@dataclass(frozen=True)
class Load:
    """A load of an experiment.

    Attributes:
        name: name of the experiment.
        text: the generated load (docs/traces.md).
        depth: number of requests in flight.
        state: contents of the drive: empty, sequential data written once or twice, data after random writes,
            or half of these data.
        requests: number of measured requests.
        warmup: number of unmeasured requests before the measured ones.
        latencies: whether latencies are figures. They are not if the queue is saturated, because they then
            fluctuate for a long time.
    """

    name: str
    text: str
    depth: int
    state: str
    requests: int
    warmup: int = 0
    latencies: bool = True

    def longer(self, times: int) -> Load:
        """Return the load with `times` times as many requests.

        A load that fills a part of the drive or of the buffer is returned unchanged.
        """
        if self.state in _SHARES or self.requests < _REPEATED_MIN:
            return self
        return replace(self, requests=self.requests * times, warmup=self.warmup * times)

    def as_measured(self, requests: Mapping[str, int], times_max: int = _LONGEST) -> Load:
        """Return the load with as many requests as the experiment had, up to a maximum.

        Model and drive are compared over runs of equal length, because a longer run has a longer tail, and
        because skewed loads become slower during a run.
        """
        least, most = sorted((self.requests, self.longer(times_max).requests))
        as_many = min(max(requests.get(self.name, 0), least), most)
        if self.longer(2) == self:
            return replace(self, requests=as_many)
        return replace(self, requests=as_many, warmup=self.warmup * as_many // self.requests)


#: Numbers of measured requests and of unmeasured requests before them, in the steady state of random writes.
_STEADY_RUN = (60000, 5000)
#: Numbers of measured requests, and of unmeasured requests before them, for loads whose steady state is not
#: that of random writes and must be reached first.
_OTHER_RUN = (60000, 20000)
#: Numbers of measured and unmeasured requests of writes of 32 KiB.
_LARGE_RUN = (12000, 3000)
#: Block sizes of the reads at depth 1, in KiB.
_SIZES = (4, 8, 16, 32, 64, 256)
#: Depths of random reads. At the larger depths, only the rate is steady.
_DEPTHS = (2, 4, 8, 16, 32, 256)
#: Distances between reads, in KiB.
STRIDES = (16, 32, 64, 128, 256, 512)
#: Sizes in MiB of parts of the drive that are read. Reads of pages in the buffer do not wait for flash.
RANGES = (2, 4, 8, 16, 32)
#: Number of unmeasured reads that precede the measurement of a part. They do not read all pages of the
#: largest parts.
RANGE_WARMUP = 8000
#: Bytes of a burst, in MiB.
_BURSTS = (1, 2, 4, 8, 16, 32, 64)
#: Loads of reads beside writes: queue depth, and percentage of writes.
_BESIDE = ((2, 10), (8, 30), (32, 50))
#: Percentage of the capacity that is written at random after half of the drive was trimmed.
_REWRITTEN_PERCENT = 10
#: Percentage of the capacity that is written sequentially to a drive that was filled twice.
_OVERWRITTEN_PERCENT = 40
#: Percentages of the capacity that are written sequentially to an empty drive.
FILLS = (1, 2, 3, 5, 10, 20, 40, 80)


def reads() -> list[Load]:
    """Return the loads that do not change data."""
    found = [Load(f"read-size-{k}k", f"uniform:size={k}k,align={k}k", 1, FILLED, 1000) for k in _SIZES]
    found += [
        Load(f"read-depth-{q}", "uniform:size=4k,align=4k", q, FILLED, 10000, 20 * q, q <= 8) for q in _DEPTHS
    ]
    found += [
        Load(f"read-stride-{k}k", f"uniform:size=4k,align={k}k", 64, FILLED, 4000, 100, False)
        for k in STRIDES
    ]
    found += [
        Load(f"read-range-{m}m", f"uniform:size=4k,align=4k,range={m}M", 1, FILLED, 1000, RANGE_WARMUP, False)
        for m in RANGES
    ]
    return [
        *found,
        # The pages of a read may cross one channel or several channels.
        Load("read-deep-32k", "uniform:size=32k,align=32k", 16, FILLED, 10000, 100),
        Load("read-sequential", "sequential:size=128k", 32, FILLED, 2000, 0, False),
    ]


def writes(capacity_bytes: int) -> list[Load]:
    """Return the loads that write, for a device of the given capacity."""
    found = [
        Load("write-depth1", "uniform:write=1,size=4k,align=4k", 1, FILLED, 200),
        Load("fua-depth1", "uniform:write=1,fua=1,size=4k,align=4k", 1, FILLED, 200),
        Load("write-rate", "uniform:write=1,size=4k,align=4k", 32, FILLED, 200, 0, False),
        Load("write-random", "uniform:write=1,size=4k,align=4k", 32, STEADY, *_STEADY_RUN),
        # The drive still has free blocks, so reads wait only for programs, not for garbage collection.
        Load("beside-filled", "uniform:write=0.3,size=4k,align=4k", 4, FILLED, 10000),
    ]
    found += [
        Load(
            f"write-fill-{p}",
            "sequential:write=1,size=128k",
            32,
            EMPTY,
            capacity_bytes * p // 100 >> 17,
            0,
            False,
        )
        for p in FILLS
    ]
    found += [
        Load(f"write-burst-{m}m", "uniform:write=1,size=64k,align=64k", 8, EMPTY, m * 16, 0, False)
        for m in _BURSTS
    ]
    found += [
        Load(f"beside-{q}", f"uniform:write={share / 100},size=4k,align=4k", q, STEADY, *_STEADY_RUN)
        for q, share in _BESIDE
    ]
    return [
        *found,
        # Here, garbage collection finds blocks without valid pages: it erases them and moves nothing.
        Load(
            "write-again",
            "sequential:write=1,size=128k",
            32,
            REFILLED,
            capacity_bytes * _OVERWRITTEN_PERCENT // 100 >> 17,
            0,
            False,
        ),
        # This load is the last one, because it leaves the drive in another state than writes of 4 KiB.
        Load("write-random-32k", "uniform:write=1,size=32k,align=32k", 4, STEADY, *_LARGE_RUN),
    ]


def measured_only(capacity_bytes: int) -> list[Load]:
    """Return the loads that no parameter of the model is fitted to: flushes, trims, writes after trims."""
    return [
        Load("flush-depth1", "uniform:write=0.5,flush=0.5,size=4k,align=4k", 1, FILLED, 400),
        Load("trim-depth1", "uniform:trim=1,size=64k,align=64k", 1, FILLED, 400),
        Load(
            "trim-write",
            "uniform:write=1,size=4k,align=4k",
            32,
            TRIMMED,
            capacity_bytes * _REWRITTEN_PERCENT // 100 >> 12,
            0,
            False,
        ),
    ]


def every(capacity_bytes: int) -> list[Load]:
    """Return all loads for a device of a capacity."""
    return [*reads(), *writes(capacity_bytes), *held_out(), *measured_only(capacity_bytes)]


def held_out() -> list[Load]:
    """Return the loads that are held out from a fit: other sizes, depths and mixes, and a database load."""
    database = "zipf:theta=0.9,write=0.3,size=list(4k*50+8k*30+16k*20),align=4k"
    return [
        Load("other-read-12k", "uniform:size=12k,align=4k", 3, FILLED, 10000, 100),
        Load("other-read-64k", "uniform:size=64k,align=64k", 8, FILLED, 10000, 100),
        Load("other-mix-8k", "uniform:write=0.2,size=8k,align=8k", 8, STEADY, *_OTHER_RUN),
        Load("other-mix-16k", "uniform:write=0.5,size=16k,align=16k", 4, STEADY, *_OTHER_RUN),
        Load("other-write-8k", "uniform:write=1,size=8k,align=8k", 8, STEADY, *_OTHER_RUN),
        Load("other-database", database, 12, STEADY, *_OTHER_RUN),
    ]


def rates_only() -> frozenset[str]:
    """Return the names of the experiments whose latencies are not figures."""
    return frozenset(load.name for load in every(1 << 30) if not load.latencies)
