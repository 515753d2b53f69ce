"""Hit ratios and write-backs as functions of the size of the buffer."""

import csv
import json
import random

import pytest

import flashtwin
from conftest import LOAD
from test_cli import wrong

COUNTS = ("accesses", "hits", "reads", "read_hits", "writes", "write_hits", "evicted_clean", "evicted_dirty")
MINE = '''
import flashtwin


class Mine(flashtwin.Policy):
    """Evicts the page inserted first."""

    def __init__(self):
        self.pages = []

    def insert(self, page, access):
        self.pages.append(page)

    def hit(self, page, access):
        pass

    def evict(self, incoming):
        return self.pages.pop(0)

    def forget(self, page):
        self.pages.remove(page)
'''


def counts(row):
    return [getattr(row, name) for name in COUNTS]


def random_trace(path, seed):
    """Write a trace of reads, writes and trims of one to four pages.

    The pages are few, and trims leave holes among them.
    """
    rng = random.Random(seed)
    pages = rng.choice((12, 40, 150))
    lines = ["time_us,op,offset_bytes,size_bytes"]
    for i in range(1500):
        op = rng.choices("RWT", (40, 50, rng.choice((0, 10))))[0]
        page = min(rng.randrange(pages), rng.randrange(pages))
        lines.append(f"{i},{op},{page * 4096},{rng.randint(1, 4) * 4096}")
    path.write_text("\n".join(lines) + "\n")
    return path


def assert_exact(workload, sizes, **options):
    curve = flashtwin.curve(workload, ["lru"], sizes, **options)
    runs = flashtwin.hits(workload, ["lru"], curve.capacities_pages, **options)
    assert [counts(row) for row in curve] == [counts(row) for row in runs]
    assert all(row.method == "one pass" and row.error is None for row in curve)
    return curve


@pytest.mark.parametrize("seed", range(6))
def test_lru_in_one_pass_equals_runs_at_every_size(tmp_path, seed):
    curve = assert_exact(random_trace(tmp_path / "trace.csv", seed), "all")
    assert curve.capacities_pages == list(range(1, curve.pages + 1))


def test_lru_of_a_shipped_trace_equals_runs():
    curve = assert_exact("example:postgres_pgbench", 12)
    assert len(curve) == 12
    assert curve.capacities_pages[-1] == curve.pages
    assert sorted(curve.capacities_pages) == curve.capacities_pages


def test_other_policies_are_run(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    policies = ["arc", "min", "bplru", f"{tmp_path}/mine.py:Mine"]
    curve = flashtwin.curve(LOAD, ["lru", *policies], [64, 512])
    runs = flashtwin.hits(LOAD, policies, [64, 512])
    assert [counts(row) for row in curve.rows[2:]] == [counts(row) for row in runs]
    assert {row.method for row in curve.rows[2:]} == {"run"}
    by_policy = {row.policy: row for row in curve if row.capacity_pages == 512}
    assert by_policy["lru"].destage_pages == 1
    assert by_policy["bplru"].destage_pages > 1
    assert by_policy["min"].destage_pages is None
    assert 0 < by_policy["lru"].write_backs_per_write < 1


def test_rows_do_not_depend_on_threads():
    one, two = (flashtwin.curve(LOAD, ["arc", "fifo"], 4, threads=n, sample=0.5) for n in (1, 2))
    assert one.rows == two.rows


def test_samples_are_within_their_error():
    load = "zipf:theta=0.8,write=0.5,range=400M,requests=400000"
    sizes = [1000, 3000, 10_000, 30_000]
    exact = flashtwin.curve(load, ["lru", "arc"], sizes)
    sampled = flashtwin.curve(load, ["lru", "arc"], sizes, sample=0.1)
    assert {row.method for row in sampled} == {"sample", "miniature"}
    within = 0
    for found, right in zip(sampled, exact, strict=True):
        assert found.accesses == right.accesses
        difference = abs(found.hit_ratio - right.hit_ratio)
        within += difference <= found.error
        assert difference < 0.03
        assert abs(found.write_hit_ratio - right.write_hit_ratio) < 0.03
        assert abs(found.write_backs_per_write - right.write_backs_per_write) < 0.03
    assert within >= 7
    mean, largest = sampled.measured_error
    assert 0 < mean <= largest < 0.04
    assert abs(sampled.pages / exact.pages - 1) < 0.05


def test_sample_of_all_pages_is_exact():
    whole, exact = (flashtwin.curve(LOAD, ["lru", "arc"], 5, sample=sample) for sample in (1, None))
    assert [counts(row) for row in whole] == [counts(row) for row in exact]
    assert whole.measured_error == (0, 0)


def test_the_command(cli, trace, tmp_path):
    figure, rows = tmp_path / "curve.svg", tmp_path / "curve.csv"
    arguments = ("policy", "curve", trace, "--policies", "lru,min", "--sizes", "256KiB,1MiB")
    table = cli(*arguments, "--figure", figure, "--csv", rows)
    assert table.returncode == 0, table.stderr
    assert "256 KiB" in table.stdout
    assert "different pages" in table.stdout
    assert figure.read_text().lstrip().startswith("<?xml")
    with rows.open() as file:
        read = list(csv.DictReader(file))
    assert [(row["policy"], row["capacity_pages"]) for row in read] == [
        ("lru", "64"), ("lru", "256"), ("min", "64"), ("min", "256"),
    ]  # fmt: skip
    found = json.loads(cli(*arguments, "--json").stdout)
    assert [row["hits"] for row in found["rows"]] == [int(row["hits"]) for row in read]
    sampled = cli("policy", "curve", trace, "--sample", "0.2", "--sizes", "4")
    assert "+-" in sampled.stdout
    assert "measured against the exact curve" in sampled.stdout
    whole = cli("policy", "curve", trace, "--sizes", "all", "--csv", rows)
    assert whole.returncode == 0, whole.stderr
    assert len(rows.read_text().splitlines()) > 1000


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ["either a trace file or --workload"]),
        (("--workload", LOAD, "--sizes", "0"), ["sizes: 0", "from 1 to 1000"]),
        (("--workload", LOAD, "--sizes", "1MiX"), ["--sizes 1MiX"]),
        (("--workload", LOAD, "--sizes", "all"), ["--csv FILE"]),
        (("--workload", LOAD, "--sizes", "all", "--policies", "arc", "--json"), ["arc is run at each size"]),
        (("--workload", LOAD, "--sample", "0"), ["sample: 0", "above 0 and up to 1"]),
        (("--workload", LOAD, "--threads", "0"), ["threads: 0"]),
        (("--workload", "uniform:write=1"), ["endless", "requests=N"]),
    ],
)
def test_wrong_arguments(cli, arguments, parts):
    wrong(cli("policy", "curve", *arguments), *parts)


def test_workload_without_accesses_has_a_curve(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("time_us,op,offset_bytes,size_bytes\n1,F,0,0\n2,T,4096,4096\n")
    for sample in (None, 0.5):
        curve = flashtwin.curve(path, sample=sample)
        assert curve.pages == 0
        assert all(row.hit_ratio == 0 and row.write_hit_ratio is None for row in curve)
