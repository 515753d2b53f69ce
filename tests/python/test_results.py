"""Results of sweeps: intervals, pairs, SQL, and the printed tables."""

import json
import math
import statistics

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin._support.estimates import mean_of, ratio_of, student_t

EXPERIMENT = {
    "devices": ["demo"],
    "policies": ["lru", "gcar-lru"],
    "workloads": [LOAD],
    "seeds": [1, 2, 3],
    "figures": ["all.mean_us", "flash.erases"],
    "set": SMALL,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("results") / "sweep"
    flashtwin.sweep(EXPERIMENT, directory)
    return directory


@pytest.mark.parametrize(
    ("confidence", "freedom", "bound"),
    [
        # Tables of Student's t, two-sided.
        (0.95, 1, 12.7062),
        (0.95, 2, 4.3027),
        (0.95, 3, 3.1824),
        (0.95, 9, 2.2622),
        (0.95, 30, 2.0423),
        (0.99, 4, 4.6041),
        (0.9, 10, 1.8125),
        (0.95, 1000, 1.9623),
    ],
)
def test_student_t_is_that_of_the_tables(confidence, freedom, bound):
    assert student_t(confidence, freedom) == pytest.approx(bound, abs=6e-5)


def test_intervals_are_those_worked_out_by_hand():
    mean = mean_of([9.0, 10.0, 11.0], 0.95)
    assert mean.value == 10
    assert mean.high - 10 == pytest.approx(4.302653 / math.sqrt(3))
    assert 10 - mean.low == pytest.approx(mean.high - 10)
    assert mean_of([7.0], 0.95).low is None
    ratio = ratio_of([(2.0, 1.0), (8.0, 1.0)], 0.95)
    assert ratio.value == pytest.approx(4)
    assert math.log(ratio.high / 4) == pytest.approx(
        12.7062 * math.log(2) * math.sqrt(2) / math.sqrt(2), rel=1e-4
    )
    assert ratio_of([(1.0, 0.0)], 0.95).value is None


def test_pairs_are_made_by_seed(directory):
    found = flashtwin.results(directory)
    cells = found.table.to_pylist()
    values = {(row["policy"], row["seed"]): row["all_mean_us"] for row in cells}
    rows = found.statistics().to_pylist()
    row = next(row for row in rows if (row["policy"], row["figure"]) == ("gcar-lru", "all_mean_us"))
    pairs = [(values["gcar-lru", seed], values["lru", seed]) for seed in (1, 2, 3)]
    assert row["seeds"] == 3
    assert row["mean"] == pytest.approx(statistics.fmean(a for a, _ in pairs))
    assert row["ratio"] == pytest.approx(statistics.geometric_mean([a / b for a, b in pairs]))
    differences = [a - b for a, b in pairs]
    assert row["difference"] == pytest.approx(statistics.fmean(differences))
    half = student_t(0.95, 2) * statistics.stdev(differences) / math.sqrt(3)
    assert row["difference_high"] - row["difference"] == pytest.approx(half)
    base = next(row for row in rows if (row["policy"], row["figure"]) == ("lru", "all_mean_us"))
    assert base["ratio"] == 1
    assert base["difference"] == 0


def test_a_failed_seed_is_left_out_of_its_pairs(tmp_path, monkeypatch):
    from flashtwin._sweep import engine

    run_cell = engine.run_cell

    def fails(job, *rest):
        if job.identity["label"] == "gcar-lru" and job.identity["seed"] == 2:
            raise flashtwin.FlashtwinError("the cell fails")
        return run_cell(job, *rest)

    monkeypatch.setattr(engine, "run_cell", fails)
    found = flashtwin.sweep(EXPERIMENT, tmp_path / "out")
    rows = found.statistics(["all_mean_us"]).to_pylist()
    assert [row["seeds"] for row in rows] == [3, 2]
    values = {(row["policy"], row["seed"]): row["all_mean_us"] for row in found.table.to_pylist()}
    ratios = [values["gcar-lru", seed] / values["lru", seed] for seed in (1, 3)]
    assert rows[1]["ratio"] == pytest.approx(statistics.geometric_mean(ratios))
    assert "failed: 1 of 6 cells: the cell fails" in repr(found)


def test_sql_sees_cells_and_statistics(directory, cli):
    sql = "select policy, avg(all_mean_us) as mean from cells group by policy order by policy"
    as_json = cli("results", "query", directory, sql, "--json")
    rows = json.loads(as_json.stdout)
    assert [row["policy"] for row in rows] == ["gcar-lru", "lru"]
    as_csv = cli("results", "query", directory, sql, "--csv").stdout.splitlines()
    assert as_csv[0] == "policy,mean"
    assert float(as_csv[1].split(",")[1]) == rows[0]["mean"]
    count = cli("results", "query", directory, "select count(*) as n from statistics", "--csv").stdout
    assert count == "n\n4\n"
    wrong = cli("results", "query", directory, "select nothing from cells")
    assert wrong.returncode == 2
    assert "the tables are cells and statistics" in wrong.stderr


def test_unknown_columns_suggest_the_nearest(directory, cli):
    wrong = cli("results", "query", directory, "select all_p99 from cells").stderr
    assert "Candidate bindings" in wrong
    assert "all_p99_us" in wrong
    wrong = cli("plot", "bars", directory, "--figure", "all.p99", "-o", directory / "x.png").stderr
    assert "all_p99: no column of numbers; did you mean all_p99_us" in wrong


def test_sizes_have_a_column_of_bytes(tmp_path):
    sizes = {"buffer.capacity": ["1 MiB", "16 MiB", "4 MiB"]}
    experiment = {"devices": ["demo"], "policies": ["lru"], "workloads": ["uniform:write=1,requests=10"]}
    found = flashtwin.sweep({**experiment, "parameters": sizes}, tmp_path / "s", threads=1).table
    at = found.column_names.index("set_buffer_capacity")
    assert found.column_names[at + 1] == "set_buffer_capacity_bytes"
    assert found["set_buffer_capacity_bytes"].to_pylist() == [2**20, 2**24, 2**22]


def test_show_prints_the_statistics(directory, cli):
    shown = cli("results", "show", directory)
    assert shown.returncode == 0, shown.stderr
    assert "ratio to policy lru" in shown.stdout
    rows = json.loads(cli("results", "show", directory, "--json", "--confidence", "0.99").stdout)
    assert len(rows) == 4
    narrow = flashtwin.results(directory).statistics().to_pylist()
    assert rows[0]["mean_high"] > narrow[0]["mean_high"]
    for arguments, part in (
        (("--figures", "nothing"), "no column of numbers"),
        (("--confidence", "2"), "between 0 and 1"),
    ):
        result = cli("results", "show", directory, *arguments)
        assert result.returncode == 2
        assert part in result.stderr


def test_a_directory_without_results_is_reported(tmp_path, cli):
    result = cli("results", "show", tmp_path)
    assert result.returncode == 2
    assert "give the directory of a sweep" in result.stderr
    (tmp_path / "results.parquet").write_bytes(b"PAR1")
    assert "not written by flashtwin sweep" in cli("results", "show", tmp_path).stderr
