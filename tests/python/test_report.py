"""Reports: a single file without network access, all charts are drawn, and numbers are those of the runs."""

import json
import re

import pytest

import flashtwin
from browser import look
from conftest import LOAD, SMALL
from flashtwin._report import page as page_of
from flashtwin._support.record import labels_of, percentile_curve

RUN_CHARTS = {"percentiles", "breakdown", "iops", "latency", "queue", "wa", "hits", "destages", "erases"}


def run(**options):
    return flashtwin.run(LOAD, "demo", set=SMALL, history=True, **options)


@pytest.fixture(scope="module")
def runs():
    return [run(policy="lru"), run(policy="gcar-lru")]


def data_of(page):
    text = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(text[1])


def check(page, tmp_path, charts, *options):
    """Check that the console has no messages, nothing was fetched, and every chart is drawn."""
    dom, console, drawn, fetched = look(page, tmp_path, *options)
    assert console == []
    assert fetched == []
    assert set(drawn) == {f"chart-{chart}" for chart in charts}
    assert all(marks > 0 for marks in drawn.values()), drawn
    assert page.stat().st_size < 6_000_000
    return dom


def test_history_adds_up_to_the_run(runs):
    result = runs[0]
    history = result.history.to_pylist()
    summary = result.summary
    assert 1 < len(history) <= 256
    requests = sum(row["iops"] * row["length_s"] for row in history)
    assert requests == pytest.approx(summary["all"]["requests"])
    span = sum(row["length_s"] for row in history)
    inside = sum(row["inside_mean"] * row["length_s"] for row in history) / span
    assert inside == pytest.approx(summary["inside"]["requests_mean"], rel=0.02)
    for chip, ms in enumerate(summary["flash"]["gc_time_ms_by_chip"]):
        shared = sum(row["gc_share_by_chip"][chip] * row["length_s"] for row in history)
        assert shared * 1e3 == pytest.approx(ms, rel=0.02, abs=0.1)


def test_history_changes_nothing_else():
    assert run(policy="lru").to_json() == flashtwin.run(LOAD, "demo", set=SMALL, policy="lru").to_json()
    warm = run(warmup_requests=1000)
    requests = sum(row["iops"] * row["length_s"] for row in warm.history.to_pylist())
    assert requests == pytest.approx(2000)


def test_the_percentile_curve_is_that_of_the_histogram():
    histogram = [(1000, 90), (2000, 9), (50_000, 1)]
    curve = {round(nines, 3): us for nines, us in percentile_curve(histogram)}
    assert curve[1.0] == 1
    assert curve[10.0] == 1
    assert curve[round(10 ** (41 / 40), 3)] == 2
    assert curve[100.0] == 2
    # With 100 requests, no percentile above p99 is known.
    assert max(curve) == 100.0


def test_blocks_are_all_counted_in_the_erase_distribution(runs):
    flash = runs[0].summary["flash"]
    counts = flash["block_erases_counts"]
    blocks = sum(n for _, n in counts)
    device = flashtwin.device("demo", SMALL)
    page_bytes, pages_per_block = runs[0].summary["page_bytes"], 64
    assert blocks * pages_per_block * page_bytes == device.raw_bytes
    assert sum(erases * n for erases, n in counts) / blocks == pytest.approx(flash["block_erases_mean"])
    assert counts[0][0] == flash["block_erases_min"]
    assert counts[-1][0] == flash["block_erases_max"]


def test_a_run_in_a_browser(tmp_path, cli, small_device):
    record = tmp_path / "run.json"
    done = cli("run", "--workload", LOAD, "--device", small_device, "--record", record)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "report.html"
    written = cli("report", record, "-o", page, "--title", "A </script> & <b>title</b>")
    assert written.returncode == 0, written.stderr
    dom = check(page, tmp_path, RUN_CHARTS | {"gc-0"})
    assert "A &lt;/script&gt; &amp; &lt;b&gt;title&lt;/b&gt;" in dom
    check(page, tmp_path, RUN_CHARTS | {"gc-0"}, "--blink-settings=preferredColorScheme=0")


def test_data_cannot_end_its_script():
    page = page_of("title", {"label": "</script><b>"}, [], [])
    assert "</script><b>" not in page
    assert '{"label":"\\u003c/script>' in page


def test_a_comparison_in_a_browser(runs, tmp_path):
    page = tmp_path / "both.html"
    flashtwin.report(runs, page)
    dom = check(page, tmp_path, RUN_CHARTS | {"gc-0", "gc-1"})
    means = [result.latency["mean_us"] for result in runs]
    assert f"{means[1] / means[0]:.3g}x" in dom
    assert [one["label"] for one in data_of(page)["runs"]] == ["lru", "gcar-lru"]
    first = page.read_bytes()
    runs[0].save(tmp_path / "a.json")
    runs[1].save(tmp_path / "b.json")
    flashtwin.report([tmp_path / "a.json", tmp_path / "b.json"], page)
    assert page.read_bytes() == first


def test_a_sweep_in_a_browser(tmp_path):
    experiment = {
        "devices": ["demo"],
        "policies": ["lru", "gcar-lru"],
        "workloads": [LOAD],
        "seeds": [1, 2],
        "figures": ["all_mean_us", "hits_ratio"],
        "set": SMALL,
    }
    found = flashtwin.sweep(experiment, tmp_path / "sweep")
    page = tmp_path / "sweep.html"
    flashtwin.report(tmp_path / "sweep", page)
    dom = check(page, tmp_path, {"mean-all_mean_us", "mean-hits_ratio", "percentiles-0", "breakdown"})
    row = found.statistics(["all_mean_us"]).to_pylist()[1]
    assert f"{row['ratio']:.3g}x" in dom
    points = data_of(page)["points"]
    assert [point["values"]["all_mean_us"]["mean"] for point in points] == [
        r["mean"] for r in found.statistics(["all_mean_us"]).to_pylist()
    ]


def test_a_sweep_of_many_axes_has_panels_and_whole_labels(tmp_path):
    loads = [f"zipf:theta=0.9,write=0.8,size=4KiB,range={share}%,requests=300" for share in (40, 50)]
    experiment = {
        "devices": ["demo"],
        "policies": ["lru", "gcar-lru", "cflru:window=0.25"],
        "workloads": loads,
        "figures": ["all_mean_us"],
        "set": SMALL,
        "parameters": {"buffer.capacity": ["1 MiB", "2 MiB"]},
    }
    flashtwin.sweep(experiment, tmp_path / "sweep")
    page = tmp_path / "sweep.html"
    flashtwin.report(tmp_path / "sweep", page)
    dom = check(page, tmp_path, {"mean-all_mean_us", *(f"percentiles-{i}" for i in range(4)), "breakdown"})
    for load in loads:
        for size in ("1 MiB", "2 MiB"):
            assert f"Response times by percentile: workload {load}, buffer_capacity {size}" in dom
    # Drawn texts have no ellipsis, and the lines of a label contain all of its text.
    chart = re.search(r'id="chart-mean-all_mean_us".*?</svg>', dom, re.DOTALL)[0]
    drawn = "".join(re.findall(r"<text[^>]*>([^<]*)", chart)).replace(" ", "")
    assert "..." not in drawn
    assert "\u2026" not in drawn
    for point in data_of(page)["points"]:
        assert point["label"].replace(" ", "") in drawn


def test_a_run_without_history_has_no_charts_over_time(tmp_path):
    page = tmp_path / "report.html"
    flashtwin.report(flashtwin.run(LOAD, "demo", set=SMALL), page)
    check(page, tmp_path, {"percentiles", "breakdown", "destages", "erases"})


def test_labels_distinguish_runs():
    first = run(policy="lru").record()
    again = run(policy="lru").record()
    other = run(policy="lru", seed=2).record()
    assert labels_of([first]) == ["lru"]
    assert labels_of([first, other]) == ["seed 1", "seed 2"]
    assert labels_of([first, again]) == ["lru (1)", "lru (2)"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "cannot read this record"),
        ("{", "no record of a run"),
        ("[]", "no record of a run"),
        ('{"flashtwin_record": 9, "summary": {"flashtwin_version": "9"}}', "format 9"),
    ],
)
def test_other_files_are_reported_as_no_record(tmp_path, cli, content, part):
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    result = cli("report", path, "-o", tmp_path / "report.html")
    assert result.returncode == 2
    assert part in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "report.html").exists()
