"""Parameter files of other simulators: the imported devices and loads, and rejected files."""

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import flashtwin
from flashtwin._support.inputs import SETTINGS_MAX
from flashtwin.errors import DeviceError
from flashtwin.importing import import_file

DATA = Path(__file__).parents[1] / "data"
FILES = DATA / "importing"
CASES = sorted(path.stem for path in (DATA / "msr").glob("*.json"))

#: DiskSim's names of the parameters of a case.
NAMES = {
    "reserve_percent": "Reserve pages percentage",
    "min_free_percent": "Minimum free blocks percentage",
    "planes_per_element": "Planes per package",
    "blocks_per_plane": "Blocks per plane",
    "plane_block_mapping": "Plane block mapping",
    "copy_back": "Copy back",
    "parallel_units": "Number of parallel units",
    "allocation_pool": "Allocation pool logic",
    "cleaning_in_background": "Cleaning in background",
    "pages_per_block": "Pages per block",
    "sectors_per_page": "Page size",
    "element_stride_pages": "Element stride pages",
    "transfer_ms_per_byte": "Chip xfer latency",
    "read_ms": "Page read latency",
    "program_ms": "Page write latency",
    "erase_ms": "Block erase latency",
    "elements": "Flash chip elements",
    "command_overhead_ms": "Command overhead",
    "max_queue_length": "Max queue length",
    "cleaning_policy": "Cleaning policy",
    "bus_ms_per_sector": "Bulk sector transfer time",
}


def parv(parameters):
    """Return a parameter file of DiskSim with the parameters of a case."""
    lines = [f"   {NAMES[key]} = {value}" for key, value in parameters.items() if key != "name"]
    return "ssdmodel_ssd SSD {\n" + ",\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("case", CASES)
def test_an_imported_device_reproduces_the_reference(case, tmp_path):
    """The completions in DiskSim's log, which are in nanoseconds, equal those of the imported device."""
    file, device = tmp_path / "ssd.parv", tmp_path / "ssd.toml"
    file.write_text(parv(json.loads((DATA / "msr" / f"{case}.json").read_text())))
    device.write_text(import_file(file).text)
    columns = "time=arrival_ms:ms,offset=sector:sectors,size=sectors:sectors,op=op"
    trace = DATA / "msr" / f"{case}.trace.csv.zst"
    options = flashtwin.TraceOptions(columns=columns)
    log = flashtwin.run(trace, device, trace_options=options, precondition="sequential", log=True).requests
    done_ns = sorted(p / 1000 for p in pc.add(log["arrival_ps"], log["response_ps"]).to_pylist())
    with pa.input_stream(DATA / "msr" / f"{case}.events.txt.zst") as events:
        text = events.read().decode()
    reference_ns = sorted(float(ms) * 1e6 for ms in re.findall(r"^hostdone t=(\S+)", text, re.MULTILINE))
    assert len(reference_ns) >= 5
    for ours, theirs in zip(done_ns, reference_ns, strict=False):
        assert abs(ours - theirs) <= 5


def test_the_cases_are_those_of_the_reference():
    assert len(CASES) == 11


@pytest.mark.parametrize("name", ["ssd.parv", "ssdconfig.xml"])
def test_a_file_becomes_a_device_that_runs(cli, tmp_path, name):
    device = tmp_path / "device.toml"
    result = cli("device", "import", FILES / name, "-o", device)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert cli("device", "check", device).returncode == 0
    summary = flashtwin.run("uniform:write=0.5,requests=2000", device).summary
    assert summary["all"]["requests"] == 2000


def test_each_key_has_the_parameter_that_it_comes_from():
    text = import_file(FILES / "ssd.parv").text
    assert "transfer_ns_per_byte = 25  # Chip xfer latency = 0.000025" in text
    assert "bus_ns_per_sector = 238.4  # the slowest: Write block transfer time = 0.0002384 of BUS0" in text
    assert "--precondition sequential" in text
    text = import_file(FILES / "ssdconfig.xml").text
    assert "chips = 8  # Flash_Channel_Count = 4, Chip_No_Per_Channel = 2\n" in text
    assert "choices = 7  # the logarithm" in text
    assert "program_us = [500, 900]" in text


def test_every_parameter_is_used_or_named(tmp_path):
    for name, further in [
        ("ssd.parv", ("   Print stats = 1,", "   Print stats = 1,\n   Flux capacitance = 88,")),
        ("ssdconfig.xml", ("<Seed>11</Seed>", "<Seed>11</Seed><Flux_Capacitance>88</Flux_Capacitance>")),
        ("workload.xml", ("<Seed>7</Seed>", "<Seed>7</Seed><Flux_Capacitance>88</Flux_Capacitance>")),
    ]:
        file = tmp_path / name
        head, mark, tail = (FILES / name).read_text().rpartition(further[0])
        assert mark
        file.write_text(head + further[1] + tail)
        left_out = [str(each) for each in import_file(file).left_out]
        assert any(re.match("Flux.capacitance = 88: unknown", each, re.IGNORECASE) for each in left_out)


def test_omitted_parameters_are_listed_on_standard_error(cli):
    result = cli("device", "import", FILES / "ssdconfig.xml")
    assert "without a counterpart: GC_Hard_Threshold = 0.005: " in result.stderr
    assert "# GC_Hard_Threshold = 0.005: " in result.stdout


def test_a_workload_becomes_commands_that_run(cli, tmp_path):
    imported = import_file(FILES / "workload.xml")
    assert imported.kind == "load"
    device = tmp_path / "other.toml"
    device.write_text(import_file(FILES / "ssdconfig.xml").text)
    commands = [line for line in imported.text.splitlines() if line.startswith("flashtwin ")]
    assert len(commands) == 3
    # The trace has device numbers of 16 devices, which MQSim ignores. One request wraps at the end of the
    # device.
    trace = tmp_path / "tpcc-small.trace"
    sectors = [100_000 * i for i in range(15)] + [100_000_000]
    trace.write_text("".join(f"{1000 * i} {i} {at} 16 {i % 2}\n" for i, at in enumerate(sectors)))
    assert "traces/tpcc-small.trace" in commands[2]
    named = {"imported.toml": device, "traces/tpcc-small.trace": trace}
    for command, requests in zip(commands, (2000, 2000, 16), strict=True):
        words = [str(named.get(word, word)) for word in shlex.split(command)]
        result = cli(*words[1:], "--json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["all"]["requests"] == requests
    assert any("2 flows" in str(each) for each in imported.left_out)


def test_scenario_with_several_flows_states_that_they_run_one_after_the_other():
    first, second = import_file(FILES / "workload.xml").text.split("# Scenario 2\n")
    assert "# MQSim runs these 2 flows at the same time" in first
    assert "MQSim runs these" not in second


#: Two flows of MQSim's default scenario.
LIKE_FLOWS = """<MQSim_IO_Scenarios><IO_Scenario>
<IO_Flow_Parameter_Set_Synthetic><Working_Set_Percentage>50</Working_Set_Percentage>
<Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type><Read_Percentage>0</Read_Percentage>
<Address_Distribution>RANDOM_UNIFORM</Address_Distribution><Average_Request_Size>8</Average_Request_Size>
<Address_Alignment_Unit>16</Address_Alignment_Unit><Total_Requests_To_Generate>500</Total_Requests_To_Generate>
<Seed>798</Seed><Average_No_of_Reqs_in_Queue>16</Average_No_of_Reqs_in_Queue></IO_Flow_Parameter_Set_Synthetic>
<IO_Flow_Parameter_Set_Synthetic><Working_Set_Percentage>50</Working_Set_Percentage>
<Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type><Read_Percentage>0</Read_Percentage>
<Address_Distribution>RANDOM_UNIFORM</Address_Distribution><Average_Request_Size>8</Average_Request_Size>
<Address_Alignment_Unit>16</Address_Alignment_Unit><Total_Requests_To_Generate>500</Total_Requests_To_Generate>
<Seed>6533</Seed><Average_No_of_Reqs_in_Queue>2</Average_No_of_Reqs_in_Queue></IO_Flow_Parameter_Set_Synthetic>
</IO_Scenario></MQSim_IO_Scenarios>"""


def test_like_flows_of_mqsim_run_at_the_same_time(tmp_path):
    file = tmp_path / "two.xml"
    file.write_text(LIKE_FLOWS)
    together = import_file(file)
    (command,) = (line for line in together.text.splitlines() if line.startswith("flashtwin"))
    assert "range=50%,requests=1000 --queue-depth 18 --seed 798" in command
    assert not any("flows" in str(each) for each in together.left_out)
    for a, b in [
        ("Percentage>0<", "Percentage>30<"),
        ("Size>8<", "Size>16<"),
        ("Set_Percentage>50<", "Set_Percentage>40<"),
        (">QUEUE_DEPTH<", ">BANDWIDTH</Synthetic_Generator_Type><Bandwidth>8192000</Bandwidth><X>1<"),
    ]:
        file.write_text(LIKE_FLOWS.replace(a, b, 1).replace("<X>1</Synthetic_Generator_Type>", ""))
        lines = [line for line in import_file(file).text.splitlines() if line.startswith("flashtwin")]
        assert len(lines) == 2, (a, b)
        assert "range=25%" in lines[1]


def test_cached_writes_of_mqsim_take_the_time_that_they_take_there(tmp_path):
    """Four single writes of 8 KiB take as long as in MQSim: 43 us with a burst length of 1, 7 us with 8."""
    trace = tmp_path / "four.trace"
    trace.write_text("".join(f"{1 + 2 * i}000000 0 {16_000 * i} 16 0\n" for i in range(4)))
    for burst, mean_us in ((1, 43), (8, 7)):
        device = tmp_path / f"{burst}.toml"
        device.write_text(
            changed(
                tmp_path,
                "ssdconfig.xml",
                ("Data_Rate>800", "Data_Rate>100"),
                ("Data_Burst_Size>4<", f"Data_Burst_Size>{burst}<"),
            ).text
        )
        summary = flashtwin.run(trace, device, precondition="sequential").summary
        assert abs(summary["all"]["mean_us"] - mean_us) < 0.5


#: A drive of FEMU with its default thresholds, as in the table of docs/migration.md, but with fewer dies and
#: blocks.
FEMU = """
name = "femu"
[geometry]
chips = 8
channels = 2
planes_per_chip = 1
blocks_per_plane = 128
pages_per_block = 64
page_bytes = 4096
reserve_percent = 9.1
[timing]
read_us = 40
program_us = 200
erase_us = 2000
transfer_ns_per_byte = 0
[nand]
backend = "modern"
copy_back = false
[ftl]
placement = "dynamic"
summary_page = false
[gc]
low_percent = 5
idle_percent = 25
granularity = "superblock"
"""


def test_drive_of_femu_runs_without_its_idle_threshold(tmp_path):
    """The default threshold of idle collections exceeds the reserve. The error names the threshold."""
    device = tmp_path / "femu.toml"
    device.write_text(FEMU)
    with pytest.raises(DeviceError, match=r"idle_percent[^\n]* below geometry\.reserve_percent"):
        flashtwin.device(device)
    device.write_text(FEMU.replace("idle_percent = 25\n", ""))
    load = "uniform:write=1,requests=4000"
    summary = flashtwin.run(load, device, pacing=flashtwin.ClosedLoop(16)).summary
    assert summary["all"]["requests"] == 4000
    # A die has 128 blocks, 11 of them in reserve. Collection keeps 7 free, so that 4 remain. The closed form
    # gives a write amplification of about 1 / (2 * 4 / 128).
    assert summary["flash"]["gc_write_amplification"] == pytest.approx(16, rel=0.15)


def changed(tmp_path, name, *changes):
    """Import a file after replacing some of its text."""
    text = (FILES / name).read_text()
    for was, becomes in changes:
        assert was in text
        text = text.replace(was, becomes)
    file = tmp_path / name
    file.write_text(text)
    return import_file(file)


def keys_of(tmp_path, *changes):
    """Return the keys and values of the device of a changed configuration of MQSim."""
    text = changed(tmp_path, "ssdconfig.xml", *changes).text
    return {key: value.split("  # ")[0] for key, value in re.findall("^(\\w+) = (.*)$", text, re.MULTILINE)}


def test_buffer_of_mqsim_has_its_back_pressure_and_the_time_of_its_memory(tmp_path):
    """One page per plane may be in flight, on 16 planes.

    A page of 8192 bytes takes 1024 cycles of two bursts of 4.
    """
    keys = keys_of(tmp_path)
    assert keys["background_depth"] == "16"
    assert keys["latency_us"] == "0"
    assert keys["write_latency_us"] == "1.306"
    burst_8 = (
        "Data_Burst_Size>4</Data_Cache_DRAM_Data_Burst_Size",
        "Data_Busrt_Size>8</Data_Cache_DRAM_Data_Busrt_Size",
    )
    assert keys_of(tmp_path, burst_8)["write_latency_us"] == "0.666"


def test_mapping_cache_of_mqsim_that_is_too_small_becomes_dftl(tmp_path):
    cached = ("Mapping_Table>true", "Mapping_Table>false")
    assert "cmt_entries" not in keys_of(tmp_path, cached)
    small = keys_of(tmp_path, cached, (">2097152</CMT", ">65536</CMT"))
    # There are 2^18 pages of 16 sectors. An entry takes 7 bytes in the cache, and 5 in the map.
    assert small["cmt_entries"] == str(65536 // 7 // 8)
    assert small["entries_per_translation_page"] == str(8192 // 5)
    assert small["protected_entries"] == "0"
    file = tmp_path / "dftl.toml"
    file.write_text(changed(tmp_path, "ssdconfig.xml", cached, (">2097152</CMT", ">65536</CMT")).text)
    flash = flashtwin.run("uniform:write=1,requests=5000", file, precondition="sequential").summary["flash"]
    assert {each["name"]: each["count"] for each in flash["ftl_counters"]}["map_misses"] > 0


def test_reads_overtake_collections_of_mqsim_only_if_preemptible(tmp_path):
    keys = keys_of(tmp_path)
    assert (keys["read_priority"], keys["suspend"]) == ("true", "true")
    keys = keys_of(tmp_path, ("GC_Enabled>true", "GC_Enabled>false"))
    assert (keys["read_priority"], keys["suspend"]) == ("false", "false")


def test_chips_and_channels_of_mqsim_are_as_it_runs_them(tmp_path):
    """In MQSim, the dies of a chip start together. Therefore the device has a chip per chip, not per die.

    The rate is in whole nanoseconds, without metadata.
    """
    imported = changed(
        tmp_path, "ssdconfig.xml", ("Die_No_Per_Chip>1", "Die_No_Per_Chip>2"), (">400<", ">800<")
    )
    assert "chips = 8  # Flash_Channel_Count = 4" in imported.text
    assert "real dies are independent: chips = 16, planes_per_chip = 2 models those" in imported.text
    assert "planes_per_chip = 4  #" in imported.text
    assert "transfer_ns_per_byte = 1  #" in imported.text
    assert "MQSim truncates to whole ns; 1.25 is right" in imported.text
    assert "spare_bytes_per_sector = " not in imported.text.split("# Without a counterpart")[0]
    assert any(str(each).startswith("Page_Metadat_Capacity = 448") for each in imported.left_out)


def test_qlc_of_mqsims_fork_has_four_page_types(tmp_path):
    times = "".join(
        f"<Page_{kind}_Latency_WSB>{ns}</Page_{kind}_Latency_WSB>"
        for kind, ns in (("Read", 120000), ("Program", 2e6))
    )
    qlc = ("<Flash_Technology>MLC</Flash_Technology>", "<Flash_Technology>QLC</Flash_Technology>" + times)
    keys = keys_of(tmp_path, qlc)
    assert keys["cell"] == '"qlc"'
    assert keys["read_us"] == "[60, 0, 90, 120]"


def test_device_without_preconditioning_names_the_state_that_is_nearest(tmp_path):
    off = changed(tmp_path, "ssdconfig.xml", ("Preconditioning>true", "Preconditioning>false"))
    assert any("--precondition sequential" in str(each) for each in off.left_out)


def commands_of(tmp_path, *changes, ssd=None):
    """Return the commands for a changed workload of MQSim."""
    text = (FILES / "workload.xml").read_text()
    for was, becomes in changes:
        assert was in text
        text = text.replace(was, becomes)
    file = tmp_path / "workload.xml"
    file.write_text(text)
    lines = import_file(file, ssd).text.splitlines()
    return [line for line in lines if line.startswith("flashtwin ")]


def test_working_set_of_mqsim_is_a_share_of_the_flow(tmp_path):
    """Each of two flows uses half of the device. Therefore a working set of 60 % is 30 % of the device."""
    assert "range=30%" in commands_of(tmp_path)[0]


def test_flow_of_mqsim_without_a_cache_runs_without_a_buffer(tmp_path):
    off = commands_of(tmp_path, (">WRITE_CACHE<", ">TURNED_OFF<"))
    assert off[0].endswith("--set buffer=none --set ftl.partial=round")
    assert "buffer=none" not in off[1]


def test_replays_of_mqsim_are_passes(cli, tmp_path):
    again = ("Relay_Count>1<", "Relay_Count>10<")
    command = commands_of(tmp_path, again)[2]
    assert "--repeat" not in commands_of(tmp_path)[2]
    trace = tmp_path / "t.trace"
    trace.write_text("".join(f"{1000 * i} 0 {16 * i} 16 0\n" for i in range(8)))
    words = [word.replace("traces/tpcc-small.trace", str(trace)) for word in shlex.split(command)]
    result = cli(*[word.replace("imported.toml", "demo") for word in words[1:]], "--json")
    assert json.loads(result.stdout)["passes"]["passes"] == 10, result.stderr


def test_flow_of_mqsim_ended_by_time_alone_gets_a_number_of_requests(tmp_path):
    assert "requests=100000" in commands_of(tmp_path, ("Generate>2000<", "Generate>0<"))[0]


def test_commands_for_a_device_of_mqsim_start_at_its_occupancy(tmp_path):
    """MQSim occupies 70 % of the 85 % that the host can access: 59.5 %.

    The working set of 30 % of the device lies within the occupied part.
    """
    commands = commands_of(tmp_path, ssd=FILES / "ssdconfig.xml")
    assert "--precondition sequential --set geometry.reserve_percent=40.5" in commands[0]
    assert "range=42.857142857%" in commands[0]
    assert "background_depth" not in commands[0]
    half = commands_of(tmp_path, ("Request_Size>16<", "Request_Size>8<"), ssd=FILES / "ssdconfig.xml")
    assert "--set buffer.background_depth=32" in half[0]
    many = commands_of(tmp_path, ("Generate>2000<", "Generate>1000000<"), ssd=FILES / "ssdconfig.xml")
    assert "--precondition steady --set geometry.reserve_percent=40.5" in many[0]
    empty = tmp_path / "empty.xml"
    text = (FILES / "ssdconfig.xml").read_text()
    empty.write_text(text.replace("Preconditioning>true", "Preconditioning>false"))
    assert "--precondition sequential --device" in commands_of(tmp_path, ssd=empty)[0]


def test_device_of_a_load_is_only_for_a_load_of_mqsim():
    for name in ("ssd.parv", "ssdconfig.xml"):
        with pytest.raises(DeviceError, match="not a workload of MQSim: remove --ssd"):
            import_file(FILES / name, FILES / "ssdconfig.xml")


#: MQSim's mean response times (us) and requests per second under its default loads (docs/migration.md).
MQSIM = {
    "cached write": (False, "write=1,size=4k", "buffer.background_depth=256", 429, 37_300),
    "cached write, ideal map": (True, "write=1,size=4k", "buffer.background_depth=256", 390, 41_000),
    "read, dies": (
        True,
        "write=0,size=4k",
        "geometry.chips=64 geometry.planes_per_chip=2",
        120,
        133_000,
    ),
    "write without cache": (False, "write=1,size=4k", "buffer=none ftl.partial=round", 1148, 13_900),
    "write without cache, ideal map": (True, "write=1,size=8k,align=8k", "buffer=none", 1000, 16_000),
}


@pytest.mark.parametrize("case", MQSIM)
def test_default_device_of_mqsim_responds_as_in_mqsim(tmp_path, case):
    """The imported default device of MQSim is within 10 % of MQSim's results.

    The device is the `ssdconfig.xml` of the tests, with the values changed that matter for the results.
    """
    ideal, load, settings, mean_us, iops = MQSIM[case]
    changes = [
        (f"<{name}>{was}<", f"<{name}>{becomes}<")
        for name, was, becomes in [
            ("IO_Queue_Depth", 64, 65535),
            ("Queue_Fetch_Size", 128, 512),
            ("Data_Cache_Capacity", 4194304, 268435456),
            ("Data_Cache_DRAM_Data_Rate", 800, 100),
            ("Data_Cache_DRAM_Data_Burst_Size", 4, 1),
            # 75 % of the exported capacity is occupied, as by the commands for its loads.
            ("Overprovisioning_Ratio", 0.15, 1 - 0.75 * 0.93),
            ("Preemptible_GC_Enabled", "true", "false"),
            ("Flash_Channel_Count", 4, 8),
            ("Channel_Transfer_Rate", 400, 333),
            ("Chip_No_Per_Channel", 2, 4),
            ("Page_Read_Latency_LSB", 60000, 75000),
            ("Page_Read_Latency_MSB", 90000, 75000),
            ("Page_Program_Latency_LSB", 500000, 750000),
            ("Page_Program_Latency_MSB", 900000, 750000),
            ("Die_No_Per_Chip", 1, 2),
            ("Page_No_Per_Block", 128, 256),
            # These are an eighth of MQSim's blocks. As with all of them, nothing is collected.
            ("Block_No_Per_Plane", 128, 256),
            *([] if ideal else [("Ideal_Mapping_Table", "true", "false")]),
        ]
    ]
    device = tmp_path / "mqsim.toml"
    device.write_text(changed(tmp_path, "ssdconfig.xml", *changes).text)
    overrides = dict(each.split("=") for each in settings.split())
    result = flashtwin.run(
        f"uniform:{load},range=66.67%,requests=200000",
        device,
        set=overrides,
        precondition="sequential",
        pacing=flashtwin.ClosedLoop(16),
        warmup_requests=40_000,
    )
    assert result.summary["all"]["mean_us"] == pytest.approx(mean_us, rel=0.1)
    assert result.summary["throughput"]["iops"] == pytest.approx(iops, rel=0.1)


def test_arrays_traces_and_loads_around_a_device_of_disksim_are_named(tmp_path):
    around = """
disksim_iosim Sim { I/O Trace Time Scale = 2.0, I/O Mappings = [ disksim_iomap { dev = 0x0 } ] }
disksim_logorg Org { Distribution scheme = Striped, Redundancy scheme = Parity_rotated, devices = [ s0, s1 ] }
disksim_synthio Load { Number of I/O requests to generate = 10, Generators = [ disksim_synthgen { A = 1 } ] }
"""
    file = tmp_path / "x.parv"
    file.write_text((FILES / "ssd.parv").read_text() + around)
    left_out = "\n".join(map(str, import_file(file).left_out))
    assert "I/O Trace Time Scale = 2.0: arrival times of a trace are multiplied: `--speed 0.5`" in left_out
    for name in (
        "iosim: I/O Mappings",
        "logorg: Redundancy scheme = Parity_rotated",
        "logorg: devices",
        "Generators",
    ):
        assert name in left_out
    assert "logorg" not in "".join(map(str, import_file(FILES / "ssd.parv").left_out))


BAD_PARV = [
    ("ssdmodel_ssd SSD {\n Page size = 8,\n", "x.parv:2: the file ends within a block"),
    ("ssdmodel_ssd SSD {\n Page size 8 }\n", "x.parv:2: found '}' after 'Page size 8'"),
    ("ssdmodel_ssd SSD {\n A = 1,\n A = 2\n}", "x.parv:3: 'A' is given twice"),
    ("ssdmodel_ssd SSD {\n A = ,\n}", "x.parv:2: found ',' in place of a value"),
    ("disksim_disk D { A = 1 }", "no block of type ssdmodel_ssd; its blocks are of type disksim_disk"),
    ("", "no block of type ssdmodel_ssd; its blocks are of type none"),
    ("\n\nssdmodel_ssd SSD { }", "x.parv:3: ssdmodel_ssd has no Flash chip elements, Planes per package"),
    ("a b { A = c " + "{ A = c " * 40, "blocks within each other"),
]


@pytest.mark.parametrize(("text", "message"), BAD_PARV)
def test_a_bad_file_of_disksim_is_refused_with_its_line(tmp_path, text, message):
    refuses(tmp_path / "x.parv", text, message)


CHANGED_PARV = [
    ("Page size = 8,", "Page size = 8.5,", "x.parv:47: Page size: found '8.5'; must be a whole number"),
    ("Page size = 8,", "Page size = nan,", "Page size: found 'nan'; must be a number from 1"),
    ("Copy back = 1", "Copy back = 2", "Copy back: found 2; modelled are 0 and 1"),
    ("Plane block mapping = 3", "Plane block mapping = 2", "modelled are 1 and 3; 2 aborts in DiskSim"),
    ("Allocation pool logic = 1", "Allocation pool logic = 0", "modelled are 1 and 2; 0, gangs, is not"),
    ("Write policy = 2", "Write policy = 1", "found 1; must be 2: 1 is rejected by DiskSim"),
    ("Blocks per element = 1024", "Blocks per element = 9", "must be 4 planes of 256 blocks"),
    ("Blocks per plane = 256", "Blocks per plane = 99999999", "must be 4 planes of 99999999 blocks"),
    (
        "Reserve pages percentage = 20",
        "Reserve pages percentage = 1",
        "do not describe a device that can be modelled",
    ),
    ("Page read latency = 0.025", "Page read latency = -1", "must be a number from 0 to"),
    ("Command overhead = 0.02", "Command overhead = 1e999999", "must be a number from 0 to"),
]


@pytest.mark.parametrize(("was", "becomes", "message"), CHANGED_PARV)
def test_a_parameter_out_of_range_is_refused(tmp_path, was, becomes, message):
    text = (FILES / "ssd.parv").read_text()
    assert was in text
    refuses(tmp_path / "x.parv", text.replace(was, becomes), message)


def test_the_wear_aware_cleaning_of_disksim_is_ours(tmp_path):
    file = tmp_path / "x.parv"
    file.write_text((FILES / "ssd.parv").read_text().replace("Cleaning policy = 2", "Cleaning policy = 3"))
    assert 'levelling = "reference"' in import_file(file).text


BAD_XML = [
    ("<a>\n<b>\n</a>", "x.xml:3: not XML: mismatched tag"),
    ("<results/>", "x.xml:1: found <results>; a file of MQSim begins with Execution_Parameter_Set or"),
    ("<Execution_Parameter_Set/>", "has no Flash_Channel_Count, which is needed"),
    ("<MQSim_IO_Scenarios/>", "has no IO_Scenario"),
    (
        "<MQSim_IO_Scenarios><IO_Scenario><Flow/></IO_Scenario></MQSim_IO_Scenarios>",
        "found <Flow>; a flow is IO_Flow_Parameter_Set_Synthetic or",
    ),
    ('<!DOCTYPE a [<!ENTITY b "c">]>\n<a>&b;</a>', "x.xml:1: a document type"),
    ("<a>" * 30, "elements within each other"),
]


@pytest.mark.parametrize(("text", "message"), BAD_XML)
def test_a_bad_file_of_mqsim_is_refused_with_its_line(tmp_path, text, message):
    refuses(tmp_path / "x.xml", text, message)


CHANGED_XML = [
    ("<Page_Capacity>8192<", "<Page_Capacity>8k<", "x.xml:61: Page_Capacity: found '8k'; must be a number"),
    (">RGA<", ">LIFO<", "GC_Block_Selection_Policy: found 'LIFO'; must be one of GREEDY, RGA"),
    (">PAGE_LEVEL<", ">HYBRID<", "Address_Mapping: found 'HYBRID'; must be one of PAGE_LEVEL"),
    (">400</Channel", ">0</Channel", "a channel without a rate"),
    (">0.15<", ">0.01<", "do not describe a device that can be modelled"),
]


@pytest.mark.parametrize(("was", "becomes", "message"), CHANGED_XML)
def test_a_parameter_of_mqsim_out_of_range_is_refused(tmp_path, was, becomes, message):
    text = (FILES / "ssdconfig.xml").read_text()
    assert was in text
    refuses(tmp_path / "x.xml", text.replace(was, becomes), message)


def refuses(file, text, message):
    """Check that the file is rejected with a message that contains its name."""
    file.write_text(text)
    with pytest.raises(DeviceError) as refused:
        import_file(file)
    assert str(refused.value).startswith(str(file))
    assert message in str(refused.value)


def test_other_files_are_refused(cli, tmp_path):
    binary, long = tmp_path / "binary", tmp_path / "long"
    binary.write_bytes(b"\xff\xfe")
    long.write_bytes(b"#" * (SETTINGS_MAX + 1))
    for file, message in [
        (tmp_path / "missing", "cannot read this parameter file: No such file"),
        (tmp_path, "cannot read this parameter file: it is a directory"),
        (binary, "not a text file: byte 0 is not UTF-8"),
        (long, "longer than 4 MiB"),
    ]:
        result = cli("device", "import", file)
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
