"""The tests of SNIA's Performance Test Specification: write saturation, IOPS, throughput, latency.

A test purges and preconditions the drive. It then runs rounds until one figure, the tracked one, is steady.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .drive import Access, Drive, Measured
from .steady import ROUNDS_MAX, Window, window_of

KIB = 1024
#: Percentages of reads and block sizes of the tests, in the order in which a round uses them.
IOPS_MIXES = (100, 95, 65, 50, 35, 5, 0)
IOPS_BLOCKS = (*(kib * KIB for kib in (1024, 128, 64, 32, 16, 8, 4)), 512)
LATENCY_MIXES = (100, 65, 0)
LATENCY_BLOCKS = (8 * KIB, 4 * KIB, 512)
THROUGHPUT_BLOCKS = (1024 * KIB, 128 * KIB)
#: Amounts of data that the write saturation test and the preconditioning write, in multiples of the capacity.
SATURATION_TIMES = 4
PRECONDITION_TIMES = 2


@dataclass
class Rounds:
    """A test in rounds, with its results.

    Attributes:
        name: name of the test.
        tracked: the access pattern under which the figure must become steady.
        figure: name of the tracked figure, a field of `Measured`.
        unit: unit of the figure.
        rounds: results of each round, by access.
        window: the last five rounds of the tracked figure.
    """

    name: str
    tracked: Access
    figure: str
    unit: str
    rounds: list[dict[Access, Measured]] = field(default_factory=list)

    @property
    def window(self) -> Window:
        """Return the last five rounds of the tracked figure."""
        return window_of(self.course(self.tracked))

    def course(self, access: Access) -> list[float]:
        """Return the tracked figure of an access in each round."""
        return [float(getattr(measured[access], self.figure)) for measured in self.rounds]

    def average(self, access: Access, figure: str) -> float:
        """Return the mean of a figure over the rounds of the window; for `max_us`, the maximum."""
        values = [
            float(getattr(measured[access], figure)) for measured in self.rounds[self.window.first - 1 :]
        ]
        return max(values) if figure == "max_us" else sum(values) / len(values)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "test": self.name,
            "tracked": _named(self.tracked) | {"figure": self.figure},
            "window": self.window.to_dict(),
            "rounds": [
                [_named(access) | asdict(measured) for access, measured in each.items()]
                for each in self.rounds
            ],
        }


@dataclass
class Saturation:
    """Results of the write saturation test (random writes of 4 KiB to a purged drive), by interval.

    Attributes:
        interval_s: length of an interval of virtual time.
        iops: writes completed per second, by interval.
        mean_us: mean response time by interval; None if no write completed in it.
        max_us: longest response time by interval; None if no write completed in it.
        amplification: for each window of time, its time in seconds and its write amplification.
        written_gb: 10^9 bytes written in total.
    """

    interval_s: float
    iops: list[float]
    mean_us: list[float | None]
    max_us: list[float | None]
    amplification: list[tuple[float, float]]
    written_gb: float

    @property
    def window(self) -> Window:
        """The last five whole intervals."""
        return window_of(self.iops)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"test": "wsat", **asdict(self), "window": self.window.to_dict()}


@dataclass(frozen=True)
class Plan:
    """Settings with which the tests are run.

    Attributes:
        round_s: in each round, the length of the run of each access, in seconds of virtual time.
        queue_depth: number of requests in flight; the latency test always has one.
        said: function to call when a test ends, with a line of text about its result.
    """

    round_s: float
    queue_depth: int
    said: Callable[[str], None]


def _named(access: Access) -> dict[str, Any]:
    return {
        "block_bytes": access.block_bytes,
        "reads_percent": access.reads_percent,
        "sequential": access.sequential,
    }


def _until_steady(
    drive: Drive, plan: Plan, test: Rounds, accesses: Sequence[Access], queue_depth: int
) -> Rounds:
    while len(test.rounds) < ROUNDS_MAX:
        label = f"{test.name}, round {len(test.rounds) + 1}"
        test.rounds.append(drive.round(label, accesses, queue_depth, plan.round_s))
        if test.window.steady:
            break
    window = test.window
    where = f"rounds {window.first} to {window.last}"
    said = (
        f"steady in {where}"
        if window.steady
        else f"not steady after {ROUNDS_MAX} rounds; means are of {where}"
    )
    plan.said(f"{test.name}: {said}")
    return test


def _precondition(drive: Drive, plan: Plan, name: str, block_bytes: int) -> None:
    drive.purge()
    fill = Access(block_bytes, 0, sequential=True)
    drive.write_through(f"{name}: preconditioning", fill, PRECONDITION_TIMES, plan.queue_depth)


def iops(drive: Drive, plan: Plan) -> list[Rounds]:
    """Run random requests of eight sizes and seven read percentages. 4 KiB writes must become steady."""
    _precondition(drive, plan, "IOPS", 128 * KIB)
    accesses = [Access(block, reads) for reads in IOPS_MIXES for block in IOPS_BLOCKS]
    test = Rounds("IOPS", Access(4 * KIB, 0), "iops", "IOPS")
    return [_until_steady(drive, plan, test, accesses, plan.queue_depth)]


def throughput(drive: Drive, plan: Plan) -> list[Rounds]:
    """Run sequential reads and writes of 1024 KiB, then of 128 KiB. A purge precedes each size."""
    tests = []
    for block in THROUGHPUT_BLOCKS:
        accesses = [Access(block, reads, sequential=True) for reads in (100, 0)]
        name = f"Throughput, {accesses[0].size}"
        _precondition(drive, plan, name, block)
        test = Rounds(name, accesses[1], "mb_per_s", "MB/s")
        tests.append(_until_steady(drive, plan, test, accesses, plan.queue_depth))
    return tests


def latency(drive: Drive, plan: Plan) -> list[Rounds]:
    """Run random requests of three sizes and three read percentages, with one request in flight.

    The tracked access is 4 KiB writes.
    """
    _precondition(drive, plan, "Latency", 128 * KIB)
    accesses = [Access(block, reads) for reads in LATENCY_MIXES for block in LATENCY_BLOCKS]
    test = Rounds("Latency", Access(4 * KIB, 0), "mean_us", "us")
    return [_until_steady(drive, plan, test, accesses, 1)]


def saturation(drive: Drive, plan: Plan) -> Saturation:
    """Write four times the capacity of a purged drive, in blocks of 4 KiB at random addresses."""
    drive.purge()
    access = Access(4 * KIB, 0)
    summary, _, history = drive.saturate(
        "Write saturation", access, SATURATION_TIMES, plan.queue_depth, plan.round_s
    )
    points = {round(point["t_s"] / plan.round_s): point for point in summary["series"]}
    # The last interval is incomplete.
    whole = [points.get(i) for i in range(max(1, max(points, default=0)))]
    found = Saturation(
        plan.round_s,
        [point["writes"] / plan.round_s if point else 0.0 for point in whole],
        [point["write_mean_us"] if point else None for point in whole],
        [point["max_us"] if point else None for point in whole],
        [
            (point["t_s"] + point["length_s"] / 2, point["gc_write_amplification"])
            for point in history
            if point["gc_write_amplification"] is not None
        ],
        summary["counts"]["writes"]["bytes"] * 1e-9,
    )
    state = "steady" if found.window.steady else "not steady"
    plan.said(f"Write saturation: {found.written_gb:.3g} GB written; the last five intervals are {state}")
    return found
