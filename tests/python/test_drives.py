"""Comparison of devices with tables of measurements, and parameters from counters."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flashtwin
from browser import look
from flashtwin import FlashtwinError, _core
from flashtwin._drives import Cell, fit_times
from flashtwin._drives.fits import Fit, fits
from flashtwin._drives.loads import (
    CapacityShare,
    ProbeBesideWrites,
    RandomReads,
    Rewrite,
    SequentialPass,
    Streams,
)
from flashtwin._drives.page import write_html
from flashtwin._drives.tables import read_table
from flashtwin._drives.timed import Lengths, Timed
from flashtwin._drives.untimed import Untimed
from flashtwin.calibrate.counted import points_of_results
from flashtwin.calibrate.counters import read_counters
from flashtwin.calibrate.identify import GIB, Interval, Point, identify
from flashtwin.cli import main

ROOT = Path(__file__).parents[2]
SMALL = {
    "geometry.chips": 4,
    "geometry.channels": 4,
    "geometry.blocks_per_plane": 128,
    "geometry.pages_per_block": 256,
    "geometry.reserve_percent": 20,
}
#: Made-up rows in the columns of the tables.
LATENCY = {
    "drive": "A drive",
    "device_key": "a0",
    "nominal_rate_kiops": "20",
    "pass": "all",
    "saturated": "yes",
    "achieved_total_kiops": "15.5",
    **{
        f"{op}_p{p}_us": str(10 * i)
        for op in ("read", "write")
        for i, p in enumerate(("50", "99", "99.9"), 1)
    },
}
FILL = {
    "drive": "A drive",
    "device_key": "a0",
    "used_gib": "0.3",
    "load": "uniform random write",
    "overwrites_of_used": "2",
    "waf_last_quarter": "1.9",
    "waf_lo_of_4_parts": "1.8",
    "waf_hi_of_4_parts": "2.0",
    "waf_whole_run": "1.7",
    "free_blocks_percent_at_end": "3",
}
IOPS = {
    "drive": "A drive",
    "device_key": "a0",
    "pattern": "zones-shuffle",
    "details": "s0.8 f0.2 s0.2 f0.8",
    "io_bytes": "4096",
    "zone_gib": "",
    "open_zones": "",
    "run_seconds": "60",
    "write_kiops_first_tenth": "20",
    "write_kiops_last_quarter": "10",
}
PLACEMENT = {
    "drive": "A drive",
    "drive_key": "A",
    "workload": "kv202206",
    "soc_percent": "20",
    "mode": "no FDP",
    "overwrites_of_capacity": "4",
    "waf_last_quarter": "2.7",
    "waf_lo_of_4_parts": "1.8",
    "waf_hi_of_4_parts": "3.2",
}


def write_table(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def small(**more: object):
    return flashtwin.device("tlc-client", {**SMALL, **more})


def test_rows_have_names_loads_and_figures(tmp_path):
    (row,) = read_table(write_table(tmp_path / "t.csv", LATENCY, {**LATENCY, "pass": "1"}))
    assert row.name == "a0/latency/20" and row.load == ProbeBesideWrites(20_000)
    assert row.figures["kiops"] == 15.5 and row.figures["read_p99.9_us"] == 30
    (row, again) = read_table(write_table(tmp_path / "f.csv", FILL, FILL))
    assert row.load == Rewrite(CapacityShare(0.3), "uniform:write=1", 2.0)
    assert again.name == "a0/fill/0-uniform#2" and row.bounds["waf"] == (1.8, 2.0) and row.free_percent == 3
    (row,) = read_table(write_table(tmp_path / "i.csv", IOPS))
    assert isinstance(row.load, Rewrite) and row.load.pattern == "uniform:write=1,zoned=20/80:80/20"
    rows = read_table(
        write_table(
            tmp_path / "p.csv",
            PLACEMENT,
            {**PLACEMENT, "mode": "FDP"},
            {**PLACEMENT, "workload": "1stream", "soc_percent": ""},
            {**PLACEMENT, "soc_percent": "0"},
            {**PLACEMENT, "workload": "kv202206-noise"},
            {**PLACEMENT, "workload": "twitter-cluster12", "soc_percent": ""},
        )
    )
    assert [(row.name, row.load) for row in rows] == [
        ("A/placement/kv202206-soc20-none", Streams("cachelib:soc=20,handles=none", 4, "kv202206")),
        ("A/placement/kv202206-soc20-own", Streams("cachelib:soc=20,handles=own", 4, "kv202206")),
        ("A/placement/1stream-none", Streams("warp-1stream:handles=none", 4)),
        ("A/placement/kv202206-soc0-none", Streams("sequential:size=1M,write=1", 4)),
        ("A/placement/kv202206-noise-soc20-none", None),
        ("A/placement/twitter-cluster12-none", None),
    ]
    assert [bool(row.doubt) for row in rows] == [False] * 4 + [True] * 2


def test_unreadable_tables_name_the_place(tmp_path):
    with pytest.raises(FlashtwinError, match="cannot be read as a table"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(FlashtwinError, match="unknown columns"):
        read_table(write_table(tmp_path / "t.csv", {"a": "1"}))
    with pytest.raises(FlashtwinError, match=r"t\.csv:2: could not convert"):
        read_table(write_table(tmp_path / "t.csv", {**FILL, "used_gib": "some"}))


def test_probe_is_a_tenth_of_the_offered_load():
    clients = ProbeBesideWrites(65_000).clients
    assert len(clients) == 7 and all(in_flight == 64 for _, in_flight in clients)
    assert "rate=10000/s" in clients[0][0] and "rate=10000/s" in clients[1][0]
    timed = Timed(small(), 1, Lengths(0.01, 0.05))
    histograms, _ = timed.run(ProbeBesideWrites(20_000).clients, _core.Control())
    requests = [
        sum(count for part in client for histogram in part for _, count in histogram) for client in histograms
    ]
    assert requests[0] == pytest.approx(500, abs=2), "a constant rate"
    assert sum(requests[1:]) == pytest.approx(0.05 * 15_000, rel=0.15)


def test_saturated_clients_keep_their_limit_in_flight():
    spec = small(**{"buffer.capacity": "1 MiB"})
    timed = Timed(spec, 1, Lengths(0.2, 0.4))
    open_loop, _ = timed.run([("uniform:write=1,rate=1M/s", 32)], _core.Control())
    closed, _ = timed.run([("uniform:write=1", 32)], _core.Control())
    rates = [timed._rate(histograms).value for histograms in (open_loop, closed)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    # By Little's law, the mean response time is the number in flight divided by the rate.
    total = sum(ns * count for part in closed[0] for ns, count in part[1])
    count = sum(count for part in closed[0] for _, count in part[1])
    assert total / count / 1e9 == pytest.approx(32 / (rates[1] * 1000), rel=0.05)


def test_device_counts_writes_of_the_medium():
    spec = small(**{"nand.media_overhead_percent": 10})
    timed = Timed(spec, 1, Lengths(1.0, 1.0))
    _, waf = timed.writes(_core.Control())
    without = Timed(small(), 1, Lengths(1.0, 1.0)).writes(_core.Control())[1]
    assert waf == pytest.approx(1.1 * without, rel=1e-3)


def test_partly_filled_device_moves_less():
    untimed = Untimed(small(**{"nand.media_overhead_percent": 10}), 0.4, 1, False)
    control = _core.Control()
    uniform = [
        untimed.waf(Rewrite(CapacityShare(used), "uniform:write=1", 4.0), control)
        for used in (None, 0.3, 0.2)
    ]
    assert uniform == sorted(uniform, reverse=True) and uniform[2] < 1.3
    # The closed form is evaluated for data that fill 0.8 of 128 units (groups of blocks). Units that
    # collection keeps free do not count as used.
    fill = 0.8 * 128 / (128 - int(untimed._words["low"]) - 1)
    greedy = flashtwin.placement_theory(fill)["uniform_greedy"]
    assert uniform[0] == pytest.approx(1.1 * greedy, rel=0.05)
    assert untimed.waf(SequentialPass(), control) == pytest.approx(1.1)
    shuffled = Rewrite(CapacityShare(), "uniform:write=1,permute=true", 1.0, shuffled=True)
    assert untimed.waf(shuffled, control) == pytest.approx(1.1)


def test_small_objects_with_a_handle_move_less():
    placed = {
        "placement.scheme": "handle",
        "placement.handles": "2",
        "geometry.reserve_percent": 16,
        "gc.granularity": "superblock",
        "gc.low_percent_of_reserve": 15,
    }
    untimed = Untimed(small(**placed), None, 1, False, {"half": 0.5, "generator": 0.119})

    def waf(handles, trace):
        return untimed.waf(Streams(f"cachelib:soc=20,handles={handles}", 6.0, trace), _core.Control())

    assert 1.5 * waf("own", "half") < waf("none", "half"), "half of the bytes belong to small objects"
    assert waf("none", "half") != waf("none", "unknown") == waf("none", "generator")
    in_order = Streams("sequential:size=1M,write=1", 4.0)
    assert untimed.waf(in_order, _core.Control()) == 1


def test_reads_of_processes_share_the_device():
    timed = Timed(small(), 1, Lengths(0.01, 0.05))
    one = timed.reads(RandomReads(4096, 1, 1), _core.Control())
    four = timed.reads(RandomReads(4096, 1, 4), _core.Control())
    assert one["kiops"].value < four["kiops"].value < 4.2 * one["kiops"].value
    assert one["read_p50_us"].value <= one["read_p99_us"].value <= one["read_p99.9_us"].value


def test_check_prints_and_writes_cells(tmp_path, capsys):
    table = write_table(tmp_path / "t.csv", FILL)
    toml = tmp_path / "mine.toml"
    toml.write_text(small().to_toml())
    out = tmp_path / "cells.parquet"
    words = ["device", "check", str(toml), "--against", str(table), "--quick", "-o", str(out)]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "a0/fill/0-uniform" in text and "median error" in text
    assert main([*words, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["role"] == "open" and cell["error_percent"] == pytest.approx(
        (cell["modelled"] / cell["measured"] - 1) * 100
    )
    assert pq.read_table(out).to_pylist()[0]["row"] == "a0/fill/0-uniform"
    assert main([*words[:5], "--rows", "b0/*"]) == 2
    assert "no row is chosen" in capsys.readouterr().err
    assert main(["device", "check", "demo", "nvme-tlc", "--against", str(table)]) == 2


def test_roles_of_fitted_profiles():
    assert set(fits()) <= set(flashtwin.devices())
    fit = fits()["fit-7450-max"]
    assert fit.role("mp0/fill/745-uniform", "waf") == "fitted"
    assert fit.role("mp0/fill/596-uniform", "waf") == "held out"


CLICK = """<script>
addEventListener("load", () => {
  const button = document.querySelector('[data-cell="NUMBER"]');
  button.click();
  button.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  const next = document.querySelector(".heat [tabindex='0']").dataset.cell;
  const page = document.documentElement;
  const seen = { next, width: innerWidth, overflow: page.scrollWidth - page.clientWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches, open: document.querySelector("dialog").open,
    texts: ["panel-title", "command", "line"].map((id) => document.getElementById(id).textContent) };
  const pre = document.createElement("pre");
  pre.id = "clicked";
  pre.textContent = JSON.stringify(seen);
  document.body.append(pre);
});
</script>"""


@pytest.fixture(scope="module")
def errors_page(tmp_path_factory):
    """Create a page of errors for rows with two rates, one of them fitted, and rows with two fill levels."""
    place = tmp_path_factory.mktemp("errors")
    rows = [{**LATENCY, "device_key": "h0", "nominal_rate_kiops": rate} for rate in ("10", "20")]
    fills = [{**FILL, "device_key": "h0", "used_gib": used} for used in ("2", "3")]
    tables = [write_table(place / "my rates.csv", *rows), write_table(place / "fills.csv", *fills)]
    toml = place / "mine.toml"
    toml.write_text(re.sub("^name = .*", 'name = "fit-pe8110"', small().to_toml(), flags=re.MULTILINE))
    words = ["device", "check", str(toml), "--quick", "--seed", "3", "--set", "buffer.capacity=2MiB"]
    against = [word for table in tables for word in ("--against", str(table))]
    assert main([*words, *against, "--report", str(place / "errors.html")]) == 0
    return place / "errors.html"


def data_of(page):
    text = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(text[1])


def clicked(page, place, number, *options, width=None):
    """Click a cell of a page. Return what the page shows, and the number of marks by chart."""
    head, _, tail = page.read_text().rpartition("</body>")
    copy = place / "clicked.html"
    copy.write_text(f"{head}{CLICK.replace('NUMBER', str(number))}</body>{tail}")
    dom, console, drawn, fetched = look(copy, place, *options, width=width)
    assert console == [] and fetched == []
    return json.loads(re.search(r'<pre id="clicked">(\{.*?)</pre>', dom)[1].replace("&amp;", "&")), drawn


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_a_cell_has_curves_and_a_command_that_prints_its_number(errors_page, tmp_path, capsys, width, dark):
    cells = data_of(errors_page)["cells"]
    number = next(i for i, cell in enumerate(cells) if cell["figure"] == "read_p99_us")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    seen, drawn = clicked(errors_page, tmp_path, number, *scheme, width=width)
    assert seen["open"] and seen["dark"] == dark
    assert seen["overflow"] == 0, "only tables scroll sideways"
    assert seen["width"] == width
    assert set(drawn) == {"chart-curve", "chart-row"} and all(drawn.values())
    title, command, line = seen["texts"]
    assert title == "read p99, us: h0/latency/10"
    # The arrow key chose the same figure at the other rate.
    assert cells[int(seen["next"])]["row"] == "h0/latency/20"
    assert cells[int(seen["next"])]["figure"] == "read_p99_us"
    words = shlex.split(command)
    assert words[:3] == ["flashtwin", "device", "check"]
    capsys.readouterr()
    assert main(words[1:]) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert f"{cells[number]['error_percent']:+.1f} %" in line
    assert main([*words[1:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert {cell["row"] for cell in found} == {"h0/latency/10"}
    (same,) = (cell for cell in found if cell["figure"] == "read_p99_us")
    assert same["modelled"] == cells[number]["modelled"]


def test_fitted_cells_have_a_mark_and_held_out_ones_a_split(errors_page, tmp_path):
    text = errors_page.read_text()
    data = data_of(errors_page)
    for number, cell in enumerate(data["cells"]):
        kind = re.search(rf'<td class="([^"]*)"><button type="button" data-cell="{number}">', text)[1]
        assert ("marked" in kind) == (cell["role"] == "fitted") == (cell["row"] == "h0/latency/10")
        error = abs(cell["error_percent"])
        assert f"heat-{sum(error > bound for bound in (5, 10, 20, 50))}" in kind
    assert {cell["split"] for cell in data["cells"]} == {"fitted", "rate", "pattern"}
    assert "<b>Cross-validation.</b>" in text
    assert "<li>by rate:" in text and "<li>by pattern:" in text and "<li>by drive:" not in text
    fill = next(i for i, cell in enumerate(data["cells"]) if cell["figure"] == "waf")
    seen, drawn = clicked(errors_page, tmp_path, fill)
    assert seen["texts"][0] == "WAF: h0/fill/2-uniform"
    assert drawn["chart-curve"] and "chart-row" not in drawn
    rows = pq.read_table(errors_page.with_suffix(".parquet")).to_pylist()
    shown = [{name: cell[name] for name in rows[0]} for cell in data["cells"]]
    assert rows == shown


def made_up(release, modelled, row="h0/latency/10", role="fitted"):
    error = (modelled / 100 - 1) * 100
    return Cell(
        "fit-pe8110", row, "A drive", "read_p99_us", 100, modelled, error, 0, role, "", release, "flashtwin"
    )


def test_releases_have_rows_and_curves(tmp_path):
    cells = [made_up("0.3.0", 105), made_up("0.2.0", 130)]
    cells += [replace(cell, row="h0/latency/20", role="held out") for cell in cells]
    cells.append(replace(cells[0], row="h0/latency/30", modelled=None, error_percent=None, note="no load"))
    write_html(cells, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    section = re.search(r"<h2>Releases:.*?</section>", text, re.DOTALL)[0]
    rows = re.findall(r"<tr><td[^>]*>([^<]*)</td><td[^>]*>([\d.]+) <small>([^<]*)", section)
    assert rows == [("0.3.0", "5.0", "(fitted 5.0)"), ("0.2.0", "30.0", "(fitted 30.0)")]
    assert "Percentiles beside writes (0.3.0)" in text and "Percentiles beside writes (0.2.0)" in text
    _, drawn = clicked(tmp_path / "page.html", tmp_path, 0)
    assert drawn["chart-curve"] >= 3, "one measured and two modelled lines"
    seen, drawn = clicked(tmp_path / "page.html", tmp_path, 4)
    assert seen["texts"][2].endswith("not run: no load") and "chart-row" not in drawn


def test_the_page_states_that_no_cell_is_held_out(tmp_path):
    fitted = made_up("0.2.0", 101)
    for cell, text in (
        (replace(fitted, device="mine", role="open"), "The device is not fitted to these drives"),
        (fitted, "The profile was fitted to all figures of this page"),
    ):
        write_html([cell], tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert text in page and "Cross-validation.</b>" not in page


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_of_cells_have_contrast_and_an_order_of_lightness():
    css = (ROOT / "python/flashtwin/_report/page.css").read_text()
    grounds = re.findall(r"--heat-(\d): (#\w{6})", css)
    inks = re.findall(r"--on-heat-(\d): (#\w{6})", css)
    assert len(grounds) == len(inks) == 10, "five steps, light and dark"
    lights = [luminance(colour) for _, colour in grounds]
    for ground, (_, ink) in zip(lights, inks, strict=True):
        low, high = sorted((ground, luminance(ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
    # The order of sizes is visible without hues.
    assert lights[:5] == sorted(lights[:5], reverse=True) and lights[5:] == sorted(lights[5:])


@pytest.fixture(scope="module")
def experiment():
    spec = importlib.util.spec_from_file_location("drives", ROOT / "experiments" / "drives.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kept_cells_have_commands_of_their_rows(experiment):
    cells = experiment.read_cells()
    for cell in cells:
        words = shlex.split(cell.command)
        assert words[:5] == ["flashtwin", "device", "check", cell.device, "--against"]
        assert words[5] in experiment.TABLES
        assert words[6:] == ["--rows", cell.row]
    assert cells == sorted(cells, key=experiment.by_release), "the newest release first"


def test_the_documentation_is_of_the_kept_cells(experiment, tmp_path, monkeypatch):
    before = (ROOT / "docs" / "drives.md").read_text()
    monkeypatch.setattr(experiment, "PAGE", tmp_path / "drives.md")
    experiment.PAGE.write_text(before)
    experiment.write_page(experiment.read_cells())
    assert experiment.PAGE.read_text() == before


def test_a_release_takes_unreleased_cells_or_copies(experiment):
    unreleased, old = made_up("unreleased", 101), made_up("0.2.0", 110)

    def named(cells, release):
        return [(cell.release, cell.modelled) for cell in experiment.with_release(cells, release)]

    assert named([unreleased, old], "0.3.0") == [("0.3.0", 101), ("0.2.0", 110)]
    assert named([unreleased, old], "0.2.0") == [("0.2.0", 101)]
    assert named([unreleased, old], "unreleased") == [("unreleased", 101), ("0.2.0", 110)]
    assert named([old], "unreleased") == [("unreleased", 110), ("0.2.0", 110)]
    assert named([old], "0.2.0") == [("0.2.0", 110)]
    assert named([], "0.2.0") == []


def test_commands_of_kept_cells_have_no_folders(experiment, tmp_path):
    profile, table = experiment.profile("fit-p5520"), tmp_path / "wa_by_fill.csv"
    words = f"flashtwin device check {profile} --against {table} --rows i0/fill/1-uniform".split()
    command = shlex.join(words)
    assert experiment.portable(command, "fit-p5520", tmp_path) == (
        "flashtwin device check fit-p5520 --against wa_by_fill.csv --rows i0/fill/1-uniform"
    )
    cells = [made_up(release, 101) for release in ("0.2.0", "unreleased", "0.10.0")]
    ordered = [cell.release for cell in sorted(cells, key=experiment.by_release)]
    assert ordered == ["unreleased", "0.10.0", "0.2.0"]
    assert len(experiment.newest(sorted(cells, key=experiment.by_release))) == 1


OCP = {
    "Physical media units written": {"hi": 0, "lo": 3 << 40},
    "Percent free blocks": 13,
}
SMART = {"data_units_written": 2**41 // 512_000, "host_read_commands": 1}


@pytest.mark.parametrize(
    ("logs", "media", "host", "free"),
    [
        ([SMART, OCP], 3 << 40, 2**41 // 512_000 * 512_000, 13),
        (
            [
                SMART,
                {
                    "Device stats": {
                        "nand_bytes_written": {"normalized": 100, "raw": 7},
                        "host_bytes_written": {"raw": "5"},
                    }
                },
            ],
            7 << 25,
            5 << 25,
            None,
        ),
        ([{"media_units_written": 9, "data_units_written": "6"}], 9 * 10**9, 6 * 10**9, None),
        ([{"hbmw": "100", "mbmw": "0x96"}], 150, 100, None),
    ],
)
def test_counters_of_nvme_cli(tmp_path, logs, media, host, free):
    path = tmp_path / "c.json"
    path.write_text("\n".join(json.dumps(log, indent=2) for log in logs))
    found = read_counters(path)
    assert (found.media_bytes, found.host_bytes, found.free_percent) == (media, host, free)


def test_wrong_counters_name_the_remedy(tmp_path):
    path = tmp_path / "c.json"
    path.write_text("not json")
    with pytest.raises(FlashtwinError, match=r"c\.json:1: no JSON.*-o json"):
        read_counters(path)
    path.write_text(json.dumps(SMART))
    with pytest.raises(FlashtwinError, match="no counter of the medium; run nvme ocp"):
        read_counters(path)
    path.write_text(json.dumps(OCP))
    with pytest.raises(FlashtwinError, match="run nvme smart-log"):
        read_counters(path)


def exact(value: float) -> Interval:
    return Interval(value, value * 0.999, value * 1.001)


def counted(spec, overhead: float, used: float, pattern: str = "uniform:write=1") -> float:
    """Return the write amplification computed from the counters of a modelled drive of 1 TiB."""
    untimed = Untimed(spec, 1024.0, 1, False)
    return untimed.waf(Rewrite(CapacityShare(used), pattern, 4.0), _core.Control())


def test_counters_identify_a_modelled_drive():
    spec = small(
        **{
            "geometry.blocks_per_plane": 512,
            "geometry.reserve_percent": 22,
            "gc.low_percent_of_reserve": 1,
            "nand.media_overhead_percent": 7,
        }
    )
    zipf = "zipf:theta=0.8,write=1"
    points = [
        Point("sequential", 1024 * GIB, "sequential", exact(1.07)),
        *(
            Point(f"uniform-{used}", used * GIB, "uniform", exact(counted(spec, 7, used)), 4.0)
            for used in (1024, 850)
        ),
        Point("zipf", 1024 * GIB, zipf, exact(counted(spec, 7, 1024, zipf)), 4.0),
    ]
    found = identify(points, 1024 * GIB)
    assert found.overhead_percent.low <= 7 <= found.overhead_percent.high
    # The true reserve is 22 %. The estimate may be smaller, because free and open blocks hold no data and do
    # not count as flash in use.
    assert 21 <= found.reserve_percent["greedy"].value <= 22.2
    assert found.candidates[0].survivors == "together"
    greedy = {each.survivors: each.error_percent for each in found.candidates if each.rule == "greedy"}
    assert greedy["together"] < 3 < greedy["apart"]
    assert "reserve, if the rule is greedy" in str(found)
    assert json.loads(found.to_json())["overhead_percent"]["value"] == pytest.approx(7)


def test_counters_need_both_kinds_of_writes():
    uniform = Point("u", 10 * GIB, "uniform", exact(2.0), 4.0)
    with pytest.raises(FlashtwinError, match="no sequential pass"):
        identify([uniform], 10 * GIB)
    with pytest.raises(FlashtwinError, match="the reserve is not identified"):
        identify([Point("s", 10 * GIB, "sequential", exact(1.0))], 10 * GIB)


def test_results_of_counters_are_read(tmp_path, capsys):
    experiments = [
        {"name": "sequential-100", "share": 1.0, "pattern": "sequential", "overwrites": 1},
        {"name": "uniform-100", "share": 1.0, "pattern": "uniform", "overwrites": 4},
    ]
    capacity = 100 * 2**30
    (tmp_path / "counters.json").write_text(
        json.dumps({"capacity_bytes": capacity, "experiments": experiments})
    )
    host, media = 0, 0
    for name, waf in (("sequential-100", 1.05), ("uniform-100", 2.1)):
        for when in ("before", "after"):
            logs = [
                {"data_units_written": host // 512_000},
                {"Physical media units written": {"hi": 0, "lo": media}},
            ]
            (tmp_path / f"{name}.{when}.json").write_text("\n".join(map(json.dumps, logs)))
            if when == "before":
                host, media = host + capacity, media + round(waf * capacity)
    points, found = points_of_results(tmp_path)
    assert found == capacity and points[1].waf.value == pytest.approx(2.1, rel=1e-4)
    assert main(["calibrate", "counters", str(tmp_path)]) == 0
    assert "overhead of the medium: 5" in capsys.readouterr().out
    assert main(["calibrate", "counters"]) == 2
    assert main(["calibrate", "counters", "--table", "x.csv"]) == 2


def test_plan_of_counters_is_a_script(tmp_path, capsys):
    assert (
        main(["calibrate", "plan", "--target", str(tmp_path / "f"), "--size", "1G", "--counters", "-o", "p"])
        == 2
    )
    assert "counters need a block device" in capsys.readouterr().err


def table_of(spec, path, *rates):
    """Write a table with the figures of a device at some rates."""
    timed = Timed(spec, 1, Lengths(0.5, 0.5))
    rows = []
    for rate in rates:
        found = timed.beside_writes(ProbeBesideWrites(rate * 1000), _core.Control())
        figures = {name: str(figure.value) for name, figure in found.items() if name != "kiops"}
        rows.append({**LATENCY, "nominal_rate_kiops": str(rate), "saturated": "no", **figures})
    return write_table(path, *rows)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Create a table with the figures of a hidden device, and a device that differs in its read times."""
    folder = tmp_path_factory.mktemp("fit")
    hidden = small(**{"timing.read_us": "[90, 90, 90]"})
    table = table_of(hidden, folder / "t.csv", 12, 20, 30)
    device = folder / "first.toml"
    device.write_text(small().to_toml())
    return table, device, folder


def test_a_fit_finds_the_times_of_a_hidden_device(fitted, capsys):
    table, device, folder = fitted
    words = ["calibrate", "fit", "--table", str(table), "--drive", "a0", "--device", str(device)]
    words += ["--rows", "*/12;*/20", "--evaluations", "60", "--repeats", "2", "--threads", "2"]
    assert main([*words, "-o", str(folder / "twin.toml"), "--report", str(folder / "twin.html")]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"^timing.read_us .* fitted, (not )?identified: another seed is expected", shown, re.MULTILINE
    )
    before, after = map(float, re.search(r"cost: (\S+) before, (\S+) after", shown).groups())
    assert after < before / 3
    assert re.search(r"^a0/latency/30 +read_p50_us .* held out$", shown, re.MULTILINE)
    assert re.search(r"^a0/latency/20 +read_p50_us .* fitted$", shown, re.MULTILINE)
    spec = flashtwin.device(folder / "twin.toml")
    assert spec.name == "twin"
    assert "read_us = " in (folder / "twin.toml").read_text()
    assert "held out" in (folder / "twin.html").read_text()


def test_times_of_page_types_share_a_factor():
    search = fit_times._Search(flashtwin.device("nvme-tlc"), [], 1, 1)
    first = search.values([0.0] * search._size)
    found = search.values([0.1 + i / 100 for i in range(search._size)])
    for key in ("timing.read_us", "timing.program_us"):
        factors = [new / old for new, old in zip(found[key], first[key], strict=True)]
        assert len(factors) == 3 and factors[0] > 1.05
        assert factors == pytest.approx([factors[0]] * 3, rel=5e-3), "except for rounding"


def test_chance_agreement_of_two_seeds_identifies_nothing():
    def standing(*values):
        by_seed = [{"timing.erase_us": [value]} for value in values]
        spec = flashtwin.device("demo")
        fit = Fit(("a0",), 1.0, ())
        return fit_times.FittedTimes(spec, 1.0, 0.5, by_seed[0], by_seed, fit).standing("timing.erase_us")

    assert standing(4000.0) == "fitted"
    # With two values, Student's t is 12.7: if they are 4 % apart, the half-width is
    # exp(12.7 x 4 % x sqrt(3) / 2) - 1.
    assert standing(4000.0, 4160.0) == "fitted, not identified: another seed is expected within 54%"
    assert standing(4000.0, 4010.0) == "fitted, identified: another seed is expected within 3%"
    # With four values, Student's t is 3.18.
    assert standing(4000.0, 4100.0, 4200.0, 4080.0).startswith("fitted, identified")
    assert standing(4000.0, 4100.0, 4400.0, 4080.0).startswith("fitted, not identified")
    assert standing(40.0, 4000.0).endswith("within a factor of more than 10")


def test_an_interrupted_fit_writes_the_best_device(fitted, capsys, monkeypatch):
    table, device, folder = fitted
    costs = fit_times._Search._costs

    def interrupted_later(search, points):
        if len(points) > 1:
            raise KeyboardInterrupt
        return costs(search, points)

    monkeypatch.setattr(fit_times._Search, "_costs", interrupted_later)
    words = ["calibrate", "fit", "--table", str(table), "--drive", "a0", "--device", str(device)]
    assert main([*words, "-o", str(folder / "part.toml")]) == 130
    shown = capsys.readouterr()
    assert "interrupted: the device file has the best values so far" in shown.err
    assert flashtwin.device(folder / "part.toml").name == "part"


def test_a_fit_passes_over_invalid_devices(fitted):
    table, device, _ = fitted
    # Some depths that the search tries are above the limit of 65 535.
    found = fit_times.fit_times(device, [table], drive="a0", set=DEEP, rows="*/12", evaluations=12)
    assert 16_000 < found.values["buffer.background_depth"][0] <= 65_535
    assert found.cost <= found.start_cost


#: Settings with a limit on write-backs in flight. The search tries multiples of this limit, some of which
#: exceed the permitted maximum.
DEEP = {"buffer.evict": "background", "buffer.background_depth": 65_000}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give either RESULTS or --table FILE"),
        (["results", "--table", "T"], "give either RESULTS or --table FILE"),
        (["--table", "T"], "--table needs --device"),
        (["--table", "T", "--steps", "0"], "--steps has an effect only with RESULTS"),
        (["results", "--rows", "a"], "--rows has an effect only with --table"),
        (["--table", "T", "--device", "D"], "the table has rows of a0, b0: give one as --drive"),
        (["--table", "T", "--device", "D", "--drive", "c0"], "no row with response times is chosen"),
        (["--table", "T", "--device", "D", "--repeats", "-1"], "--evaluations, --repeats: give 1 or more"),
    ],
)
def test_a_fit_to_a_table_needs_rows_and_a_device(fitted, tmp_path, capsys, words, message):
    two = write_table(tmp_path / "two.csv", LATENCY, {**LATENCY, "device_key": "b0"})
    places = {"T": str(two), "D": str(fitted[1])}
    words = [places.get(word, word) for word in words]
    assert main(["calibrate", "fit", *words, "-o", str(tmp_path / "x.toml")]) == 2
    assert message in capsys.readouterr().err
