"""Loads of tables of measurements, as published: the writes before a measurement, and the measured load."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Number of threads beside the probe, requests in flight per thread, and requests of the probe per second.
THREADS = 6
IN_FLIGHT_MAX = 64
PROBE_PER_S = 10_000
#: Requests in flight of loads without a rate: four threads with 128 requests each.
CLOSED_IN_FLIGHT = 512


@dataclass(frozen=True)
class CapacityShare:
    """Part of a drive that is used: its first GiB, or the whole drive (None)."""

    used_gib: float | None = None


@dataclass(frozen=True)
class ProbeBesideWrites:
    """A probe beside a load of writes, each with a rate and a limit of requests in flight.

    Half of the probe's requests are reads, half are writes. The rate of the probe is constant, and only its
    response times are reported. Beside the probe, six threads submit 99 % writes as a Poisson process. The
    common rate of these threads is `per_s` minus half the rate of the probe. All requests have 4 KiB and are
    uniform over the drive, which was overwritten three times before.
    """

    per_s: float

    @property
    def clients(self) -> list[tuple[str, int]]:
        """Return the loads with their limits of requests in flight, the probe first."""
        each = (self.per_s - PROBE_PER_S / 2) / THREADS
        probe = f"uniform:write=0.5,rate={PROBE_PER_S}/s,arrival=constant"
        return [(probe, IN_FLIGHT_MAX), *[(f"uniform:write=0.99,rate={each:g}/s", IN_FLIGHT_MAX)] * THREADS]


@dataclass(frozen=True)
class SequentialPass:
    """One sequential pass of 512 KiB writes at depth 1, over all or a part of a new drive."""

    capacity: CapacityShare = CapacityShare()


@dataclass(frozen=True)
class Rewrite:
    """Writes that overwrite the used capacity several times. The last quarter of them is measured.

    Attributes:
        capacity: part of the drive in use.
        pattern: the writes, as a generated load.
        times: number of overwrites; None if `written_gib` is given.
        shuffled: whether the drive was filled in random order before; otherwise it was filled sequentially.
        written_gib: bytes written, if `times` is None.
    """

    capacity: CapacityShare
    pattern: str
    times: float | None
    shuffled: bool = False
    written_gib: float = 0.0


@dataclass(frozen=True)
class Zones:
    """Writes of zones.

    Each zone is trimmed before its first write. The last quarter of the writes is measured.

    A write continues one of the open zones, which are equally likely. When a zone is full, a zone drawn among
    those that are not open replaces it.

    Attributes:
        zone_gib: size of a zone.
        open_zones: number of open zones.
        times: number of overwrites; None if `written_gib` is given.
        written_gib: bytes written, if `times` is None.
    """

    zone_gib: float
    open_zones: int
    times: float | None
    written_gib: float = 0.0


@dataclass(frozen=True)
class RandomReads:
    """Random reads of `io_bytes` by processes, each with `depth` requests in flight."""

    io_bytes: int
    depth: int
    processes: int


#: Loads of writes that are as fast as the drive completes them.
Writes = SequentialPass | Rewrite | Zones
Load = ProbeBesideWrites | Writes | RandomReads

_REGIONS = re.compile(r"s([\d.]+)\s+f([\d.]+)")


def pattern_of(pattern: str, details: str, times: float | None, start: str) -> Load | None:
    """Return the load of a pattern given by name; None if no generated load has this pattern.

    Args:
        pattern: name of the pattern in the table.
        details: exponent of a Zipf distribution, or the shares of regions in the pages and in the writes.
        times: number of overwrites.
        start: writes before the load: "new" (none), "filled" or "shuffled".
    """
    whole = CapacityShare()
    shuffled = start == "shuffled"
    found: Load | None = None
    if pattern in ("sequential", "sequential-noshuffle"):
        found = SequentialPass()
    elif pattern == "sequential-shuffle":
        found = Rewrite(whole, "uniform:write=1,permute=true", 1.0, shuffled=True)
    elif pattern == "uniform":
        found = Rewrite(whole, "uniform:write=1", times, shuffled)
    elif pattern == "zipf-shuffle" and details and start != "new":
        found = Rewrite(whole, f"zipf:theta={float(details):g},write=1", times, shuffled)
    elif pattern == "zones-shuffle":
        parts = [(float(space), float(access)) for space, access in _REGIONS.findall(details)]
        zoned = ":".join(f"{access * 100:g}/{space * 100:g}" for space, access in parts)
        found = Rewrite(whole, f"uniform:write=1,zoned={zoned}", times)
    return found
