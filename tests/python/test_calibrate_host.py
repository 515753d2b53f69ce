"""Errors of measurement that a fit allows for: fio's clock, and the host of a served device."""

import json
import math

import pytest

import flashtwin
from calibration import SMALL
from flashtwin.calibrate import loads
from flashtwin.calibrate.host import latency_us, with_host
from flashtwin.calibrate.modelled import measure
from flashtwin.calibrate.parameters import Profile
from flashtwin.calibrate.refine import Journal, Refinement
from flashtwin.calibrate.results import Results, read_results

CAPACITY = 1 << 30
#: Figures of the host, measured on the device `instant`. With one request in flight, the median latency is
#: 2 us and the mean 2.5 us. With two, the mean is 5 us.
HOST = {
    "read-size-4k/read.p50_us": 2.0,
    "read-size-4k/read.p99_us": 6.0,
    "read-size-4k/mb_per_s": 4096 / 2.5,
    "read-depth-2/mb_per_s": 2 * 4096 / 5.0,
    "read-depth-2/read.p99_us": 8.0,
    "read-depth-2/read.p99.9_us": 22.0,
}


def summary(run_ms):
    part = {
        "total_ios": 1000,
        "runtime": run_ms,
        "bw_bytes": 4_096_000_000 // run_ms,
        "clat_ns": {"percentile": {"50.000000": 70000}},
    }
    return {"jobs": [{"jobname": "a", "read": part}]}


def test_fio_rounds_run_times_to_milliseconds(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(summary(20)))
    (tmp_path / "manifest.json").write_text(json.dumps({"capacity_bytes": CAPACITY}))
    assert read_results(tmp_path, ()).uncertain == {"a/mb_per_s": 1 / 20}
    # What flashtwin measured has exact rates.
    (tmp_path / "manifest.json").write_text(json.dumps({"capacity_bytes": CAPACITY, "seed": 1}))
    assert read_results(tmp_path, ()).uncertain == {}


def test_the_host_makes_figures_uncertain():
    figures = {
        "read-size-8k/read.p50_us": 100.0,
        "read-size-8k/read.p99_us": 200.0,
        "read-size-8k/read.p99.9_us": 400.0,
        "read-size-8k/mb_per_s": 8192 / 100,
        "read-depth-32/mb_per_s": 32 * 4096 / 600,
        "other-mix-8k/read.p50_us": 100.0,
    }
    known = {"read-size-8k/mb_per_s": 0.003}
    found = with_host(Results(figures, CAPACITY, {}, uncertain=known), HOST).uncertain
    assert found == {
        # The median is taken out.
        "read-size-8k/read.p50_us": 0.0,
        "read-size-8k/read.p99_us": pytest.approx(4 / 200),
        # HOST has no p99.9 with one request in flight. Therefore the p99.9 with two requests is used.
        "read-size-8k/read.p99.9_us": pytest.approx(20 / 400),
        "read-size-8k/mb_per_s": pytest.approx(math.hypot(0.003, 0.5 / 100)),
        "read-depth-32/mb_per_s": pytest.approx(3 / 600),
    }


def test_the_latency_of_the_host_must_be_there():
    assert latency_us(HOST, "host") == 2.0
    with pytest.raises(flashtwin.FlashtwinError, match=r"^host: .* is missing; run read-size-4k on"):
        latency_us({}, "host")


def test_uncertain_figures_bend_no_fit():
    def line(values, _run=0):
        return {"a/mb_per_s": values["program"], "b/mb_per_s": 2 * values["program"]}

    target = line({"program": 700.0}) | {"b/mb_per_s": 900.0}
    fitted = [
        Refinement(target, {"program": 600.0}, Journal(line, None, ""), threads=1, uncertain=uncertain)
        .run(8, 0, 1)
        .values["program"]
        for uncertain in ({}, {"b/mb_per_s": 1.0})
    ]
    assert abs(fitted[0] - 700) > 10
    assert fitted[1] == pytest.approx(700, rel=0.003)


def test_on_a_drive_blocks_that_were_trimmed_are_erased():
    spec = Profile(SMALL, CAPACITY // 8).spec()
    fill = next(load for load in loads.writes(CAPACITY // 8) if load.name == "write-fill-80")
    rates = [
        measure(spec, [fill, again], 1, in_order=in_order)["again/mb_per_s"]
        for again in [loads.Load("again", fill.text, fill.depth, fill.state, fill.requests)]
        for in_order in (True, False)
    ]
    assert rates[0] < 0.99 * rates[1]
