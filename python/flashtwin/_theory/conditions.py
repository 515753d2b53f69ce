"""Properties of a device and a load that closed forms assume, and reasons why a form does not apply."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import _core
from .._devices import Spec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Largest buffer for which write amplification has a closed form, as a fraction of all pages. With a larger
#: one, the writes that reach the flash no longer have the pattern of the load.
BUFFER_MAX = 0.02
#: Smallest number of blocks in a pool for which write amplification has a closed form. The forms assume many
#: blocks.
UNITS_MIN = 64


@dataclass(frozen=True)
class Case:
    """A device and a load.

    Attributes:
        spec: the device.
        load: the generated load; None for a trace.
    """

    spec: Spec
    load: str | None

    @cached_property
    def keys(self) -> dict[str, Any]:
        """Return the keys of the device by section."""
        keys: dict[str, Any] = tomllib.loads(self.spec.to_toml())
        return keys

    def section(self, name: str) -> dict[str, Any]:
        """Return the keys of a section of the device."""
        section: dict[str, Any] = self.keys.get(name, {})
        return section

    @cached_property
    def pool(self) -> dict[str, Any]:
        """Return the sizes of the device's pools of blocks. Each pool is garbage-collected separately.

        For an array, the dict has only the size of a page.
        """
        return _core.theory_device(self.spec)

    @cached_property
    def pages(self) -> int:
        """Return the number of pages that the host can access."""
        pages: int = self.pool["pools"] * self.pool["live_pages"]
        return pages

    @cached_property
    def _popularity(self) -> tuple[dict[str, Any] | None, str | None]:
        if self.load is None:
            return None, "a trace has no probabilities: `flashtwin policy curve` measures its hit ratios"
        return _core.theory_popularity(self.load, self.spec.exported_bytes, self.pool["page_bytes"])

    @property
    def popularity(self) -> dict[str, Any] | None:
        """Return the popularity of the pages; None if accesses are not independent."""
        return self._popularity[0]

    @property
    def dependence(self) -> str | None:
        """Return the reason why accesses are not independent; None if they are."""
        return self._popularity[1]

    @property
    def is_uniform(self) -> bool:
        """Whether all pages of the device are equally popular and accesses are independent."""
        of = self.popularity
        return of is not None and len(of["classes"]) == 1 and not of["permuted"]

    @property
    def buffer_pages(self) -> int:
        """Return the size of the buffer in pages; 0 without a buffer."""
        return self.spec.buffer_pages


def of_collection(case: Case) -> str | None:
    """Return the reason why no form of write amplification applies to the device; None if one may apply."""
    return next(_reasons_of_collection(case), None)


def _reasons_of_collection(case: Case) -> Iterator[str]:
    if case.pool["is_array"]:
        yield "the device is an array: its members get other loads"
    kind = case.section("ftl").get("kind", "page")
    if kind != "page":
        yield f"ftl.kind = {kind}: a log of blocks is merged, not collected"
    separation = case.section("ftl").get("separation", "none")
    if separation != "none":
        yield f"ftl.separation = {separation}: pages are written to two open blocks"
    if case.pool["write_streams"] > 1:
        yield "pages are written to two open blocks (an SLC cache, or a policy that separates hot pages)"
    if case.section("gc").get("watermark", "blocks") != "blocks":
        yield "gc.watermark = pages: the number of blocks in use varies"
    if case.section("gc").get("idle_percent") is not None:
        yield "gc.idle_percent: idle chips keep more blocks free"
    levelling = case.section("wear").get("levelling", "none")
    if levelling != "none":
        yield f"wear.levelling = {levelling}: blocks are also collected for their wear"
    if case.section("wear").get("erase_limit", 0):
        yield "wear.erase_limit: worn-out blocks reduce the reserve"
    if case.pool["units"] < UNITS_MIN:
        yield f"a pool has {case.pool['units']} blocks; the forms are those of many (from {UNITS_MIN})"
    if not 0 < case.pool["load"] < 1:
        yield "the pages of the host fill all blocks in use"
    share = case.buffer_pages / case.pages
    if share > BUFFER_MAX:
        yield f"the buffer holds {share:.1%} of the pages: it merges writes, and delays them"


def of_writes(case: Case) -> str | None:
    """Return the reason why no form of write amplification applies to the load; None if one may apply."""
    return next(_reasons_of_writes(case), None)


def _reasons_of_writes(case: Case) -> Iterator[str]:
    if case.dependence is not None:
        yield case.dependence
    if case.popularity is not None and case.popularity["writes"] <= 0:
        yield "the load does not write"


def of_hits(case: Case) -> str | None:
    """Return the reason why no closed form of the hit ratio applies; None if one applies."""
    return next(_reasons_of_hits(case), None)


def _reasons_of_hits(case: Case) -> Iterator[str]:
    if case.buffer_pages == 0:
        yield "the device has no buffer"
    if case.dependence is not None:
        yield case.dependence
    if case.popularity is not None and case.popularity["permuted"]:
        yield "each page is accessed once a pass: accesses are not independent"
    if case.section("buffer").get("read_cache"):
        yield "buffer.read_cache: reads and writes have buffers of their own"


def of_response(case: Case) -> str | None:
    """Return the reason why no bound of the response time applies; None if one applies."""
    return next(_reasons_of_response(case), None)


def _reasons_of_response(case: Case) -> Iterator[str]:
    if case.pool["is_array"]:
        yield "the device is an array: members share its requests"
    if case.dependence is not None:
        yield case.dependence
    of = case.popularity or {"reads": 0, "poisson_rate": None}
    if of["reads"] < 1:
        yield "the load writes: programs and collections delay reads, by no closed form"
    if of["poisson_rate"] is None:
        yield "arrivals are no Poisson process (rate=N gives one)"
    if not case.is_uniform:
        yield "pages differ in popularity: chips get different rates"
    if case.spec.backend == "msr":
        units = case.section("nand").get("parallel_units", 1)
        if units != 1:
            yield f"nand.parallel_units = {units}: a chip serves several reads at a time"
        return
    if case.section("geometry").get("planes_per_chip", 1) > 1:
        yield "independent planes serve several reads of a chip at a time"
    if case.pool["program_pages"] > 1:
        yield "reads of a row of several pages are performed together"
