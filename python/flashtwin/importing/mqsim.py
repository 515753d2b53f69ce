"""MQSim's `ssdconfig.xml` as a device of the back end `modern`. Results are similar to MQSim's, not equal."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from . import mqsim_dram
from .draft import Draft, plain
from .fields import Fields
from .xml import Node

_HEAD = [
    "A device of MQSim, imported from its configuration. Comments name differences and the realistic choice.",
    "Commands for its loads, from its initial state: `flashtwin device import workload.xml --ssd THIS.xml`.",
]

#: Transfer rate per lane of PCIe by generation, in GB/s.
_LANE_GB = {
    1: Decimal("0.25"),
    2: Decimal("0.5"),
    3: Decimal("0.985"),
    4: Decimal("1.969"),
    5: Decimal("3.938"),
}

#: Names of page types, with which MQSim's latency parameters end, by technology. Those of QLC are from its
#: fork MQSim_QLC.
_TYPES = {
    "SLC": ("LSB",),
    "MLC": ("LSB", "MSB"),
    "TLC": ("LSB", "CSB", "MSB"),
    "QLC": ("LSB", "CSB", "MSB", "WSB"),
}

#: For each victim rule of MQSim, the rule of flashtwin, and the difference between them if they are not
#: equal.
_VICTIMS = {
    "GREEDY": ("greedy", ""),
    "RGA": ("d-choices", ""),
    "RANDOM": ("random", ""),
    "RANDOM_P": ("random", "only full blocks are drawn here, as in RANDOM_P"),
    "RANDOM_PP": ("random", "no least number of invalid pages"),
    "FIFO": ("fifo", ""),
}

#: Parameters that need no counterpart, with the reason.
_KNOWN = {
    "Enable_ResponseTime_Logging": "`--requests` logs each request",
    "ResponseTime_Logging_Period_Length": "`--series` and `--interval`",
    "Seed": "`--seed`",
    "Memory_Type": "flash is all there is",
    "CMT_Capacity": "the whole map is in memory",
    "CMT_Sharing_Mode": "flows share the map",
    "Data_Cache_Sharing_Mode": "flows share the buffer",
    "Data_Cache_DRAM_tRP": "a page is within a row",
    "Transaction_Scheduling_Policy": "see nand.read_priority; else first come first served on each chip",
    "GC_Hard_Threshold": "a preemptible collection keeps pace with the writes (D-170)",
    "Static_Wearleveling_Threshold": "`wear.erases_behind` counts from the mean of the pool",
    "Prefered_suspend_erase_time_for_read": "`nand.suspend_rest_us`",
    "Preferred_suspend_erase_time_for_read": "`nand.suspend_rest_us`",
    "Preferred_suspend_erase_time_for_write": "only reads suspend",
    "Preferred_suspend_write_time_for_read": "`nand.suspend_rest_us`",
    "Flash_Comm_Protocol": "a channel has a rate",
}

#: Counterpart of a start without preconditioning.
_UNWRITTEN = "a read of a page never written takes a flash read in MQSim: use `--precondition sequential`"


@dataclass(frozen=True)
class Initial:
    """The state of a device in which MQSim starts a run.

    Attributes:
        preconditioned: whether MQSim fills pages before a run. If it does not, all pages count as written,
            and none is moved.
        reserve: fraction of the raw capacity that the host cannot access.
        free_pages: number of pages that can be written to a full device before its first collection.
        page_bytes: bytes of a page.
        planes: number of planes of all chips. One page of the cache may be in flight per plane.
    """

    preconditioned: bool
    reserve: Decimal
    free_pages: int
    page_bytes: int
    planes: int


def device(root: Node, origin: str) -> Draft:
    """Return the device that a configuration describes."""
    host, ssd, flash = _parts(root, origin)
    draft = Draft(_HEAD, "imported", "SSD of an MQSim configuration")
    if not ssd.flag("Enabled_Preconditioning", "true"):
        draft.leave_out("Enabled_Preconditioning", "false", _UNWRITTEN)
    geometry = _set_flash(draft, ssd, flash)
    _set_link(draft, host, ssd)
    cached_map = mqsim_dram.set_map(draft, ssd, geometry)
    _set_nand(draft, ssd, flash, cached_map)
    _set_collection(draft, ssd, flash, cached_map)
    mqsim_dram.set_buffer(draft, ssd, geometry)
    for fields in (host, ssd, flash):
        for node in fields.unused():
            draft.leave_out(node.tag, node.text, _KNOWN.get(node.tag, "unknown to MQSim as published"))
    return draft


def initial(root: Node, origin: str) -> Initial:
    """Return the state in which a configuration starts."""
    _, ssd, flash = _parts(root, origin)
    geometry = _geometry(ssd, flash)
    reserve = ssd.number("Overprovisioning_Ratio", most=1)
    _, threshold = _threshold(ssd)
    free = max(Decimal(0), reserve - threshold) * geometry.raw_pages
    return Initial(
        ssd.flag("Enabled_Preconditioning", "true"), reserve, int(free), geometry.page_bytes, geometry.planes
    )


def _parts(root: Node, origin: str) -> tuple[Fields, Fields, Fields]:
    """Return the parameters of host, device and flash. A missing one is reported only when it is read."""
    host = root.child("Host_Parameter_Set") or Node("Host_Parameter_Set", root.line)
    ssd = root.child("Device_Parameter_Set") or Node("Device_Parameter_Set", root.line)
    flash = ssd.child("Flash_Parameter_Set") or Node("Flash_Parameter_Set", ssd.line)
    return Fields(host, origin), Fields(ssd, origin), Fields(flash, origin)


def _geometry(ssd: Fields, flash: Fields) -> mqsim_dram.Geometry:
    channels = ssd.count("Flash_Channel_Count", most=65_535)
    return mqsim_dram.Geometry(
        channels=channels,
        chips=channels * ssd.count("Chip_No_Per_Channel", most=65_535),
        dies_per_chip=flash.count("Die_No_Per_Chip", most=1024),
        planes_per_die=flash.count("Plane_No_Per_Die", most=1024),
        blocks_per_plane=flash.count("Block_No_Per_Plane", most=1 << 24),
        pages_per_block=flash.count("Page_No_Per_Block", most=4096),
        page_bytes=flash.count("Page_Capacity", most=1 << 20),
        reserve=ssd.number("Overprovisioning_Ratio", most=1),
    )


def _threshold(ssd: Fields) -> tuple[str, Decimal]:
    """Return the name and the value of the parameter with the threshold of garbage collection.

    MQSim has two spellings of this name.
    """
    misspelt = "GC_Exect_Threshold"
    name = misspelt if ssd.has(misspelt) else "GC_Exec_Threshold"
    return name, ssd.number(name, most=1)


def _set_flash(draft: Draft, ssd: Fields, flash: Fields) -> mqsim_dram.Geometry:
    """Set geometry and times."""
    geometry = _geometry(ssd, flash)
    dies = geometry.dies_per_chip
    chips_said = ssd.said("Flash_Channel_Count", "Chip_No_Per_Channel")
    if dies > 1:
        # MQSim starts a command on a chip only if all dies of the chip are idle.
        chips_said += f"; real dies are independent: chips = {geometry.chips * dies}, planes_per_chip = "
        chips_said += f"{geometry.planes_per_die} models those"
    draft.set("geometry.chips", str(geometry.chips), chips_said)
    draft.set("geometry.channels", str(geometry.channels), ssd.said("Flash_Channel_Count"))
    planes_said = flash.said("Die_No_Per_Chip", "Plane_No_Per_Die")
    if geometry.planes_per_die > 1:
        planes_said += (
            "; MQSim rarely programs planes together; firmware does: see nand.multi_plane, on one plane"
        )
    draft.set("geometry.planes_per_chip", str(dies * geometry.planes_per_die), planes_said)
    draft.set("geometry.blocks_per_plane", str(geometry.blocks_per_plane), flash.said("Block_No_Per_Plane"))
    draft.set("geometry.pages_per_block", str(geometry.pages_per_block), flash.said("Page_No_Per_Block"))
    draft.set("geometry.page_bytes", str(geometry.page_bytes), flash.said("Page_Capacity"))
    spare = flash.count("Page_Metadat_Capacity", "0", least=0, most=1 << 20)
    if spare:
        per_sector = -(-spare // max(1, geometry.page_bytes // 512))
        why = f"MQSim does not transfer it; channels do: geometry.spare_bytes_per_sector = {per_sector}"
        draft.leave_out("Page_Metadat_Capacity", str(spare), why)
    said = ssd.said("Overprovisioning_Ratio")
    draft.set("geometry.reserve_percent", plain(geometry.reserve * 100), said)
    cell = flash.word("Flash_Technology", {name: name for name in _TYPES})
    for key, name in (("read_us", "Page_Read_Latency_"), ("program_us", "Page_Program_Latency_")):
        names = [name + page_type for page_type in _TYPES[cell]]
        times = [plain(flash.number(each) / 1000) for each in names]
        draft.set(
            f"timing.{key}", times[0] if len(times) == 1 else f"[{', '.join(times)}]", flash.said(*names)
        )
        for page_type in _TYPES["QLC"]:
            flash.text(name + page_type, "")
    draft.set(
        "timing.erase_us",
        plain(flash.number("Block_Erase_Latency") / 1000),
        flash.said("Block_Erase_Latency"),
    )
    _set_channel(draft, ssd)
    draft.set("nand.backend", '"modern"', "the nearest")
    draft.set("nand.cell", f'"{cell.lower()}"', flash.said("Flash_Technology"))
    return geometry


def _set_channel(draft: Draft, ssd: Fields) -> None:
    """Set the transfer time of a byte. As in MQSim, a transfer takes a whole number of nanoseconds."""
    rate, width = ssd.number("Channel_Transfer_Rate"), ssd.number("Flash_Channel_Width", "1")
    if not rate * width:
        raise ssd.wrong("Channel_Transfer_Rate", "a channel without a rate carries nothing")
    said = ssd.said("Channel_Transfer_Rate", "Flash_Channel_Width")
    exact, truncated = 1000 / (rate * width), int(1000 / rate) / width
    if plain(exact) != plain(truncated):
        said += f": MQSim truncates to whole ns; {plain(exact)} is right"
    draft.set("timing.transfer_ns_per_byte", plain(truncated), said)


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


def _set_nand(draft: Draft, ssd: Fields, flash: Fields, cached_map: bool) -> None:
    copy_back, preemptible = ssd.flag("Use_Copyback_for_GC"), ssd.flag("Preemptible_GC_Enabled")
    draft.set("nand.copy_back", str(copy_back).lower(), ssd.said("Use_Copyback_for_GC"))
    draft.set(
        "nand.read_priority",
        str(preemptible).lower(),
        (ssd.said("Preemptible_GC_Enabled") or "MQSim's default")
        + (
            ""
            if preemptible
            else ": reads wait for all of a collection, as in MQSim; firmware serves them first"
        ),
    )
    support = {"NONE": False, "PROGRAM": True, "PROGRAM_ERASE": True, "ERASE": True}
    suspends = flash.word("CMD_Suspension_Support", support, "NONE")
    names = ("Suspend_Program_Time", "Suspend_Erase_Time")
    cost = max(flash.number(name, "0") for name in names)
    if suspends and (cached_map or not preemptible):
        why = (
            "ftl.kind is dftl"
            if cached_map
            else "nand.read_priority is false: reads that wait in line stop nothing"
        )
        draft.leave_out("CMD_Suspension_Support", flash.text("CMD_Suspension_Support"), why)
    if cached_map:
        return
    draft.set("nand.background_gc", "false", "MQSim collects when a block fills")
    draft.set("nand.suspend", str(suspends and preemptible).lower(), flash.said("CMD_Suspension_Support"))
    if suspends and preemptible:
        draft.set("nand.suspend_us", plain(cost / 1000), "the longer of " + flash.said(*names))


def _set_collection(draft: Draft, ssd: Fields, flash: Fields, cached_map: bool) -> None:
    """Set placement, collection and wear levelling. DFTL has its own rules for them."""
    scheme = ssd.text("Plane_Allocation_Scheme", "CWDP")
    if scheme != "CWDP":
        draft.leave_out("Plane_Allocation_Scheme", scheme, "pages go channel first, then way, as with CWDP")
    victim = ssd.text("GC_Block_Selection_Policy", "GREEDY")
    rule, difference = ssd.word("GC_Block_Selection_Policy", _VICTIMS, "GREEDY")
    threshold_name, threshold = _threshold(ssd)
    preemptible = ssd.flag("Preemptible_GC_Enabled")
    static, dynamic = ssd.flag("Static_Wearleveling_Enabled"), ssd.flag("Dynamic_Wearleveling_Enabled")
    cycles = flash.count("Block_PE_Cycles_Limit", "0", least=0)
    if cached_map:
        for fields, name in (
            (ssd, "GC_Block_Selection_Policy"),
            (ssd, threshold_name),
            (ssd, "Dynamic_Wearleveling_Enabled"),
            (ssd, "Static_Wearleveling_Enabled"),
            (flash, "Block_PE_Cycles_Limit"),
        ):
            if fields.has(name):
                why = "dftl collects greedily at 5 % (ftl.low_blocks), without wear levelling"
                draft.leave_out(name, fields.text(name), why)
        return
    draft.set("ftl.placement", '"static"', "MQSim's planes are fixed by the address")
    draft.set("ftl.summary_page", "false", "MQSim writes none")
    draft.set("gc.victim", f'"{rule}"', ssd.said("GC_Block_Selection_Policy") or "MQSim's default")
    if rule == "d-choices":
        blocks = flash.count("Block_No_Per_Plane")
        draft.set(
            "gc.choices", str(max(1, blocks.bit_length() - 1)), "the logarithm of the blocks of a plane"
        )
    if difference:
        draft.leave_out("GC_Block_Selection_Policy", victim, difference)
    draft.set("gc.low_percent", plain(threshold * 100), ssd.said(threshold_name))
    draft.set("gc.preemptible", str(preemptible).lower(), ssd.said("Preemptible_GC_Enabled"))
    levelling = "static" if static else "dynamic" if dynamic else "none"
    said = ssd.said("Static_Wearleveling_Enabled", "Dynamic_Wearleveling_Enabled")
    draft.set("wear.levelling", f'"{levelling}"', said)
    draft.set("wear.rated_erases", str(cycles), flash.said("Block_PE_Cycles_Limit"))
