"""SNIA's Performance Test Specification, run on a device in virtual time (docs/pts.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .._devices import DEFAULT_DEVICE, Overrides
from .._devices import device as read_device
from .._support.watch import OnProgress
from ..errors import FlashtwinError
from . import tests
from .drive import Drive
from .report import PtsResults
from .tests import Plan, Rounds

__all__ = ["TESTS", "PtsResults", "pts"]

#: The tests, in the order in which they are run.
TESTS = ("wsat", "iops", "throughput", "latency")
_IN_ROUNDS = {"iops": tests.iops, "throughput": tests.throughput, "latency": tests.latency}


def pts(
    device: str | Path = DEFAULT_DEVICE,
    *,
    which: Sequence[str] = TESTS,
    round_s: float = 1.0,
    queue_depth: int = 32,
    set: Overrides | None = None,
    seed: int = 1,
    progress: OnProgress | None = None,
    said: Callable[[str], None] | None = None,
) -> PtsResults:
    """Run the tests of SNIA's Performance Test Specification (Enterprise) on a device.

    Args:
        device: one of `flashtwin.devices()`, or the path of a TOML file.
        which: names of tests: "wsat" (write saturation), "iops", "throughput", "latency".
        round_s: in each round, the length of the run of each access pattern, in seconds of virtual time. The
            standard uses one minute.
        queue_depth: number of requests in flight; the latency test always has one.
        set: keys of the device to change.
        seed: seed of the addresses.
        progress: function to call about ten times a second with a `Progress`.
        said: function to call when a test ends, with a line of text about its result.

    Raises:
        FlashtwinError: a setting is wrong, or the drive reached its end of life.
        Interrupted: on Ctrl-C.
    """
    for name in which:
        if name not in TESTS:
            raise FlashtwinError(f"tests: {name}: give some of {', '.join(TESTS)}")
    if not which:
        raise FlashtwinError(f"tests: there is none; give some of {', '.join(TESTS)}")
    if not 1e-6 <= round_s <= 1e6:
        raise FlashtwinError(f"round: {round_s} s: give the seconds of a round, as in 1 or 60")
    if not 1 <= queue_depth < 1 << 32:
        raise FlashtwinError(f"queue_depth: {queue_depth}: give a whole number from 1")
    if not 0 <= seed < 1 << 63:
        raise FlashtwinError(f"seed: {seed}: give a whole number from 0")
    spec = read_device(device, set)
    drive = Drive(spec, seed=seed, progress=progress)
    plan = Plan(round_s, queue_depth, said or (lambda _: None))
    saturation = tests.saturation(drive, plan) if "wsat" in which else None
    rounds: list[Rounds] = []
    for name, test in _IN_ROUNDS.items():
        if name in which:
            rounds += test(drive, plan)
    settings = {
        "exported_bytes": spec.exported_bytes,
        "buffer_bytes": spec.buffer_bytes,
        "policy": spec.policy or "none",
        "tests": ", ".join(name for name in TESTS if name in which),
        "round_s": round_s,
        "queue_depth": queue_depth,
        "seed": seed,
    }
    return PtsResults(spec.name, settings, saturation, rounds)
