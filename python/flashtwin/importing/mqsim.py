"""MQSim's `ssdconfig.xml` as a device of the back end `modern`: the nearest keys, not the same results."""

from __future__ import annotations

from decimal import Decimal

from .draft import Draft, plain
from .fields import Fields
from .xml import Node

_HEAD = [
    "A device of MQSim, imported from its configuration.",
    "MQSim preconditions by filling to a share of the capacity: `--precondition steady` is the nearest.",
]

#: Bytes a second and lane of PCIe by generation, in GB/s.
_LANE_GB = {
    1: Decimal("0.25"),
    2: Decimal("0.5"),
    3: Decimal("0.985"),
    4: Decimal("1.969"),
    5: Decimal("3.938"),
}

#: Page types by technology, as in the names of MQSim's latencies.
_TYPES = {"SLC": ("LSB",), "MLC": ("LSB", "MSB"), "TLC": ("LSB", "CSB", "MSB")}

#: MQSim's names of our rules for victims, and the difference of those that are not the same.
_VICTIMS = {
    "GREEDY": ("greedy", ""),
    "RGA": ("d-choices", ""),
    "RANDOM": ("random", ""),
    "RANDOM_P": ("random", "only full blocks are drawn here, as in RANDOM_P"),
    "RANDOM_PP": ("random", "no least number of invalid pages"),
    "FIFO": ("fifo", ""),
}

#: Parameters that need no counterpart, and why.
_KNOWN = {
    "Enable_ResponseTime_Logging": "`--requests` logs each request",
    "ResponseTime_Logging_Period_Length": "`--series` and `--interval`",
    "Seed": "`--seed`",
    "Enabled_Preconditioning": "`--precondition`",
    "Memory_Type": "flash is all there is",
    "CMT_Capacity": 'the map is in memory; `ftl.kind = "dftl"` caches it',
    "CMT_Sharing_Mode": "flows share the map",
    "Data_Cache_Sharing_Mode": "flows share the buffer",
    "Data_Cache_DRAM_tRP": "included in the buffer's latency",
    "Transaction_Scheduling_Policy": "reads go first on their die, else first come first served",
    "GC_Hard_Threshold": "a preemptible collection keeps pace with the writes (D-170)",
    "Static_Wearleveling_Threshold": "`wear.erases_behind` counts from the mean of the pool",
    "Prefered_suspend_erase_time_for_read": "`nand.suspend_rest_us`",
    "Preferred_suspend_erase_time_for_read": "`nand.suspend_rest_us`",
    "Preferred_suspend_erase_time_for_write": "only reads suspend",
    "Preferred_suspend_write_time_for_read": "`nand.suspend_rest_us`",
    "Flash_Comm_Protocol": "a channel has a rate",
}


def device(root: Node, origin: str) -> Draft:
    """The device that a configuration describes."""
    host, ssd, flash = _parts(root, origin)
    draft = Draft(_HEAD, "imported", "SSD of an MQSim configuration")
    page_bytes = _set_flash(draft, ssd, flash)
    _set_link(draft, host, ssd)
    _set_nand(draft, ssd, flash)
    _set_ftl(draft, ssd, flash)
    _set_buffer(draft, ssd, page_bytes)
    for fields in (host, ssd, flash):
        for node in fields.unused():
            draft.leave_out(node.tag, node.text, _KNOWN.get(node.tag, "unknown to MQSim as published"))
    return draft


def _parts(root: Node, origin: str) -> tuple[Fields, Fields, Fields]:
    """Parameters of the host, the device and its flash; those that a file lacks are missed when asked for."""
    host = root.child("Host_Parameter_Set") or Node("Host_Parameter_Set", root.line)
    ssd = root.child("Device_Parameter_Set") or Node("Device_Parameter_Set", root.line)
    flash = ssd.child("Flash_Parameter_Set") or Node("Flash_Parameter_Set", ssd.line)
    return Fields(host, origin), Fields(ssd, origin), Fields(flash, origin)


def _set_flash(draft: Draft, ssd: Fields, flash: Fields) -> int:
    """Geometry and times: bytes of a page."""
    channels = ssd.count("Flash_Channel_Count", most=65_535)
    chips, dies = ssd.count("Chip_No_Per_Channel", most=65_535), flash.count("Die_No_Per_Chip", most=65_535)
    planes = flash.count("Plane_No_Per_Die", most=1024)
    pages = flash.count("Page_No_Per_Block", most=4096)
    page_bytes = flash.count("Page_Capacity", most=1 << 20)
    sectors = max(1, page_bytes // 512)
    spare = -(-flash.count("Page_Metadat_Capacity", "0", least=0, most=1 << 20) // sectors)
    draft.set(
        "geometry.chips",
        str(channels * chips * dies),
        "dies: " + ssd.said("Flash_Channel_Count", "Chip_No_Per_Channel") + f", Die_No_Per_Chip = {dies}",
    )
    draft.set("geometry.channels", str(channels), ssd.said("Flash_Channel_Count"))
    striped = planes <= 16 and pages * planes <= 4096
    draft.set(
        "geometry.planes_per_chip",
        "1" if striped else str(planes),
        "blocks are striped over the planes, see nand.multi_plane"
        if striped
        else flash.said("Plane_No_Per_Die"),
    )
    draft.set("geometry.blocks_per_plane", flash.text("Block_No_Per_Plane"), flash.said("Block_No_Per_Plane"))
    flash.count("Block_No_Per_Plane")
    said = flash.said("Page_No_Per_Block", "Plane_No_Per_Die")
    draft.set("geometry.pages_per_block", str(pages * (planes if striped else 1)), said)
    draft.set("geometry.page_bytes", str(page_bytes), flash.said("Page_Capacity"))
    draft.set(
        "geometry.spare_bytes_per_sector", str(spare), flash.said("Page_Metadat_Capacity") or "not given"
    )
    reserve = ssd.number("Overprovisioning_Ratio", most=1) * 100
    draft.set("geometry.reserve_percent", plain(reserve), ssd.said("Overprovisioning_Ratio"))
    cell = flash.word("Flash_Technology", {name: name for name in _TYPES})
    for key, name in (("read_us", "Page_Read_Latency_"), ("program_us", "Page_Program_Latency_")):
        names = [name + page_type for page_type in _TYPES[cell]]
        times = [plain(flash.number(each) / 1000) for each in names]
        draft.set(
            f"timing.{key}", times[0] if len(times) == 1 else f"[{', '.join(times)}]", flash.said(*names)
        )
        for page_type in ("LSB", "CSB", "MSB"):
            flash.text(name + page_type, "")
    draft.set(
        "timing.erase_us",
        plain(flash.number("Block_Erase_Latency") / 1000),
        flash.said("Block_Erase_Latency"),
    )
    rate = ssd.number("Channel_Transfer_Rate") * ssd.number("Flash_Channel_Width", "1")
    if not rate:
        raise ssd.wrong("Channel_Transfer_Rate", "a channel without a rate carries nothing")
    said = ssd.said("Channel_Transfer_Rate", "Flash_Channel_Width")
    draft.set("timing.transfer_ns_per_byte", plain(1000 / rate), said)
    draft.set("nand.backend", '"modern"', "the nearest")
    draft.set("nand.cell", f'"{cell.lower()}"', flash.said("Flash_Technology"))
    if striped and planes > 1:
        draft.set("nand.multi_plane", str(planes), flash.said("Plane_No_Per_Die"))
    return page_bytes


def _set_link(draft: Draft, host: Fields, ssd: Fields) -> None:
    depth, fetched = ssd.count("IO_Queue_Depth", "0", least=0), ssd.count("Queue_Fetch_Size", "0", least=0)
    kind = ssd.word("HostInterface_Type", {"NVME": "pcie", "SATA": "sata"})
    draft.set("link.kind", f'"{kind}"', ssd.said("HostInterface_Type"))
    delay = host.number("SATA_Processing_Delay", "0")
    lane, lanes = host.number("PCIe_Lane_Bandwidth", "1"), host.count("PCIe_Lane_Count", "4")
    if kind == "pcie":
        nearest = min(_LANE_GB, key=lambda generation: abs(_LANE_GB[generation] - lane))
        draft.set("link.pcie_generation", str(nearest), "the nearest: " + host.said("PCIe_Lane_Bandwidth"))
        draft.set("link.pcie_lanes", str(min(lanes, 16)), host.said("PCIe_Lane_Count"))
    else:
        draft.set("link.command_overhead_us", plain(delay / 1000), host.said("SATA_Processing_Delay"))
    draft.set("host.queue_depth", str(min(depth, 65_535)), ssd.said("IO_Queue_Depth"))
    draft.set("host.commands", str(min(fetched, 65_535)), ssd.said("Queue_Fetch_Size"))


def _set_nand(draft: Draft, ssd: Fields, flash: Fields) -> None:
    copy_back = ssd.flag("Use_Copyback_for_GC")
    draft.set("nand.copy_back", str(copy_back).lower(), ssd.said("Use_Copyback_for_GC"))
    draft.set("nand.read_priority", "true", "MQSim's schedulers try reads first")
    draft.set("nand.background_gc", "false", "MQSim collects when a block fills")
    support = {"NONE": False, "PROGRAM": True, "PROGRAM_ERASE": True, "ERASE": True}
    suspends = flash.word("CMD_Suspension_Support", support, "NONE")
    draft.set("nand.suspend", str(suspends).lower(), flash.said("CMD_Suspension_Support"))
    names = ("Suspend_Program_Time", "Suspend_Erase_Time")
    cost = max(flash.number(name, "0") for name in names)
    if suspends:
        draft.set("nand.suspend_us", plain(cost / 1000), "the longer of " + flash.said(*names))


def _set_ftl(draft: Draft, ssd: Fields, flash: Fields) -> None:
    ssd.word("Address_Mapping", {"PAGE_LEVEL": "page"}, "PAGE_LEVEL")
    if not ssd.flag("Ideal_Mapping_Table", "true"):
        draft.leave_out("Ideal_Mapping_Table", "false", "the map is in memory, and costs no reads")
    draft.set("ftl.placement", '"static"', "MQSim's planes are fixed by the address")
    draft.set("ftl.summary_page", "false", "MQSim writes none")
    scheme = ssd.text("Plane_Allocation_Scheme", "CWDP")
    if scheme != "CWDP":
        draft.leave_out("Plane_Allocation_Scheme", scheme, "pages go channel first, then way, as with CWDP")
    victim = ssd.text("GC_Block_Selection_Policy", "GREEDY")
    rule, difference = ssd.word("GC_Block_Selection_Policy", _VICTIMS, "GREEDY")
    draft.set("gc.victim", f'"{rule}"', ssd.said("GC_Block_Selection_Policy") or "MQSim's default")
    if rule == "d-choices":
        blocks = flash.count("Block_No_Per_Plane")
        draft.set(
            "gc.choices", str(max(1, blocks.bit_length() - 1)), "the logarithm of the blocks of a plane"
        )
    if difference:
        draft.leave_out("GC_Block_Selection_Policy", victim, difference)
    misspelt = "GC_Exect_Threshold"
    name = misspelt if ssd.has(misspelt) else "GC_Exec_Threshold"
    draft.set("gc.low_percent", plain(ssd.number(name, most=1) * 100), ssd.said(name))
    preemptible = ssd.flag("Preemptible_GC_Enabled")
    draft.set("gc.preemptible", str(preemptible).lower(), ssd.said("Preemptible_GC_Enabled"))
    static, dynamic = ssd.flag("Static_Wearleveling_Enabled"), ssd.flag("Dynamic_Wearleveling_Enabled")
    levelling = "static" if static else "dynamic" if dynamic else "none"
    said = ssd.said("Static_Wearleveling_Enabled", "Dynamic_Wearleveling_Enabled")
    draft.set("wear.levelling", f'"{levelling}"', said)
    cycles = flash.count("Block_PE_Cycles_Limit", "0", least=0)
    draft.set("wear.rated_erases", str(cycles), flash.said("Block_PE_Cycles_Limit"))


def _set_buffer(draft: Draft, ssd: Fields, page_bytes: int) -> None:
    """The data cache: MQSim's is LRU and writes back in the background."""
    capacity = ssd.count("Data_Cache_Capacity", "0", least=0, most=1 << 52)
    mechanism = ssd.text("Caching_Mechanism", "ADVANCED")
    row, rate = ssd.count("Data_Cache_DRAM_Row_Size", "8192"), ssd.number("Data_Cache_DRAM_Data_Rate", "800")
    burst = ssd.count("Data_Cache_DRAM_Data_Burst_Size", "1")
    start = ssd.number("Data_Cache_DRAM_tRCD", "0") + ssd.number("Data_Cache_DRAM_tCL", "0")
    pages = capacity // page_bytes
    if not pages:
        draft.leave_out("Data_Cache_Capacity", str(capacity), "less than a page: no buffer")
        return
    draft.set("buffer.capacity", str(pages * page_bytes), ssd.said("Data_Cache_Capacity"))
    draft.set("buffer.policy", '"lru"', f"Caching_Mechanism = {mechanism}")
    draft.set("buffer.evict", '"background"', "MQSim writes cold pages back at once")
    draft.set("buffer.partial", '"sectors"', "MQSim keeps a bitmap of sectors")
    latency = start * -(-page_bytes // row) + Decimal(page_bytes) / burst / (rate or 1) * 1000
    said = ssd.said("Data_Cache_DRAM_tRCD", "Data_Cache_DRAM_tCL", "Data_Cache_DRAM_Data_Rate")
    draft.set("buffer.latency_us", plain(latency / 1000), f"of a page, from {said}")
