"""Differences between a generated load and a trace: each figure is compared with that of a small trace."""

import json

import pytest

from flashtwin import FlashtwinError
from flashtwin._support.stand_in import against

#: 2000 writes of one page, one per millisecond, to 500 pages in turn. A buffer of 1 MiB holds 256 of the
#: pages.
LINES = [f"{i * 1000},W,{i % 500 * 4096},4096" for i in range(2000)]
LOAD = "sequential:range=2000k,write=1,size=4k,interval=1ms,arrival=constant"


@pytest.fixture
def laps(tmp_path):
    path = tmp_path / "laps.csv"
    path.write_text("\n".join(["time_us,op,offset_bytes,size_bytes", *LINES]) + "\n")
    return path


def test_a_load_that_is_the_trace_has_its_figures(laps):
    rows = against(laps, LOAD)
    assert [(trace, load) for _, trace, load in rows if trace != load] == []
    known = {name: trace for name, trace, _ in rows}
    assert known["writes"] == "100.00 %"
    assert known["footprint"] == "1.953 MiB"
    assert known["bytes accessed per byte of footprint"] == "4.000"
    # LRU evicts each page just before its next access. A buffer for all pages misses each page only once.
    assert known["hit ratio of LRU with 1 MiB"] == "0.00 %"
    assert known["hit ratio of LRU with 32 MiB"] == "75.00 %"


def test_a_load_of_another_kind_differs_where_it_should(laps):
    other = "uniform:range=1M,write=0.5,rate=2k/s"
    rows = {name: (trace, load) for name, trace, load in against(laps, other)}
    trace, load = map(float, rows["requests per second"])
    assert 1.9 < load / trace < 2.1
    assert rows["variation of gaps"][0] == "0"
    assert 0.9 < float(rows["variation of gaps"][1]) < 1.1
    assert rows["footprint"] == ("1.953 MiB", "1 MiB")
    assert rows["mean size"] == ("4 KiB", "4 KiB")
    assert rows["writes"][0] != rows["writes"][1]


def test_the_command(laps, tmp_path, cli):
    found = json.loads(cli("trace", "info", laps, "--against", LOAD, "--json").stdout)
    assert [row["figure"] for row in found] == [name for name, _, _ in against(laps, LOAD)]
    shown = cli("trace", "info", laps, "--against", LOAD).stdout
    assert "hit ratio of LRU with 32 MiB" in shown
    wrong = cli("trace", "info", laps, "--against", "unifrom")
    assert wrong.returncode != 0
    assert "unknown workload" in wrong.stderr


def test_a_wrong_load_is_refused(laps):
    with pytest.raises(FlashtwinError):
        against(laps, "zipf:theta=")
