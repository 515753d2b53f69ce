"""Import of the memory of MQSim's controller: its data cache as a buffer, its mapping table as DFTL."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from .draft import Draft, plain
from .fields import Fields


@dataclass(frozen=True)
class Geometry:
    """Sizes of a device. `reserve` is the fraction of the raw capacity that is not exported."""

    channels: int
    chips: int
    dies_per_chip: int
    planes_per_die: int
    blocks_per_plane: int
    pages_per_block: int
    page_bytes: int
    reserve: Decimal

    @property
    def planes(self) -> int:
        """Planes of all chips."""
        return self.chips * self.dies_per_chip * self.planes_per_die

    @property
    def raw_pages(self) -> int:
        """Pages of all planes."""
        return self.planes * self.blocks_per_plane * self.pages_per_block


def set_map(draft: Draft, ssd: Fields, geometry: Geometry) -> bool:
    """Set DFTL if MQSim's mapping table does not fit into its cache. Return whether DFTL was set."""
    ssd.word("Address_Mapping", {"PAGE_LEVEL": "page"}, "PAGE_LEVEL")
    if ssd.flag("Ideal_Mapping_Table", "true"):
        return False
    capacity = ssd.count("CMT_Capacity", str(2 << 20), most=1 << 52)
    # An entry of the table has a physical page number and a bitmap of its sectors. In the cache, it also has
    # the logical page number.
    page_bits, sectors = math.log2(geometry.raw_pages), geometry.page_bytes // 512
    entries = capacity // math.ceil((2 * page_bits + sectors) / 8)
    if entries >= geometry.raw_pages * (1 - geometry.reserve):
        draft.leave_out("Ideal_Mapping_Table", "false", "the cache holds the whole map")
        return False
    draft.set(
        "ftl.kind", '"dftl"', "the map does not fit: " + ssd.said("Ideal_Mapping_Table", "CMT_Capacity")
    )
    per_chip = max(1, entries // geometry.chips)
    draft.set(
        "ftl.cmt_entries",
        str(per_chip),
        f"of {entries}, which all chips of MQSim share; firmware shares them, too",
    )
    draft.set("ftl.protected_entries", "0", "MQSim's cache is LRU")
    in_page = max(1, geometry.page_bytes // math.ceil((page_bits + sectors) / 8))
    draft.set("ftl.entries_per_translation_page", str(in_page), "page and bitmap of sectors in each")
    return True


def set_buffer(draft: Draft, ssd: Fields, geometry: Geometry) -> None:
    """Set the buffer from MQSim's data cache.

    The cache writes cold pages back at once, and reads bypass it.
    """
    capacity = ssd.count("Data_Cache_Capacity", "0", least=0, most=1 << 52)
    mechanism = ssd.text("Caching_Mechanism", "ADVANCED")
    ssd.count("Data_Cache_DRAM_Row_Size", "8192")
    rate = ssd.number("Data_Cache_DRAM_Data_Rate", "800")
    # MQSim spells this name "Busrt". Files written by hand may have either spelling.
    published = "Data_Cache_DRAM_Data_Busrt_Size"
    burst_name = published if ssd.has(published) else "Data_Cache_DRAM_Data_Burst_Size"
    burst = ssd.count(burst_name, "4")
    start = ssd.number("Data_Cache_DRAM_tRCD", "13") + ssd.number("Data_Cache_DRAM_tCL", "13")
    pages = capacity // geometry.page_bytes
    if not pages:
        draft.leave_out("Data_Cache_Capacity", str(capacity), "less than a page: no buffer")
        return
    draft.set("buffer.capacity", str(pages * geometry.page_bytes), ssd.said("Data_Cache_Capacity"))
    draft.set("buffer.policy", '"lru"', f"Caching_Mechanism = {mechanism}")
    draft.set("buffer.evict", '"background"', "MQSim writes cold pages back at once")
    draft.set(
        "buffer.background_depth",
        str(min(geometry.planes, 65_535)),
        "back pressure: a page in flight for each plane",
    )
    # MQSim's preconditioning fills only those sectors of a page that requests of the load access. Partial
    # writes therefore rarely need a read.
    draft.set("buffer.partial", '"round"', "MQSim rarely reads before a partial write; devices do: sectors")
    # Double data rate: two bursts a cycle.
    latency = start + Decimal(geometry.page_bytes // burst // 2) / (rate or 1) * 1000
    page_us = plain(latency / 1000)
    said = ssd.said("Data_Cache_DRAM_tRCD", "Data_Cache_DRAM_tCL", "Data_Cache_DRAM_Data_Rate", burst_name)
    draft.set(
        "buffer.latency_us", "0", "MQSim charges no read that misses its cache, and writes pages back at once"
    )
    draft.set(
        "buffer.write_latency_us", page_us, f"of a page, from {said}; MQSim counts the bytes of a request"
    )
    draft.leave_out(
        "Data_Cache_DRAM_Data_Rate",
        plain(rate),
        "MQSim transfers one request at a time, as memory does; here in parallel: "
        f"controller.request_us = {page_us} limits writes as there, but reads, too",
    )
