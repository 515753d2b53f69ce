"""Loads of tables of measurements, as published: what is written before, and what is measured."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Threads beside the probe, requests in flight of each thread, and requests of the probe per second.
THREADS = 6
IN_FLIGHT_MAX = 64
PROBE_PER_S = 10_000
#: Requests in flight of loads without a rate: four threads with 128 each.
CLOSED_IN_FLIGHT = 512


@dataclass(frozen=True)
class CapacityShare:
    """The part of a drive that is used: its first GiB, or the whole drive (None)."""

    used_gib: float | None = None


@dataclass(frozen=True)
class ProbeBesideWrites:
    """A probe beside a load of writes, each with a rate and a limit of requests in flight.

    The probe has half reads and half writes at a constant rate; only its response times are reported. Six
    threads together submit `per_s` requests per second minus half the rate of the probe, as a Poisson process
    with 99 % writes. All requests have 4 KiB and are uniform over the drive, which was overwritten three
    times before.
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
    """One sequential pass of 512 KiB writes at depth 1 over a new drive, or a part of it."""

    capacity: CapacityShare = CapacityShare()


@dataclass(frozen=True)
class Rewrite:
    """Writes of some overwrites of the used capacity, of which the last quarter is measured.

    Attributes:
        capacity: part of the drive in use.
        pattern: the writes as a generated load.
        times: overwrites; None: `written_gib` are written.
        shuffled: whether the drive was filled in random order before, otherwise sequentially.
        written_gib: bytes written, if not a number of overwrites.
    """

    capacity: CapacityShare
    pattern: str
    times: float | None
    shuffled: bool = False
    written_gib: float = 0.0


@dataclass(frozen=True)
class Zones:
    """Writes of zones, each trimmed before its first write, of which the last quarter is measured.

    A write goes to one of the open zones, each with the same chance, and continues that zone. A full zone is
    replaced by one drawn among those that are not open.

    Attributes:
        zone_gib: size of a zone.
        open_zones: number of open zones.
        times: overwrites; None: `written_gib` are written.
        written_gib: bytes written, if not a number of overwrites.
    """

    zone_gib: float
    open_zones: int
    times: float | None
    written_gib: float = 0.0


@dataclass(frozen=True)
class RandomReads:
    """Random reads of `io_bytes` by processes with `depth` requests in flight each."""

    io_bytes: int
    depth: int
    processes: int


#: Loads of writes as fast as the drive takes them.
Writes = SequentialPass | Rewrite | Zones
Load = ProbeBesideWrites | Writes | RandomReads

_REGIONS = re.compile(r"s([\d.]+)\s+f([\d.]+)")


def pattern_of(pattern: str, details: str, times: float | None, start: str) -> Load | None:
    """Return the load of a pattern's name; None if it is not generated.

    Args:
        pattern: name of the pattern in the table.
        details: exponent of a Zipf distribution, or shares of the pages and of the writes of regions.
        times: overwrites.
        start: what was written before: new, filled, shuffled.
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
