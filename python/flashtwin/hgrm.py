"""Distributions of response times in the text format of HdrHistogram (`.hgrm`), for its plotters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ._support.files import write_texts

if TYPE_CHECKING:
    from ._core import Histogram
    from ._support.record import Record

#: Number of lines until the distance to 100 % has halved, and number of decimals of values, as in
#: HdrHistogram.
_TICKS = 5
#: Properties of flashtwin's histograms: they keep three digits of a value (11 bits), for values up to an
#: hour.
_SUB_BUCKETS, _BUCKETS = 2048, 32


def to_hgrm(histogram: Histogram, *, mean_us: float, deviation_us: float, max_us: float) -> str:
    """Return the distribution in the form of HdrHistogram's `outputPercentileDistribution`, in microseconds.

    Args:
        histogram: upper ends of buckets in ns, and counts.
        mean_us: exact mean of the response times.
        deviation_us: exact standard deviation of the response times.
        max_us: exact longest response time.
    """
    total = sum(count for _, count in histogram)
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for ns, percent, seen in _levels(histogram, total):
        line = f"{ns * 1e-3:12.3f} {percent / 100:2.12f} {seen:10d}"
        lines.append(f"{line} {1 / (1 - percent / 100):14.2f}" if percent < 100 else line)
    lines += [
        f"#[Mean    = {mean_us:12.3f}, StdDeviation   = {deviation_us:12.3f}]",
        f"#[Max     = {max_us:12.3f}, Total count    = {total:12d}]",
        f"#[Buckets = {_BUCKETS:12d}, SubBuckets     = {_SUB_BUCKETS:12d}]",
    ]
    return "\n".join(lines) + "\n"


def _levels(histogram: Histogram, total: int) -> Iterator[tuple[int, float, int]]:
    """Yield the lines of HdrHistogram's PercentileIterator: value, percentile, requests up to the value."""
    level, seen = 0.0, 0
    for ns, count in histogram:
        seen += count
        while 100 * seen / total >= level:
            yield ns, level, seen
            if seen == total:
                break
            # Each time the distance to 100 % halves, the distance between lines halves, too.
            halvings = int(100 / (100 - level)).bit_length()
            level += 100 / (_TICKS << halvings)
    if total:
        yield histogram[-1][0], 100.0, total


def write_hgrm(record: Record, path: Path) -> list[Path]:
    """Write the distribution of all requests to `path`, and those of reads and of writes beside it.

    Returns:
        The files: `x.hgrm`; also `x.read.hgrm` if there were reads, and `x.write.hgrm` if there were writes.
    """
    texts = {}
    for kind, name in (("all", ""), ("read", ".read"), ("write", ".write")):
        times = record.summary[kind]
        if kind != "all" and not times["requests"]:
            continue
        one = path.with_name(f"{path.stem}{name}{path.suffix}")
        of = {key: times[key] for key in ("mean_us", "deviation_us", "max_us")}
        texts[one] = to_hgrm(record.histograms[kind], **of)
    write_texts(texts, "the distribution")
    return list(texts)
