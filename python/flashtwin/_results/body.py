"""The result of a sweep's cell as bytes: its summary as one line of JSON, then compressed histograms."""

from __future__ import annotations

import sys
import zlib
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core import Histogram

#: Kinds of requests. There is one histogram per kind.
_KINDS = ("read", "write")


def encode(summary: str, read: Histogram, write: Histogram) -> bytes:
    """Return the bytes of a cell: the summary, which is one line, and then the histograms."""
    packed = b""
    for histogram in (read, write):
        numbers = array("Q", [number for bucket in histogram for number in bucket])
        if sys.byteorder == "big":
            numbers.byteswap()
        packed += len(histogram).to_bytes(8, "little") + numbers.tobytes()
    return summary.encode() + b"\n" + zlib.compress(packed, 1)


def summary_line(body: bytes) -> bytes:
    """Return the line with the summary, unparsed."""
    return body.partition(b"\n")[0]


def histograms_of(body: bytes) -> dict[str, Histogram]:
    """Return the histograms of reads, writes and all requests: upper ends of buckets in ns, and counts."""
    packed = zlib.decompress(body.partition(b"\n")[2])
    found: dict[str, Histogram] = {}
    at = 0
    for kind in _KINDS:
        count = int.from_bytes(packed[at : at + 8], "little")
        numbers = array("Q", packed[at + 8 : at + 8 + 16 * count])
        if sys.byteorder == "big":
            numbers.byteswap()
        found[kind] = list(zip(numbers[::2], numbers[1::2], strict=True))
        at += 8 + 16 * count
    both = dict(found["read"])
    for ns, count in found["write"]:
        both[ns] = both.get(ns, 0) + count
    found["all"] = sorted(both.items())
    return found
