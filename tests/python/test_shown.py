"""Printed results: parts have labels, claims of "best" are justified, and missing values show no number."""

import io
import json
import os
import pickle
import re
import sys

import pytest

import flashtwin
from conftest import LOAD, SMALL


def lines(shown):
    return [line.strip() for line in repr(shown).splitlines()]


def interrupted_comparison(policies, during):
    def progress(p):
        if p.label == during and p.done > 500:
            raise KeyboardInterrupt

    with pytest.raises(flashtwin.Interrupted) as e:
        flashtwin.compare(
            "zipf:theta=0.9,write=0.8,requests=1e6",
            policies,
            "demo",
            set=SMALL,
            progress=progress,
        )
    return e.value.partial


def test_an_interrupted_column_is_labelled_and_never_best():
    part = interrupted_comparison(["lru", "gcar-lru"], "lru")
    assert part.results[0].interrupted
    table = repr(part)
    assert "lru (part: " in table
    assert "not comparable" in table
    assert not any(line.rstrip().endswith(" *") for line in table.splitlines())
    assert "(part: " in part._repr_html_()


def test_policies_that_differ_by_less_than_the_noise_have_no_best():
    load = "uniform:write=0.5,requests=20000"
    comparison = flashtwin.compare(load, ["lru", "fifo"], "demo", set=SMALL)
    mean = next(line for line in lines(comparison) if line.startswith("mean response"))
    assert mean.endswith("?")


def test_a_difference_beyond_the_noise_is_not_marked():
    load = "zipf:theta=1.1,write=0.5,requests=20000"
    comparison = flashtwin.compare(load, ["lru", "fifo"], "demo", set={**SMALL, "buffer.capacity": "1 MiB"})
    hit_ratio = next(line for line in lines(comparison) if line.startswith("hit ratio"))
    assert comparison["lru"].hit_ratio > comparison["fifo"].hit_ratio
    assert "?" not in hit_ratio


def test_no_write_no_write_amplification():
    load, state = "uniform:write=0,requests=2000", "steady:empty-buffer"
    comparison = flashtwin.compare(load, ["lru", "fifo"], "demo", set=SMALL, precondition=state)
    for name in ("device write ampl.", "GC write ampl."):
        line = next(line for line in lines(comparison) if line.startswith(name))
        assert line.removeprefix(name).split() == ["-", "-"]
    assert comparison.table["health_device_write_amplification"].to_pylist() == [None, None]
    assert comparison.table["flash_gc_write_amplification"].to_pylist() == [None, None]
    result = comparison["lru"]
    assert result.gc_write_amplification is None
    assert result.summary["flash"]["gc_write_amplification"] is None
    assert result.device_write_amplification is None
    assert "device write amplification -, GC write amplification -" in str(result)


def test_means_of_nothing_are_empty_in_the_series():
    result = flashtwin.run("uniform:write=0,requests=2000", "demo", set=SMALL, series_s=0.01)
    assert set(result.series["write_mean_us"].to_pylist()) == {None}
    assert {point["write_mean_us"] for point in result.summary["series"]} == {None}
    assert None not in result.series["read_mean_us"].to_pylist()


def test_a_speed_needs_arrival_times(cli):
    with pytest.raises(flashtwin.FlashtwinError, match="no arrival times"):
        flashtwin.run(LOAD, "demo", pacing=flashtwin.OpenLoop(2.0))
    result = cli("run", "--workload", LOAD, "--device", "demo", "--speed", "2")
    assert result.returncode == 2
    assert "no arrival times" in result.stderr
    assert "--queue-depth" in result.stderr


def test_one_policy_is_not_called_best():
    for policies in (["lru"], ["lru", "min"]):
        assert "best" not in repr(flashtwin.hits(LOAD, policies, [64]))
        assert "*" not in repr(flashtwin.hits(LOAD, policies, [64]))
    assert "* most hits except min" in repr(flashtwin.hits(LOAD, ["lru", "fifo", "min"], [64]))
    assert "except min" not in repr(flashtwin.hits(LOAD, ["lru", "fifo"], [64]))


def test_narrow_terminals_get_more_tables_and_no_cut_numbers(cli, small_device):
    policies = "lru,fifo,cflru,gcar-lru,gcar-cflru"
    arguments = ("compare", "--workload", LOAD, "--device", small_device, "--policies", policies)
    narrow = cli(*arguments, env={**os.environ, "COLUMNS": "80"}).stdout
    assert "\u2026" not in narrow
    assert all(policy in narrow for policy in policies.split(","))
    assert narrow.count("mean response") > 1
    assert max(map(len, narrow.splitlines()[2:-3])) <= 80


def test_results_show_keeps_its_keys(cli, tmp_path):
    experiment = tmp_path / "x.toml"
    experiment.write_text(
        """
devices = ["demo"]
policies = ["lru", "gcar-lru"]
workloads = ["zipf:theta=0.9,write=0.8,requests=300", "uniform:write=0.5,requests=300"]
seeds = [1, 2]

[set]
"geometry.blocks_per_plane" = 64
"geometry.reserve_percent" = 20
"""
    )
    directory = tmp_path / "x.sweep"
    done = cli("sweep", experiment, "-o", directory)
    assert done.returncode == 0, done.stderr
    shown = cli("results", "show", directory, env={**os.environ, "COLUMNS": "90"}).stdout
    assert "\u2026" not in shown
    tables = [line for line in shown.splitlines() if line.strip().startswith("policy ")]
    assert len(tables) > 1
    assert shown.count("gcar-lru") == 2 * len(tables)
    assert "mean_us" not in shown

    sql = "select policy, workload, all_mean_us, all_p99_us, all_max_us, flash_erases from cells"
    for columns in (40, 60):
        asked = cli("results", "query", directory, sql, env={**os.environ, "COLUMNS": str(columns)}).stdout
        assert "\u2026" not in asked
        assert max(map(len, asked.splitlines())) <= columns
        heads = [line for line in asked.splitlines() if line.strip().startswith("policy ")]
        assert len(heads) > 1
        assert all("workload" in head for head in heads)
        rows = json.loads(cli("results", "query", directory, sql, "--json").stdout)
        assert all(f"{row['all_max_us']:.6g}" in asked for row in rows)


def test_hit_ratios_fold_to_a_narrow_terminal(cli):
    sizes = "1MiB,2MiB,4MiB,8MiB,16MiB,32MiB,64MiB,128MiB"
    arguments = ("policy", "hits", "--workload", LOAD, "--policies", "lru,gcar-lru,min", "--capacity", sizes)
    shown = cli(*arguments, env={**os.environ, "COLUMNS": "50"}).stdout
    assert "\u2026" not in shown
    assert max(map(len, shown.splitlines())) <= 50
    assert shown.count("gcar-lru") == shown.count("hit ratio") > 1
    assert all(f"{size[:-3]} MiB" in shown for size in sizes.split(","))
    assert shown.rstrip().endswith("* most hits except min")


def test_work_without_counts_shows_its_time(monkeypatch, capsys):
    from flashtwin.cli import common

    monkeypatch.setattr(common, "_LINE_PERIOD_S", 0.0)
    with common.ProgressBar() as bar:
        bar(flashtwin.Progress("preconditioning", 0, 0))
        bar(flashtwin.Progress("preconditioning", 250, 1000, phase="steady state"))
        bar(flashtwin.Progress("lru", 5, None))
    assert capsys.readouterr().err.splitlines() == [
        "preconditioning: running for 0 s",
        "preconditioning (steady state): 250 of 1 000 (25 %) done",
        "lru: 5 done",
    ]


@pytest.mark.parametrize(
    ("kind", "phase"),
    [("sequential", "sequential writes"), ("random:2", "random writes"), ("steady", "steady state")],
)
def test_preconditioning_reports_its_phase_and_its_share(tmp_path, kind, phase):
    reports = []
    flashtwin.save_snapshot(tmp_path / "a.state", "demo", precondition=kind, progress=reports.append)
    last = reports[-1]
    assert last.finished
    assert (last.label, last.phase) == ("preconditioning", phase)
    assert last.done == last.total > 0


def test_preconditioning_of_a_large_device_reports_several_shares():
    shares = []

    def note(progress):
        if progress.phase == "steady state":
            shares.append(progress.done / progress.total)

    flashtwin.run("uniform:write=1,requests=10", "nvme-tlc", size="64G", progress=note)
    assert shares == sorted(shares)
    assert len(set(shares)) >= 3
    assert shares[0] < 0.5
    assert shares[-1] == 1


def test_bars_name_the_phase(monkeypatch):
    from flashtwin.cli import common

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.ProgressBar() as bar:
        bar(flashtwin.Progress("lru", 50, 200, phase="filling the buffer"))
    assert "lru (filling the buffer)" in terminal.getvalue()
    assert "25%" in terminal.getvalue()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("queue_depth", "; give pacing=ClosedLoop(8)"),
        ("warmup", "; give warmup_requests=1000"),
        ("sedd", "; did you mean seed?"),
    ],
)
def test_unknown_argument_of_a_run_names_the_right_one(name, message):
    with pytest.raises(
        TypeError, match=re.escape(f"run() got an unexpected keyword argument '{name}'{message}")
    ):
        flashtwin.run("uniform:requests=1", "demo", **{name: 8})


def test_series_has_times_and_bytes_without_binary_noise():
    series = flashtwin.run("uniform:write=1,rate=1k/s,requests=500", "demo", series_s=0.1).series
    assert series["t_s"].to_pylist()[:5] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert all(len(str(mb)) <= 8 for mb in series["mb"].to_pylist())


def test_summary_of_a_command_is_its_first_sentence(cli):
    assert "response times from the median to p99.99\n" in cli("plot", "--help").stdout


def test_a_device_describes_itself_in_a_line():
    assert repr(flashtwin.device("demo")) == (
        "Spec(demo: msr back end, 8 chips, exports 4.014 GiB of 4.500 GiB, 4 MiB buffer, lru)"
    )
    assert repr(flashtwin.device("raid5-array")).startswith("Spec(raid5-array: 8 members, 128 chips, ")
    assert repr(flashtwin.device("demo", {"buffer": None})).endswith(", no buffer)")


def test_a_notebook_shows_figures():
    comparison = flashtwin.compare(LOAD, ["lru", "fifo"], "demo", set=SMALL)
    figure = flashtwin.plot.comparison(comparison)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(figure))._repr_png_().startswith(b"\x89PNG")


def test_a_point_that_lacks_a_seed_is_marked(tmp_path):
    experiment = {
        "devices": ["demo"],
        "policies": ["lru"],
        "workloads": ["uniform:write=0.5,requests=300"],
        "seeds": [1, 2, 3],
        "set": SMALL,
    }
    whole = flashtwin.sweep(experiment, tmp_path / "x")
    assert "(n=" not in repr(whole)
    assert whole._repr_html_().startswith("<table>")
    whole.table = whole.table.slice(0, 2)
    assert "(n=2)" in repr(whole)
    assert "only so many of 3 seeds" in repr(whole)


def test_progress_is_printed_without_a_terminal(monkeypatch, capsys):
    from flashtwin.cli import common

    monkeypatch.setattr(common, "_LINE_PERIOD_S", 0.0)
    with common.ProgressBar() as bar:
        bar(flashtwin.Progress("lru", 1200, 5000))
    assert capsys.readouterr().err == "lru: 1 200 of 5 000 (24 %) done\n"
    monkeypatch.setattr(common, "_LINE_PERIOD_S", 30.0)
    with common.ProgressBar() as bar:
        bar(flashtwin.Progress("lru", 1200, 5000))
    assert capsys.readouterr().err == ""


def test_a_text_is_not_displayed_by_a_notebook(monkeypatch):
    shown = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *a: shown.append(a))
    assert "hit ratio" in repr(flashtwin.hits(LOAD, ["lru"], [64]))
    assert "mean response" in repr(flashtwin.compare(LOAD, ["lru", "fifo"], "demo", set=SMALL))
    assert shown == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pacing": 5}, r"pacing: 5: give flashtwin\.OpenLoop"),
        ({"seed": "a"}, "seed: 'a': give a whole number from 0"),
        ({"device": "dmeo"}, "did you mean demo"),
    ],
)
def test_wrong_types_and_names_are_explained(wrong, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.run(**({"workload": LOAD, "device": "demo"} | wrong))


def test_a_comparison_has_items():
    comparison = flashtwin.compare(LOAD, ["lru", "fifo"], "demo", set=SMALL)
    assert [(policy, result.policy) for policy, result in comparison.items()] == [("lru",) * 2, ("fifo",) * 2]


def test_a_figure_is_checked_before_the_simulation(cli, small_device, tmp_path):
    endless = ("--workload", "uniform:write=1,requests=1e10")
    for command in (
        ("compare", *endless, "--device", small_device, "--policies", "lru,fifo"),
        ("policy", "hits", *endless, "--policies", "lru", "--capacity", "1MiB"),
    ):
        result = cli(*command, "--figure", tmp_path / "x.doc")
        assert result.returncode == 2
        assert "must end in one of" in result.stderr


def test_a_mistyped_trace_suggests_the_nearest_file(tmp_path, monkeypatch):
    (tmp_path / "zapf").write_text("")
    monkeypatch.chdir(tmp_path)
    for wrong in ("zapff", str(tmp_path / "zpf")):
        with pytest.raises(flashtwin.WorkloadError, match=r"no such trace file; did you mean .*zapf\?"):
            flashtwin.run(wrong, "demo")


def test_a_device_can_be_pickled():
    spec = flashtwin.device("demo", SMALL, policy="cflru")
    assert pickle.loads(pickle.dumps(spec)).to_toml() == spec.to_toml()


@pytest.mark.parametrize("ask", [flashtwin.ftl_info, lambda name: flashtwin.trace_ftl(name, "0")])
def test_a_mistyped_ftl_suggests_the_nearest(ask):
    with pytest.raises(flashtwin.FlashtwinError, match=r"did you mean dftl\? known are dftl, bast"):
        ask("dflt")


def test_a_mistyped_format_suggests_the_nearest():
    options = flashtwin.TraceOptions(format="mqsm")
    with pytest.raises(flashtwin.FlashtwinError, match=r"did you mean mqsim\? known are csv"):
        flashtwin.trace_info(flashtwin.example_trace(), options)
