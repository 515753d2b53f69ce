"""MQSim's `workload.xml` as commands: one per flow (stream of requests), or one for several equal flows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from ..errors import DeviceError
from .draft import Imported, LeftOut, comments, plain
from .fields import Fields
from .mqsim import Initial
from .xml import Node

_SYNTHETIC = "IO_Flow_Parameter_Set_Synthetic"
_TRACE = "IO_Flow_Parameter_Set_Trace_Based"

#: Parameters of a flow that need no counterpart, with the reason.
_KNOWN = {
    "Priority_Class": "queues have classes, `host.arbitration`; requests of a load name none",
    "Channel_IDs": "flows share all channels",
    "Chip_IDs": "flows share all chips",
    "Die_IDs": "flows share all dies",
    "Plane_IDs": "flows share all planes",
    "Variance_Request_Size": "requests have their mean size",
    "Intensity": "not used by MQSim",
}

#: Name of the device in the commands. The user replaces it with the name of an imported device.
_DEVICE = "imported.toml"

#: Parameter of a flow that determines which requests are cached.
_CACHING = "Device_Level_Data_Caching_Mode"

#: Number of requests of a flow that in MQSim ends only after a time (a guess).
_REQUESTS = 100_000


@dataclass(frozen=True)
class _Context:
    """The number of flows in a scenario, the device's initial state if known, and parameters left out.

    If the flows are run together as one load (`_depth_together`), `depth` is the depth of that load.
    """

    flows: int
    initial: Initial | None
    depth: int | None
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, name: str, value: str, why: str) -> None:
        self.left_out.append(LeftOut(name, value[:200], why))


def commands(root: Node, origin: str, initial: Initial | None = None) -> Imported:
    """Return the commands that run the scenarios of a file.

    If `initial` is given, the commands first bring the device into this state.
    """
    left_out: list[LeftOut] = []
    text = comments(
        [
            "Loads of MQSim, imported from its scenarios: a command for each flow.",
            f"{_DEVICE} is what `flashtwin device import ssdconfig.xml -o {_DEVICE}` writes.",
        ]
    )
    scenarios = [node for node in root.children if node.tag == "IO_Scenario"]
    if not scenarios:
        raise DeviceError(f"{origin}:{root.line}: <{root.tag}> has no IO_Scenario")
    for number, scenario in enumerate(scenarios, 1):
        flows = [node for node in scenario.children if node.tag in (_SYNTHETIC, _TRACE)]
        for node in scenario.children:
            if node not in flows:
                raise DeviceError(
                    f"{origin}:{node.line}: found <{node.tag}>; a flow is {_SYNTHETIC} or {_TRACE}"
                )
        text += f"\n# Scenario {number}\n"
        depth = _depth_together(flows, origin)
        if depth is not None:
            text += comments(
                [
                    f"MQSim runs these {len(flows)} flows at the same time. They differ in their depth",
                    "alone, so a closed loop of all their requests is the same load.",
                ]
            )
        elif len(flows) > 1:
            text += comments(
                [
                    f"MQSim runs these {len(flows)} flows at the same time, on a share of the device each;",
                    "the commands run them one after the other, so none waits for another.",
                ]
            )
        for flow in flows if depth is None else flows[:1]:
            fields = Fields(flow, origin)
            context = _Context(len(flows), initial, depth, left_out)
            words = (_synthetic if flow.tag == _SYNTHETIC else _trace)(fields, context)
            words += ["--device", _DEVICE, *_caching(fields, context)]
            text += shlex.join(["flashtwin", "run", *words]) + "\n"
            for node in fields.unused():
                why = _KNOWN.get(node.tag, "unknown to MQSim as published")
                left_out.append(LeftOut(node.tag, node.text[:200], why))
        if depth is None and len(flows) > 1:
            why = "they run one by one here, and at the same time in MQSim"
            left_out.append(LeftOut(f"scenario {number}", f"{len(flows)} flows", why))
    return Imported("load", text, tuple(dict.fromkeys(left_out)))


def _depth_together(flows: Sequence[Node], origin: str) -> int | None:
    """Return the total depth of flows that can run as one load: closed loops that differ only in depth.

    Returns None for other flows.
    """
    if len(flows) < 2:
        return None
    apart = {"Seed", "Average_No_of_Reqs_in_Queue", *_KNOWN}
    loads = [
        {node.tag: node.text for node in flow.children if node.tag not in apart} | {"": flow.tag}
        for flow in flows
    ]
    first = loads[0]
    loops = first[""] == _SYNTHETIC and first.get("Synthetic_Generator_Type", "QUEUE_DEPTH") == "QUEUE_DEPTH"
    same = all(load == first for load in loads)
    return sum(_depth(Fields(flow, origin)) for flow in flows) if loops and same else None


def _depth(fields: Fields) -> int:
    return fields.count("Average_No_of_Reqs_in_Queue", "1", most=65_535)


def _synthetic(fields: Fields, context: _Context) -> list[str]:
    """Return the load and the options of a synthetic flow."""
    uniform = {"RANDOM_UNIFORM": "uniform", "UNIFORM_RANDOM": "uniform"}
    pattern = fields.word(
        "Address_Distribution", {"STREAMING": "sequential", **uniform, "RANDOM_HOTCOLD": "hotcold"}
    )
    hot = fields.number("Percentage_of_Hot_Region", "0", most=100)
    sectors = fields.count("Average_Request_Size", most=1 << 20)
    write = 1 - fields.number("Read_Percentage", most=100) / 100
    keys = [f"write={plain(write)}", f"size={512 * sectors}"]
    if pattern == "hotcold":
        keys += [f"hot_access={plain(1 - hot / 100)}", f"hot_space={plain(hot / 100)}"]
    if fields.word("Request_Size_Distribution", {"FIXED": "", "NORMAL": "normal"}, "FIXED"):
        context.leave_out("Request_Size_Distribution", "NORMAL", "requests have their mean size")
    unit = fields.count("Address_Alignment_Unit", "1", most=1 << 20)
    aligned = fields.flag("Generated_Aligned_Addresses", "true")
    keys.append(f"align={512 * unit if aligned else 512}")
    requests, pacing = _length(fields, context, sectors)
    state, share = _state(fields, context, write * requests * sectors * 512)
    keys += [f"range={plain(share)}%", *pacing.keys, f"requests={requests}"]
    seed = str(fields.count("Seed", "1", least=0))
    size = 512 * sectors
    if context.initial and _cached(fields) and write and size < context.initial.page_bytes:
        # MQSim limits the sectors that are written back at the same time, not the pages.
        depth = context.initial.planes * context.initial.page_bytes // size
        state += ["--set", f"buffer.background_depth={min(depth, 65_535)}"]
    return ["--workload", f"{pattern}:{','.join(keys)}", *pacing.options, "--seed", seed, *state]


@dataclass(frozen=True)
class _Pacing:
    """The pacing of a flow, as keys of a load and as options of a run."""

    keys: list[str]
    options: list[str]


def _length(fields: Fields, context: _Context, sectors: int) -> tuple[int, _Pacing]:
    """Return the number of requests of a synthetic flow, and their pacing."""
    requests = fields.count("Total_Requests_To_Generate", "0", least=0)
    requests *= 1 if context.depth is None else context.flows
    stop = fields.number("Stop_Time", "0", most=10**18)
    own = _depth(fields)
    depth = own if context.depth is None else context.depth
    bandwidth = fields.number("Bandwidth", "0", most=10**15)
    pacing = _Pacing([], ["--queue-depth", str(depth)])
    if fields.word("Synthetic_Generator_Type", {"QUEUE_DEPTH": False, "BANDWIDTH": True}, "QUEUE_DEPTH"):
        rate = bandwidth / (512 * sectors)
        if not rate:
            raise fields.wrong("Bandwidth", "a flow of this type needs a bandwidth above 0")
        pacing = _Pacing([f"rate={plain(rate)}/s"], [])
        requests = requests or (max(1, int(rate * stop / Decimal(10**9))) if stop else 0)
    if not requests:
        requests = _REQUESTS
        context.leave_out(
            "Stop_Time",
            plain(stop),
            f"a run ends after a number of requests: `requests={requests}` is a guess",
        )
    return requests, pacing


def _state(fields: Fields, context: _Context, written_bytes: Decimal) -> tuple[list[str], Decimal]:
    """Return the options for the initial state, and the flow's range in percent of the exported capacity.

    MQSim fills only a part of the device. Here, the device is full, but has a reserve that is larger by the
    unwritten part.
    """
    initial = context.initial
    share = fields.number("Working_Set_Percentage", "100", most=100)
    if context.depth is None:
        share /= context.flows
    occupied = fields.number("Initial_Occupancy_Percentage", "0", most=100)
    if initial is None:
        if occupied:
            why = "`--ssd ssdconfig.xml` gives the commands that start from it; these fill the whole device"
            context.leave_out("Initial_Occupancy_Percentage", plain(occupied), why)
        return [], share
    if not initial.preconditioned:
        return ["--precondition", "sequential"], share
    if not occupied:
        return [], share
    reserve = 100 - occupied * (1 - initial.reserve)
    short = written_bytes / initial.page_bytes <= initial.free_pages
    if short:
        why = f"MQSim writes {initial.free_pages} pages before its first collection, more than this flow"
        context.leave_out("Initial_Occupancy_Percentage", plain(occupied), why)
    how = "sequential" if short else "steady"
    options = ["--precondition", how, "--set", f"geometry.reserve_percent={plain(reserve)}"]
    return options, min(Decimal(100), share / occupied * 100)


def _cached(fields: Fields) -> bool:
    """Whether the writes of a flow are cached."""
    modes = {"WRITE_CACHE": True, "WRITE_READ_CACHE": True, "READ_CACHE": False, "TURNED_OFF": False}
    return fields.word(_CACHING, modes, "WRITE_CACHE")


def _caching(fields: Fields, context: _Context) -> list[str]:
    """Return the options for the caching mode of a flow."""
    cached = _cached(fields)
    if fields.text(_CACHING, "").upper() == "READ_CACHE":
        context.leave_out(_CACHING, "READ_CACHE", "writes do not pass a cache of reads by here: no buffer")
    return [] if cached else ["--set", "buffer=none", "--set", "ftl.partial=round"]


def _trace(fields: Fields, context: _Context) -> list[str]:
    """Return the trace and the options of a command, for a flow that replays a trace."""
    path = fields.text("File_Path").replace("\\", "/")
    unit = fields.word(
        "Time_Unit", {"PICOSECOND": "ps", "NANOSECOND": "ns", "MICROSECOND": "us"}, "NANOSECOND"
    )
    executed = fields.text("Percentage_To_Be_Executed", "100")
    if executed != "100":
        context.leave_out("Percentage_To_Be_Executed", executed, "`--requests-max` ends a replay")
    replays = fields.count("Relay_Count", "1", most=10**9)
    path = f"./{path}" if path.startswith("-") else path
    # MQSim ignores the device numbers in a trace. It wraps addresses beyond the device.
    words = [path, "--format", "mqsim", "--volumes", "overlay", "--beyond", "wrap"]
    if replays > 1:
        words += ["--repeat", str(replays)]
    state, _ = _state(fields, context, Decimal(0))
    return [*words, *([] if unit == "ns" else ["--time-unit", unit]), *state]
