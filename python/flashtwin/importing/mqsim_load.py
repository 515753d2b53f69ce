"""MQSim's `workload.xml` as commands of flashtwin: one for each flow of each scenario."""

from __future__ import annotations

import shlex
from decimal import Decimal

from ..errors import DeviceError
from .draft import Imported, LeftOut, comments, plain
from .fields import Fields
from .xml import Node

_SYNTHETIC = "IO_Flow_Parameter_Set_Synthetic"
_TRACE = "IO_Flow_Parameter_Set_Trace_Based"

#: Parameters of a flow that need no counterpart, and why.
_KNOWN = {
    "Priority_Class": "queues have classes, `host.arbitration`; requests of a load name none",
    "Device_Level_Data_Caching_Mode": "the buffer serves all; `--set buffer=none` runs without",
    "Initial_Occupancy_Percentage": "`--precondition` writes the whole device",
    "Channel_IDs": "flows share all channels",
    "Chip_IDs": "flows share all chips",
    "Die_IDs": "flows share all dies",
    "Plane_IDs": "flows share all planes",
    "Variance_Request_Size": "requests have their mean size",
    "Intensity": "not used by MQSim",
}

#: Device of the commands, until an imported one takes its place.
_DEVICE = "imported.toml"


def commands(root: Node, origin: str) -> Imported:
    """The commands that run a file of scenarios."""
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
        for flow in flows:
            fields = Fields(flow, origin)
            words = _synthetic(fields, left_out) if flow.tag == _SYNTHETIC else _trace(fields, left_out)
            text += shlex.join(["flashtwin", "run", *words, "--device", _DEVICE]) + "\n"
            for node in fields.unused():
                why = _KNOWN.get(node.tag, "unknown to MQSim as published")
                left_out.append(LeftOut(node.tag, node.text[:200], why))
        if len(flows) > 1:
            why = "they run one by one here, and at the same time in MQSim"
            left_out.append(LeftOut(f"scenario {number}", f"{len(flows)} flows", why))
    return Imported("load", text, tuple(dict.fromkeys(left_out)))


def _synthetic(fields: Fields, left_out: list[LeftOut]) -> list[str]:
    """Load and options of a synthetic flow."""
    pattern = fields.word(
        "Address_Distribution",
        {"STREAMING": "sequential", "RANDOM_UNIFORM": "uniform", "RANDOM_HOTCOLD": "hotcold"},
    )
    hot = fields.number("Percentage_of_Hot_Region", "0", most=100)
    sectors = fields.count("Average_Request_Size", most=1 << 20)
    keys = [f"write={plain(1 - fields.number('Read_Percentage', most=100) / 100)}", f"size={512 * sectors}"]
    if pattern == "hotcold":
        keys += [f"hot_access={plain(1 - hot / 100)}", f"hot_space={plain(hot / 100)}"]
    if fields.word("Request_Size_Distribution", {"FIXED": "", "NORMAL": "normal"}, "FIXED"):
        left_out.append(LeftOut("Request_Size_Distribution", "NORMAL", "requests have their mean size"))
    unit = fields.count("Address_Alignment_Unit", "1", most=1 << 20)
    aligned = fields.flag("Generated_Aligned_Addresses", "true")
    keys.append(f"align={512 * unit if aligned else 512}")
    keys.append(f"range={plain(fields.number('Working_Set_Percentage', '100', most=100))}%")
    requests = fields.count("Total_Requests_To_Generate", "0", least=0)
    stop = fields.number("Stop_Time", "0", most=10**18)
    depth = fields.count("Average_No_of_Reqs_in_Queue", "1", most=65_535)
    bandwidth = fields.number("Bandwidth", "0", most=10**15)
    options = ["--queue-depth", str(depth)]
    if fields.word("Synthetic_Generator_Type", {"QUEUE_DEPTH": False, "BANDWIDTH": True}, "QUEUE_DEPTH"):
        rate = bandwidth / (512 * sectors)
        if not rate:
            raise fields.wrong("Bandwidth", "a flow of this type needs a bandwidth above 0")
        keys.append(f"rate={plain(rate)}/s")
        options = []
        if not requests:
            requests = max(1, int(rate * stop / Decimal(10**9)))
    if requests:
        keys.append(f"requests={requests}")
    elif stop:
        left_out.append(
            LeftOut("Stop_Time", f"{stop}", "a run ends after a number of requests: add `requests=`")
        )
    options += ["--seed", str(fields.count("Seed", "1", least=0))]
    return ["--workload", f"{pattern}:{','.join(keys)}", *options]


def _trace(fields: Fields, left_out: list[LeftOut]) -> list[str]:
    """Trace and options of a flow that replays one."""
    path = fields.text("File_Path")
    unit = fields.word(
        "Time_Unit", {"PICOSECOND": "ps", "NANOSECOND": "ns", "MICROSECOND": "us"}, "NANOSECOND"
    )
    for name, usual, why in (
        ("Percentage_To_Be_Executed", "100", "`--requests-max` ends a replay"),
        ("Relay_Count", "1", "a trace is replayed once"),
    ):
        found = fields.text(name, usual)
        if found != usual:
            left_out.append(LeftOut(name, found[:80], why))
    path = f"./{path}" if path.startswith("-") else path
    # MQSim ignores the device numbers of a trace.
    words = [path, "--format", "mqsim", "--volumes", "overlay"]
    return words if unit == "ns" else [*words, "--time-unit", unit]
