"""Types of those parts of a record's JSON that reports and figures read. Records are checked against them."""

from __future__ import annotations

from typing import TypedDict

from .tables import PARTS

#: Mean of each part of the response time, in us.
Parts = TypedDict("Parts", dict.fromkeys(PARTS, float))  # type: ignore[misc]


class Latency(TypedDict):
    """Response times of a kind of request."""

    requests: int
    mean_us: float
    deviation_us: float
    variation: float
    p50_us: float
    p90_us: float
    p95_us: float
    p99_us: float
    p999_us: float
    p9999_us: float
    max_us: float
    parts_us: Parts


class Hits(TypedDict):
    """Accesses found in the buffer."""

    ratio: float


class Buffer(TypedDict):
    """Evictions of the buffer."""

    destages: list[int]


class FlashOp(TypedDict):
    """Flash operations of one cause."""

    name: str
    count: int


class Flash(TypedDict):
    """Work of the flash."""

    ops: list[FlashOp]
    gc_write_amplification: float | None
    pages_moved: int
    erases: int
    gc_share_mean: float
    gc_time_ms_by_chip: list[float]
    block_erases_counts: list[tuple[int, int]]


class Health(TypedDict):
    """Health log of the drive."""

    device_write_amplification: float | None


class Array(TypedDict):
    """An array."""

    level: str


class Summary(TypedDict):
    """Summary of a run."""

    flashtwin_version: str
    device: str
    backend: str
    policy: str
    buffer_pages: int
    page_bytes: int
    exported_bytes: int
    workload: str
    warnings: list[str]
    precondition: str
    pacing: str
    seed: int
    requests_submitted: int
    interrupted: bool
    span_s: float
    all: Latency
    read: Latency
    write: Latency
    trim: Latency
    flush: Latency
    hits: Hits
    buffer: Buffer
    flash: Flash
    health: Health
    array: Array | None


class Histograms(TypedDict):
    """Histograms by kind of request: upper ends of buckets in ns, and counts."""

    all: list[tuple[int, int]]
    read: list[tuple[int, int]]
    write: list[tuple[int, int]]


class Window(TypedDict):
    """Window of a run's history."""

    t_s: float
    length_s: float
    iops: float
    mb_per_s: float
    mean_us: float | None
    p99_us: float | None
    hit_ratio: float | None
    inside_mean: float
    gc_write_amplification: float | None
    gc_share_by_chip: list[float]


class Batch(TypedDict):
    """Sums over consecutive requests of a workload."""

    reads: int
    writes: int
    read_us: float
    write_us: float
    parts_us: Parts
    pages: int
    hits: int
    media_pages: int
    programs: int
    host_programs: int
    pages_moved: int
    erases: int
    gc_us: float
    span_us: float
    p99_us: float | None
    p999_us: float | None
    p9999_us: float | None


class RecordFile(TypedDict):
    """A record."""

    summary: Summary
    histograms_ns: Histograms
    history: list[Window]
    batches: list[Batch]
