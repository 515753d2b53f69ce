"""Intervals of ratios between runs of the same requests."""

import math

import pytest

import flashtwin
from conftest import SMALL
from flashtwin._support.estimates import student_t
from flashtwin._support.noise import ratio_interval
from flashtwin.comparison import rows_of

MEAN = ("all", "mean_us")


def batches(times_us, **more):
    """Return ten batches of 100 writes with the given sums of response times."""
    work = ("media_pages", "programs", "host_programs", "pages_moved", "erases", "gc_us", "span_us")
    empty = {"reads": 0, "read_us": 0.0, "parts_us": {}, "pages": 100, "hits": 0, **dict.fromkeys(work, 0)}
    far = {"p99_us": None, "p999_us": None, "p9999_us": None}
    return [{**empty, **far, "writes": 100, "write_us": us, **more} for us in times_us]


def test_the_interval_is_that_of_the_ratio_of_sums():
    base = batches([100.0] * 10)
    ours = batches([50.0, 70.0] * 5)
    # The mean is 60, and the standard deviation of the ten sums is 10.54. The interval is that of the
    # logarithm of the ratio.
    half = student_t(0.95, 9) * 10 * math.sqrt(10 * 10 / 9) / 600
    low, high = ratio_interval(ours, base, MEAN)
    assert (low, high) == pytest.approx((0.6 * math.exp(-half), 0.6 * math.exp(half)))


def test_pairing_removes_what_both_runs_have_in_common():
    base = batches([100.0, 1000.0] * 5)
    low, high = ratio_interval(batches([91.0, 902.0] * 5), base, MEAN)
    assert 0.9 < low < 0.9027 < high < 0.91
    # If the same times belong to other requests, the interval is wide.
    low, high = ratio_interval(batches([902.0, 91.0] * 5), base, MEAN)
    assert 0 < low < 0.5
    assert high > 1.5


def test_intervals_of_percentiles_are_above_zero():
    base = batches([100.0] * 10, p99_us=10.0)
    wild = [batch | {"p99_us": 1000.0 if i == 3 else 5.0} for i, batch in enumerate(base)]
    low, high = ratio_interval(wild, base, ("all", "p99_us"))
    assert 0 < low < 1 < high
    assert ratio_interval(base, base, ("all", "p99_us")) == (1.0, 1.0)
    assert ratio_interval(base, base, ("all", "p999_us")) is None


def with_work(name, values, **more):
    """Return ten batches in which the counter `name` of the flash has the given values."""
    one = batches([100.0] * 10, **more)
    return [batch | {name: value} for batch, value in zip(one, values, strict=True)]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("erases", ("flash", "erases")),
        ("pages_moved", ("flash", "pages_moved")),
        ("media_pages", ("health", "device_write_amplification")),
    ],
)
def test_counts_of_the_flash_have_the_interval_of_their_sums(name, path):
    base = with_work(name, [10] * 10)
    half = student_t(0.95, 9) * 1 * math.sqrt(10 * 10 / 9) / 60
    found = ratio_interval(with_work(name, [5, 7] * 5), base, path)
    assert found == pytest.approx((0.6 * math.exp(-half), 0.6 * math.exp(half)))
    # If both runs have the same counts in each batch, the interval has no width. If one of them has one more
    # erase, the interval includes 1.
    assert ratio_interval(base, base, path) == (1.0, 1.0)
    few = [0] * 9 + [1]
    low, high = ratio_interval(with_work(name, [1, *few[1:]]), with_work(name, few), path)
    assert low < 1 < high
    assert ratio_interval(base, with_work(name, [0] * 10), path) is None


def test_quotients_of_counts_vary_by_both():
    path = ("flash", "gc_write_amplification")
    base = with_work("programs", [30] * 10, host_programs=10)
    # In each batch, there are twice as many programs as programs for the host.
    ours = with_work("programs", [20, 60] * 5)
    ours = [batch | {"host_programs": batch["programs"] // 2} for batch in ours]
    assert ratio_interval(ours, base, path) == pytest.approx((2 / 3, 2 / 3))
    fixed = [batch | {"host_programs": 20} for batch in ours]
    low, high = ratio_interval(fixed, base, path)
    half = student_t(0.95, 9) * 20 * math.sqrt(10 * 10 / 9) / 400
    assert (low, high) == pytest.approx((2 / 3 * math.exp(-half), 2 / 3 * math.exp(half)))
    share = ("flash", "gc_share_mean")
    times = [{"gc_us": us, "span_us": 4 * us} for us in (10.0, 30.0) * 5]
    halved = [batch | time for batch, time in zip(base, times, strict=True)]
    whole = [batch | {"gc_us": 50.0, "span_us": 100.0} for batch in base]
    assert ratio_interval(halved, whole, share) == pytest.approx((0.5, 0.5))


def test_no_interval_is_invented():
    base = batches([100.0] * 10)
    assert ratio_interval([], base, MEAN) is None
    assert ratio_interval(base[:9], base, MEAN) is None
    other = [*base[:9], base[9] | {"writes": 99}]
    assert ratio_interval(other, base, MEAN) is None
    assert ratio_interval(base, batches([0.0] * 10), MEAN) is None
    assert ratio_interval(base, base, ("flash", "erases")) is None, "nothing was erased"
    assert ratio_interval(base, base, ("all", "deviation_us")) is None


@pytest.fixture(scope="module")
def compared():
    load = "zipf:theta=0.9,write=0.7,rate=4000/s,requests=20000"
    policies = ["lru", "arc", "cflru:window=0"]
    return flashtwin.compare(load, policies, "demo", set=SMALL | {"buffer.capacity": "512 KiB"})


def test_batches_are_of_the_same_requests(compared):
    ours, theirs = (result.record().batches for result in list(compared)[:2])
    assert len(ours) == len(theirs) == 10
    requests = [batch["reads"] + batch["writes"] for batch in ours]
    assert sum(requests) == 20000
    assert requests == [batch["reads"] + batch["writes"] for batch in theirs]
    summary = compared["lru"].summary
    total_us = math.fsum(batch["read_us"] + batch["write_us"] for batch in ours)
    assert total_us / 20000 == pytest.approx(summary["all"]["mean_us"])
    assert sum(batch["hits"] for batch in ours) == summary["hits"]["pages"]
    flash, health = summary["flash"], summary["health"]
    work = {
        name: math.fsum(batch[name] for batch in ours)
        for name in ours[0]
        if name != "parts_us" and not name.startswith("p99")
    }
    assert (work["erases"], work["pages_moved"]) == (flash["erases"], flash["pages_moved"])
    assert work["erases"] > 100
    programmed = work["media_pages"] * summary["page_bytes"]
    assert programmed / health["host_bytes_written"] == health["device_write_amplification"]
    assert work["programs"] / work["host_programs"] == flash["gc_write_amplification"]
    chips = len(flash["gc_time_ms_by_chip"])
    assert work["gc_us"] / work["span_us"] / chips == pytest.approx(flash["gc_share_mean"])
    assert min(batch["erases"] for batch in ours) > 0
    parts_us = [batch["parts_us"]["slot_array"] for batch in ours]
    assert math.fsum(parts_us) / 20000 == pytest.approx(summary["all"]["parts_us"]["slot_array"])


def test_ratios_are_marked_as_in_sweeps(compared):
    text = repr(compared)
    rows = {row.measure.label.strip(): row for row in rows_of(list(compared))}
    # With an empty window, CFLRU is LRU, so no ratio differs from 1. Zeros have no ratio.
    cflru = [row.cells[2] for row in rows.values() if row.has_intervals]
    assert all(cell.mark == "?" for cell in cflru if cell.ratio is not None)
    _, arc, _ = rows["hit ratio"].cells
    assert arc.ratio > 1.05 and arc.interval[0] > 1 and arc.mark == ""
    assert all(row.cells[0].ratio is None for row in rows.values())
    for name in ("p99", "device write ampl.", "GC write ampl.", "erases", "pages moved", "chip time in GC"):
        assert rows[name].has_intervals, name
    assert not rows["CV"].has_intervals
    assert "1.00x?" in text
    assert "?: its 95 % interval contains 1; no interval: deviation, CV, " in text
    assert " *" not in text
    (line,) = (line for line in text.splitlines() if line.lstrip().startswith("CV"))
    assert "?" not in line


def test_a_limit_that_was_reached_is_named():
    slow = SMALL | {"buffer.evict": "background", "buffer.background_depth": 1, "buffer.capacity": "256 KiB"}
    options = {"device": "demo", "pacing": flashtwin.ClosedLoop(32)}
    load = "uniform:write=1,requests=3000"
    limited = flashtwin.run(load, set=slow, **options)
    limit = limited.summary["buffer"]["limit"]
    assert (limit["key"], limit["value"]) == ("buffer.background_depth", 1)
    assert 0.5 < limit["time_share"] <= 1
    assert "buffer.background_depth = 1 write-backs at a time, reached in" in str(limited)
    free = flashtwin.run(load, set=slow | {"buffer.background_depth": 4000}, **options)
    assert "limit" not in free.summary["buffer"]
    both = flashtwin.compare(load, ["lru", "fifo"], set=slow, **options)
    assert "limit buffer.background_depth = 1 reached, share of the time: lru " in repr(both)


def test_slot_waits_of_the_start_are_no_property_of_the_run(tmp_path):
    rows = ["time_us,op,offset_bytes,size_bytes"]
    # A burst of 300 writes meets a full buffer. The other writes arrive every 20 ms and meet a free slot.
    rows += [f"{max(0, i - 300) * 20_000},W,{i * 769 % 5000 * 4096},4096" for i in range(4000)]
    trace = tmp_path / "burst.csv"
    trace.write_text("\n".join(rows) + "\n")
    slow = SMALL | {"buffer.evict": "background", "buffer.capacity": "256 KiB"}
    note = "waits for a slot only in the first tenth of the requests (see --warmup): lru, fifo"
    both = flashtwin.compare(trace, ["lru", "fifo"], "demo", set=slow)
    assert both["lru"].summary["all"]["parts_us"]["slot_array"] > 0
    assert note in repr(both)
    assert note in both._repr_html_()
    calm = flashtwin.compare(trace, ["lru", "fifo"], "demo", set=slow, warmup_requests=400)
    assert not any(us for part, us in calm["lru"].summary["all"]["parts_us"].items() if "slot" in part)
    assert "only in the first tenth" not in repr(calm)


def test_slot_waits_of_the_whole_run_have_no_note(compared):
    assert "only in the first tenth" not in repr(compared)
    waiting = flashtwin.compare("uniform:write=1,requests=3000", ["lru", "fifo"], "demo", set=SMALL)
    assert waiting["lru"].summary["all"]["parts_us"]["slot_array"] > 0
    assert "only in the first tenth" not in repr(waiting)
