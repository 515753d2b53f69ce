"""The loads of published measurements: the writes that precede a measurement, and the measured load."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Number of threads that write beside the probe (the load that measures response times); maximum number of
#: requests in flight, of the probe and of each thread; rate of the probe.
THREADS = 6
IN_FLIGHT_MAX = 64
PROBE_PER_S = 10_000
#: Requests in flight of loads without a rate: four threads with 128 requests each.
CLOSED_IN_FLIGHT = 512


@dataclass(frozen=True)
class CapacityShare:
    """Part of a drive that a load uses: its first `used_gib` GiB, or the whole drive (None)."""

    used_gib: float | None = None


@dataclass(frozen=True)
class ProbeBesideWrites:
    """A load that measures response times (the probe), and a load of writes that runs at the same time.

    Half of the probe's requests are reads, half are writes. The rate of the probe is constant, and only its
    response times are reported. Six more threads submit requests as Poisson processes; 99 % of these requests
    are writes. Together, their rate is `per_s` minus half the rate of the probe. The number of requests in
    flight is limited for the probe and for each thread. All requests have 4 KiB and are uniform over the
    drive. The drive was overwritten three times before.
    """

    per_s: float

    @property
    def clients(self) -> list[tuple[str, int]]:
        """Return each load with its limit of requests in flight: first the probe, then the threads."""
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
        shuffled: True if the drive was first filled in random order, False if it was filled sequentially.
        written_gib: bytes written, if `times` is None.
    """

    capacity: CapacityShare
    pattern: str
    times: float | None
    shuffled: bool = False
    written_gib: float = 0.0


@dataclass(frozen=True)
class Zones:
    """Writes that are sequential within zones of the drive.

    Each zone is trimmed before its first write. The last quarter of the writes is measured.

    A write continues one of the open zones, which is chosen at random with equal probability. When a zone is
    full, a zone that is not open is drawn at random and replaces it.

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


@dataclass(frozen=True)
class Streams:
    """Writes of a named load to a new drive. The last quarter of them is measured.

    Attributes:
        load: the writes, as a generated load without the share of small objects.
        times: number of overwrites of the capacity.
        trace: trace that CacheLib replayed (the share of small objects depends on it); empty for other loads.
    """

    load: str
    times: float
    trace: str = ""


#: Loads that submit a write as soon as the drive has completed another (closed loop).
Writes = SequentialPass | Rewrite | Zones | Streams
Load = ProbeBesideWrites | Writes | RandomReads

#: Workloads of tables of placement that are not generated, with the reason.
NOT_GENERATED = {
    "twitter-": "the load is not described in the source",
    "noise": "the noise load beside CacheLib is not described in the source",
}
_REGIONS = re.compile(r"s([\d.]+)\s+f([\d.]+)")


def pattern_of(pattern: str, details: str, times: float | None, start: str) -> Load | None:
    """Return the load for the name of a pattern; None if flashtwin cannot generate this pattern.

    Args:
        pattern: name of the pattern in the table.
        details: exponent of a Zipf distribution; or for each region, its share of the pages and its share of
            the writes.
        times: number of overwrites.
        start: state of the drive before the load: "new" (never written), "filled" (sequentially) or
            "shuffled" (filled in random order).
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


def streams_of(workload: str, soc_percent: str, handles: str, times: float) -> Streams | None:
    """Return the load of a row about placement; None if flashtwin cannot generate it.

    Args:
        workload: "1stream", or the trace that CacheLib replayed.
        soc_percent: percentage of the capacity for small objects; empty if the load has none.
        handles: "own" if small and large objects have a placement handle each, "none" if they have none.
        times: number of overwrites of the capacity.
    """
    if workload == "1stream":
        return Streams("warp-1stream:handles=none", times)
    if not soc_percent:
        return None
    if float(soc_percent) == 0:
        return Streams("sequential:size=1M,write=1", times)
    return Streams(f"cachelib:soc={float(soc_percent):g},handles={handles}", times, workload)
