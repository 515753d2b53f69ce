"""DiskSim's SSD extension (`ssdmodel_ssd`) as a device of the back end `msr`, which reproduces it exactly."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from ..errors import DeviceError
from .draft import Draft, count, number, plain
from .parv import Block, Value

TYPE = "ssdmodel_ssd"

#: Function that converts the text of a value to TOML. The second argument is the position of the value in the
#: file.
Reader = Callable[[str, str], str]


def _count(text: str, place: str) -> str:
    return str(count(text, place, 1))


def _percent(text: str, place: str) -> str:
    return plain(number(text, place, most=Decimal(100)))


def _scaled(factor: int) -> Reader:
    return lambda text, place: plain(number(text, place) * factor)


def _one_of(words: dict[int, str], others: str = "") -> Reader:
    def read(text: str, place: str) -> str:
        value = count(text, place)
        if value not in words:
            known = " and ".join(map(str, words))
            raise DeviceError(f"{place}: found {value}; modelled are {known}{others}")
        return words[value]

    return read


_FLAG = _one_of({0: "false", 1: "true"})
_MS_TO_US, _MS_TO_NS = _scaled(1000), _scaled(1_000_000)

#: Parameters of the device, each with its key in a device file and the function that converts the value. All
#: of these parameters are required, as in DiskSim.
_KEYS: list[tuple[str, str, Reader]] = [
    ("Flash chip elements", "geometry.chips", _count),
    ("Planes per package", "geometry.planes_per_chip", _count),
    ("Blocks per plane", "geometry.blocks_per_plane", _count),
    ("Pages per block", "geometry.pages_per_block", _count),
    ("Page size", "geometry.page_bytes", lambda text, place: str(512 * count(text, place, 1, 2048))),
    ("Reserve pages percentage", "geometry.reserve_percent", _percent),
    ("Page read latency", "timing.read_us", _MS_TO_US),
    ("Page write latency", "timing.program_us", _MS_TO_US),
    ("Block erase latency", "timing.erase_us", _MS_TO_US),
    ("Chip xfer latency", "timing.transfer_ns_per_byte", _MS_TO_NS),
    ("Command overhead", "link.command_overhead_us", _MS_TO_US),
    ("Number of parallel units", "nand.parallel_units", _count),
    ("Copy back", "nand.copy_back", _FLAG),
    (
        "Plane block mapping",
        "nand.plane_mapping",
        _one_of({1: '"concatenated"', 3: '"striped"'}, "; 2 aborts in DiskSim, too"),
    ),
    (
        "Allocation pool logic",
        "nand.allocation_pool",
        _one_of({1: '"chip"', 2: '"plane"'}, "; 0, gangs, is not"),
    ),
    ("Cleaning in background", "nand.cleaning_in_background", _FLAG),
    ("Element stride pages", "ftl.stride_pages", _count),
    ("Minimum free blocks percentage", "gc.low_percent", _percent),
]

#: Parameters that DiskSim reads, but does not use or uses only for printing.
_WITHOUT_EFFECT = {"Timing model", "Block count", "Print stats", "Gang share", "Elements per gang"}

#: Parameters for which only the given value is modelled.
_FIXED = {
    "Write policy": (2, "1 is rejected by DiskSim, too"),
    "Never disconnect": (1, "the device is held from the transfer to the end of a request only with 1"),
}

#: Parameters with transfer times of the data path, by type of block. Only the slowest one matters.
_BUS = {
    TYPE: ("Bulk sector transfer time",),
    "disksim_bus": ("Read block transfer time", "Write block transfer time"),
    "disksim_ctlr": ("Bulk sector transfer time",),
}

_HEAD = [
    "A device of DiskSim's SSD extension, imported from its parameter file.",
    "DiskSim starts with every page written once in order: `--precondition sequential`.",
]


def device(blocks: list[Block], origin: str) -> Draft:
    """Return the device that a parameter file describes."""
    found = [block for block in blocks if block.type == TYPE]
    if not found:
        types = ", ".join(sorted({block.type for block in blocks})) or "none"
        raise DeviceError(f"{origin}: no block of type {TYPE}; its blocks are of type {types[:200]}")
    ssd = found[0]
    draft = Draft(_HEAD, "imported", "SSD of a DiskSim parameter file")
    _require(ssd, origin)
    for name, key, read in _KEYS:
        value = ssd.values[name]
        draft.set(key, read(value.text, _place(origin, name, value)), f"{name} = {value.text}")
        if key == "geometry.reserve_percent":
            draft.set("geometry.spare_bytes_per_sector", "16", "a constant of DiskSim")
        if key == "link.command_overhead_us":
            _set_bus(draft, blocks, ssd, origin)
            draft.set("nand.backend", '"msr"', "exact")
    draft.set("ftl.summary_page", "true", "as always in DiskSim")
    _set_cleaning(draft, ssd, origin)
    _leave_out(draft, ssd, found[1:], origin)
    _leave_out_around(draft, blocks, origin)
    return draft


def _place(origin: str, name: str, value: Value) -> str:
    return f"{origin}:{value.line}: {name}"


def _require(ssd: Block, origin: str) -> None:
    """Report all missing parameters together, and parameters that contradict each other."""
    wanted = [*(name for name, _, _ in _KEYS), "Cleaning policy"]
    missing = [name for name in wanted if name not in ssd.values]
    if missing:
        raise DeviceError(f"{origin}:{ssd.line}: {TYPE} has no {', '.join(missing)}; DiskSim requires them")
    for name, (only, why) in _FIXED.items():
        value = ssd.values.get(name)
        if value and count(value.text, _place(origin, name, value)) != only:
            place = _place(origin, name, value)
            raise DeviceError(f"{place}: found {value.text}; must be {only}: {why}")
    blocks = ssd.values.get("Blocks per element")
    if blocks:
        planes, in_plane = (
            count(ssd.values[name].text, _place(origin, name, ssd.values[name]))
            for name in ("Planes per package", "Blocks per plane")
        )
        place = _place(origin, "Blocks per element", blocks)
        if count(blocks.text, place) != planes * in_plane:
            raise DeviceError(f"{place}: found {blocks.text}; must be {planes} planes of {in_plane} blocks")


def _set_bus(draft: Draft, blocks: list[Block], ssd: Block, origin: str) -> None:
    """Set the transfer time of a sector between host and device: that of the slowest part of the path."""
    slowest, source = Decimal(0), "no bus in the file"
    for block in blocks:
        for name in _BUS.get(block.type, ()):
            value = block.values.get(name)
            if value is None or (block.type == TYPE and block is not ssd):
                continue
            time = number(value.text, _place(origin, name, value))
            if time >= slowest:
                slowest, source = time, f"{name} = {value.text} of {block.name or block.type}"
    draft.set("link.bus_ns_per_sector", plain(slowest * 1_000_000), f"the slowest: {source}")


def _set_cleaning(draft: Draft, ssd: Block, origin: str) -> None:
    value = ssd.values["Cleaning policy"]
    place = _place(origin, "Cleaning policy", value)
    levelling = _one_of({2: '"none"', 3: '"reference"'}, "; 1 ends in DiskSim, too")(value.text, place)
    draft.set("gc.victim", '"greedy"', f"Cleaning policy = {value.text}")
    draft.set("wear.levelling", levelling, f"Cleaning policy = {value.text}")
    if levelling == '"reference"':
        draft.set("wear.erase_limit", "50", "a constant of DiskSim")
    else:
        draft.leave_out(
            "SSD_MAX_ERASURES", "50", "a constant of DiskSim that ends long runs; set wear.erase_limit"
        )


def _leave_out(draft: Draft, ssd: Block, others: list[Block], origin: str) -> None:
    """List the parameters that have no counterpart. Each is listed once."""
    used = {name for name, _, _ in _KEYS}
    used |= {"Cleaning policy", "Blocks per element", "Bulk sector transfer time", *_FIXED}
    for name, value in ssd.values.items():
        if name in used:
            continue
        if name in _WITHOUT_EFFECT:
            draft.leave_out(name, value.text, "without effect in DiskSim")
        elif name == "Max queue length":
            draft.leave_out(
                name,
                value.text,
                f"the limit of DiskSim's driver; host.queue_depth = {value.text} is the same",
            )
        elif name == "Scheduler":
            draft.leave_out(name, value.text, "requests that wait go in the order of arrival")
        elif name == "Bus transaction latency":
            if number(value.text, _place(origin, name, value)):
                draft.leave_out(
                    name, value.text, "no time for arbitration; add it to link.command_overhead_us"
                )
        else:
            draft.leave_out(name, value.text, "unknown to the SSD extension as published")
    for block in others:
        draft.leave_out(f"{block.type} {block.name}", "a further device", "only the first is imported")


#: Parameters of blocks other than the device that affect a run, by type of block. The text names the option
#: of flashtwin that has the same purpose, or the reason why there is none.
_AROUND = {
    "disksim_logorg": {
        "Distribution scheme": "an array of devices: only one is imported; see docs/arrays.md",
        "Redundancy scheme": "an array of devices: only one is imported; see docs/arrays.md",
        "Stripe unit": "sectors; `array.chunk`",
        "devices": "the members: only one is imported",
    },
    "disksim_iosim": {"I/O Mappings": "trace and device have the same addresses; `--volumes` lays out disks"},
    "disksim_synthio": {
        "Number of I/O requests to generate": "`requests` of a load",
        "Generators": "a generated load: `--workload` with write, seq, local, size and interval",
    },
}


def _leave_out_around(draft: Draft, blocks: list[Block], origin: str) -> None:
    """List parameters of arrays, traces and loads, which the file has in addition to the device."""
    for block in blocks:
        if block.type == "disksim_logorg" and "," not in getattr(block.values.get("devices"), "text", ""):
            continue
        for name, why in _AROUND.get(block.type, {}).items():
            if name in block.values:
                draft.leave_out(f"{block.type}: {name}", block.values[name].text, why)
        scale = block.values.get("I/O Trace Time Scale")
        if scale:
            factor = number(scale.text, _place(origin, "I/O Trace Time Scale", scale), Decimal("1e-6"))
            if factor != 1:
                why = f"arrival times of a trace are multiplied: `--speed {plain(1 / factor)}`"
                draft.leave_out(f"{block.type}: I/O Trace Time Scale", scale.text, why)
