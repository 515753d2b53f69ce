"""Sweeps of runs without time."""

import pytest

import flashtwin

SETUP = {"units": 60, "unit_pages": 32, "logical_pages": 1536, "low": 3, "handles": 2}
LOADS = ["uniform:write=1,size=4k", "zipf:theta=0.9,write=1,size=4k"]
EXPERIMENT = {
    "name": "rules",
    "devices": ["setup"],
    "workloads": LOADS,
    "seeds": [1, 2],
    "set": SETUP,
    "parameters": {"scheme": ["none", "gc"], "victim": ["greedy", "fifo"]},
    "untimed": {"warm": 1, "capacities": 2},
}


def test_cells_are_the_rows_of_placement_waf(tmp_path):
    results = flashtwin.sweep(EXPERIMENT, tmp_path / "a", threads=2)
    rows = results.table.to_pylist()
    assert len(rows) == 16
    assert {row["status"] for row in rows} == {"ok"}
    for row in rows:
        alone = flashtwin.placement_waf(
            row["workload"],
            setup=SETUP,
            schemes=[row["scheme"]],
            victims=[row["victim"]],
            warm=1,
            capacities=2,
            seed=row["seed"],
        )[0]
        assert row["waf"] == alone.waf
        assert row["by_owner_h0_moved_out"] == alone.by_owner()[0]["moved_out"]
        assert row["setup"].startswith("units=60 unit_pages=32")
    again = flashtwin.sweep(EXPERIMENT, tmp_path / "b", threads=1)
    names = ["a", "b"]
    first, second = ((tmp_path / name / "results.parquet").read_bytes() for name in names)
    assert first == second
    assert again.axes["scheme"] == ["none", "gc"]


def test_a_trace_is_a_load(tmp_path):
    trace = tmp_path / "trace.csv"
    lines = [f"{i},W,{i * 7 % 1536 * 4096},4096" for i in range(1536)]
    trace.write_text("time_us,op,offset_bytes,size_bytes\n" + "\n".join(lines) + "\n")
    untimed = {"warm": 0.2, "capacities": 0.5}
    experiment = {**EXPERIMENT, "workloads": [str(trace)], "parameters": {}, "seeds": [1], "untimed": untimed}
    row = flashtwin.sweep(experiment, tmp_path / "a").table.to_pylist()[0]
    assert row["error"] is None
    assert row["waf"] > 1


def test_a_cell_that_fails_is_a_row(tmp_path):
    experiment = {**EXPERIMENT, "parameters": {"scheme": ["none", "sepbit"], "lou": [None, 3]}, "seeds": [1]}
    rows = flashtwin.sweep(experiment, tmp_path / "a").table.to_pylist()
    errors = {(row["scheme"], row["lou"]): row["error"] for row in rows}
    assert errors["none", None] is None
    assert "scheme sepbit" in errors["sepbit", None]
    assert "lou: no such word" in errors["none", 3]


def test_a_cell_that_does_not_fit_into_memory_is_a_failed_row(tmp_path):
    huge = {"units": 1000, "unit_pages": 4_000_000, "logical_pages": 3_600_000_000, "low": 3}
    experiment = {**EXPERIMENT, "set": huge, "parameters": {}, "seeds": [1]}
    rows = flashtwin.sweep(experiment, tmp_path / "a").table.to_pylist()
    assert all("memory" in row["error"] for row in rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": ["lru"]}, "runs without time have none"),
        ({"run": {"warmup": 3}}, "runs without time have none"),
        ({"untimed": {"scal": 3}}, "did you mean scale"),
        ({"untimed": {"scale": 0.5}}, "must be a whole number from 1"),
        ({"untimed": {"warm": -1}}, "must be a number from 0"),
        ({"parameters": {"buffer.capacity": ["1 MiB"]}}, "words of a setup"),
        ({"parameters": {"scheme": ["own.py:Own"]}}, "own.py"),
        ({"devices": ["nvme-tlc2"]}, "nvme-tlc"),
        ({"figures": ["wav"]}, "did you mean waf"),
    ],
)
def test_errors_name_the_key(tmp_path, changes, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.sweep({**EXPERIMENT, **changes}, tmp_path / "a")
