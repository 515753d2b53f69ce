"""A trace beside a generated load that stands in for it."""

import json

from flashtwin.stand_in import against


def trace(tmp_path):
    """100 writes and 100 reads of one page each, a millisecond apart, going twice over 100 pages."""
    path = tmp_path / "t.csv"
    rows = [f"{1000 * i},{'WR'[i % 2]},{4096 * (i % 100)},4096" for i in range(200)]
    path.write_text("\n".join(["time_us,op,offset_bytes,size_bytes", *rows]) + "\n")
    return path


def test_figures_of_both_are_those_that_are_known(tmp_path):
    rows = {name: values for name, *values in against(trace(tmp_path), "uniform:write=1,size=8k,rate=100/s")}
    assert rows["writes"] == ["50.00 %", "100.00 %"]
    assert rows["mean size"] == ["4 KiB", "8 KiB"]
    assert rows["footprint"][0] == "400 KiB"
    assert rows["bytes accessed per byte of footprint"][0] == "2.000"
    assert float(rows["requests per second"][0]) == 1000
    assert rows["hit ratio of LRU with 1 MiB"][0] == "50.00 %"


def test_the_command_prints_the_same(tmp_path, cli):
    path, load = trace(tmp_path), "uniform:rate=100/s"
    found = json.loads(cli("trace", "info", str(path), "--against", load, "--json").stdout)
    assert [tuple(row.values()) for row in found] == against(path, load)
    assert "variation of gaps" in cli("trace", "info", str(path), "--against", load).stdout
    wrong = cli("trace", "info", str(path), "--against", "nosuch")
    assert wrong.returncode == 2 and "nosuch" in wrong.stderr
