"""Parameter files of other simulators: devices and loads that they come to, and refusals of bad ones."""

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

#: Names of a case's parameters in DiskSim.
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
    """A parameter file of DiskSim with a case's parameters."""
    lines = [f"   {NAMES[key]} = {value}" for key, value in parameters.items() if key != "name"]
    return "ssdmodel_ssd SSD {\n" + ",\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("case", CASES)
def test_an_imported_device_reproduces_the_reference(case, tmp_path):
    """Completions in the log of DiskSim, which has nanoseconds, are those of the imported device."""
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
    assert "chips = 8  # dies: Flash_Channel_Count = 4, Chip_No_Per_Channel = 2, Die_No_Per_Chip = 1" in text
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
    for command in commands[:2]:
        words = [str(device) if word == "imported.toml" else word for word in shlex.split(command)]
        result = cli(*words[1:], "--json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["all"]["requests"] == 2000
    assert "traces/tpcc-small.trace --format mqsim --volumes overlay" in commands[2]
    assert any("2 flows" in str(each) for each in imported.left_out)


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
    """The file is refused with its name and a message."""
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
