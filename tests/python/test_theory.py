"""Closed forms: those that apply to a device and a load, and comparisons with long runs."""

import json
import sys

import pytest

import flashtwin
from pages import ROOT
from test_cli import wrong

sys.path.insert(0, str(ROOT / "experiments"))
from theory import POINTS, keys, measure

#: A small device of 512 blocks; docs/theory.md uses 4096.
BLOCKS = 512
#: Largest permitted relative difference for runs of this size. In docs/theory.md it is below half a percent.
NEAR = 0.015


@pytest.mark.parametrize(
    "point", POINTS, ids=lambda point: f"{point.load}-{point.fill}-{[*point.keys.values()]}"
)
def test_long_runs_are_near_their_closed_forms(point):
    found, expected = measure(point, BLOCKS)
    assert abs(found / expected - 1) <= NEAR, (found, expected)


@pytest.mark.parametrize(("copy_back", "planes"), [(True, 1), (True, 2), (True, 4), (False, 1), (False, 4)])
def test_small_pools_of_msr_are_near_their_closed_form(copy_back, planes):
    """A pool of 64 blocks shows how many blocks are no candidates: one more changes the value by 20 %."""
    keys_of_pool = {
        "geometry.chips": 1,
        "geometry.planes_per_chip": planes,
        "geometry.blocks_per_plane": 64 if copy_back else 64 // planes,
        "nand.copy_back": copy_back,
    }
    load = "uniform:write=1"
    form = flashtwin.theory(load, "harmonia", set=keys_of_pool).own("gc_write_amplification")
    run = flashtwin.run(
        f"{load},requests=1e6",
        "harmonia",
        set=keys_of_pool,
        warmup_requests=200_000,
        pacing=flashtwin.ClosedLoop(1),
    )
    assert run.gc_write_amplification == pytest.approx(form.value, rel=0.025)


def test_a_run_prints_the_closed_form_beside_its_value():
    point = POINTS[1]
    options = {
        "set": keys(point, BLOCKS),
        "precondition": "steady",
        "pacing": flashtwin.ClosedLoop(1),
    }
    pages = flashtwin.device("demo", options["set"]).exported_bytes // 4096
    long = flashtwin.run(f"{point.load},requests={2 * pages}", "demo", **options)
    (beside,) = long.beside
    assert beside.warning() is None
    assert f"GC WA {beside.measured:.2f} (closed form {beside.expected:.2f}: greedy, uniform)" in repr(long)
    # The closed form is not printed for runs that are too short, start in another state, or have other
    # writes.
    for load, changed in [
        (f"{point.load},requests={pages // 2}", {}),
        (f"{point.load},requests={2 * pages}", {"precondition": "sequential"}),
        (f"zipf:theta=0.9,write=1,requests={2 * pages}", {}),
    ]:
        assert flashtwin.run(load, "demo", **{**options, **changed}).beside == []


def test_a_run_warns_if_it_differs_from_its_closed_form():
    # The host writes during collections, so pages of the victim may become invalid before they are moved.
    one_die = {"geometry.chips": 1, "geometry.channels": 1}
    result = flashtwin.run(
        "uniform:write=1,requests=260000", "qlc", set=one_die, pacing=flashtwin.ClosedLoop(16)
    )
    waf = result.beside[0]
    assert waf.difference < -0.1
    assert "GC WA differs from its closed form by -" in waf.warning()
    assert f"warning        {waf.warning()}" in repr(result)


def test_forms_that_do_not_apply_have_a_reason():
    def reasons(load, **set_keys):
        found = flashtwin.theory(load, "demo", set={key.replace("__", "."): v for key, v in set_keys.items()})
        return {form.quantity: form.reason for form in found if form.own or form.reason}

    assert "does not write" in reasons("uniform:write=0")["gc_write_amplification"]
    assert "sequential" in reasons("sequential:write=1")["gc_write_amplification"]
    assert "several pages" in reasons("uniform:size=32k,write=1")["gc_write_amplification"]
    assert (
        "no closed form of this rule"
        in reasons("uniform:write=1", gc__victim="cost-benefit")["gc_write_amplification"]
    )
    assert "two open blocks" in reasons("uniform:write=1", ftl__separation="gc")["gc_write_amplification"]
    assert "the load writes" in reasons("uniform:write=1")["read_response_us"]
    assert "several reads at a time" in reasons("uniform:rate=1e5")["read_response_us"]
    alone = {"nand__parallel_units": 1}
    assert "overloaded" in reasons("uniform:rate=1e7", **alone)["read_response_us"]
    assert "no Poisson process" in reasons("uniform:write=0", **alone)["read_response_us"]
    assert "rated_erases" in reasons("uniform:write=1")["host_tb_written"]
    assert "no buffer" in reasons("uniform:write=1", buffer=None)["hit_ratio"]
    array = flashtwin.theory("uniform:write=1", "raid5-array")
    assert "array" in array[0].reason
    assert array.own("gc_write_amplification") is None


def test_lifetime_follows_from_write_amplification():
    changed = {"wear.rated_erases": 3000, "buffer": None}
    found = flashtwin.theory("uniform:write=1", "demo", set=changed)
    waf = found.own("gc_write_amplification").value
    pool = found.pool
    pages = pool["pools"] * pool["units"] * pool["unit_pages"]
    assert found.own("host_tb_written").value == pytest.approx(3000 * pages * 4096e-12 / waf)


def test_the_command(cli):
    text = cli("theory", "--device", "demo", "--load", "uniform:write=1")
    assert text.returncode == 0, text.stderr
    for part in ("greedy *", "fifo", "random", "d-choices of 10", "assumes", "does not apply"):
        assert part in text.stdout
    found = json.loads(
        cli("theory", "--device", "demo", "--load", "uniform:write=1", "--fill", "0.8", "--json").stdout
    )
    greedy = next(form for form in found["forms"] if form["name"] == "greedy")
    assert 2.5 < greedy["value"] < 2.7
    assert greedy["own"]
    skew = cli("theory", "--load", "hotcold:hot_access=0.8,hot_space=0.2,write=1", "--device", "demo")
    assert "known for fifo only" in skew.stdout
    assert "separate classes" in skew.stdout
    wrong(cli("theory", "--load", "uniform:write=1", "--fill", "1"), "fill: 1")
    wrong(cli("theory", "--load", "unform"), "unform")
    wrong(cli("theory", "--device", "demo"), "--load")
