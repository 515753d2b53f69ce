"""Figures: their content, their requested width, readability in grey, and reproducibility."""

from itertools import pairwise

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin import plot
from flashtwin.plot import style

POLICIES = ["lru", "cflru", "gcar-lru"]


@pytest.fixture(scope="module")
def runs():
    each = [
        flashtwin.run(LOAD, "demo", set=SMALL, policy=policy, history=True, pacing=flashtwin.ClosedLoop(8))
        for policy in POLICIES
    ]
    return dict(zip(POLICIES, each, strict=True))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    experiment = {
        "devices": ["demo"],
        "policies": POLICIES,
        "workloads": ["zipf:theta=0.9,write=0.8,requests=1000"],
        "seeds": [1, 2, 3],
        "parameters": {"buffer.capacity": ["1 MiB", "4 MiB", "16 MiB"]},
        "set": SMALL,
    }
    return flashtwin.sweep(experiment, tmp_path_factory.mktemp("sweep") / "s", threads=1)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Run a sweep over two parameters and two policies."""
    experiment = {
        "devices": ["demo"],
        "policies": ["lru", "cflru"],
        "workloads": ["zipf:theta=0.9,write=0.8,requests=1000"],
        "parameters": {"buffer.capacity": ["1 MiB", "4 MiB", "16 MiB"], "gc.low_percent": [4, 6]},
        "set": {
            key: value for key, value in SMALL.items() if key not in ("buffer.capacity", "gc.low_percent")
        },
    }
    return flashtwin.sweep(experiment, tmp_path_factory.mktemp("sweep") / "two", threads=1)


def means(sweep, **where):
    """Return the mean response times of the rows with these values."""
    rows = sweep.table.to_pylist()
    return [row["all_mean_us"] for row in rows if all(row[axis] == value for axis, value in where.items())]


def test_heat_map_has_a_panel_for_each_policy_and_a_cell_for_each_point(two):
    figure = plot.heat(two, "all.mean_us", "buffer.capacity", "gc.low_percent")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["policy lru", "policy cflru"]
    for axes, policy in zip(figure.axes, ["lru", "cflru"], strict=False):
        cells = axes.collections[0].get_array().reshape(2, 3)
        for y, low in enumerate([4, 6]):
            for x, size in enumerate(["1 MiB", "4 MiB", "16 MiB"]):
                at = {"policy": policy, "set_buffer_capacity": size, "set_gc_low_percent": low}
                assert [cells[y][x]] == means(two, **at)
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["4", "6"] if policy == "lru" else True
        assert len(axes.texts) == 6
    one = plot.heat(two, "all.mean_us", "buffer.capacity", "gc.low_percent", where={"policy": "lru"})
    assert len(one.axes) == 2  # with the colour bar
    for chosen in ({}, {"over": "buffer.capacity"}, {"by": "gc.low_percent"}):
        found = plot.heat(two, "all.mean_us", where={"policy": "lru"}, **chosen).axes[0]
        assert (found.get_xlabel(), found.get_ylabel()) == ("buffer capacity", "gc low percent"), chosen
    with pytest.raises(flashtwin.FlashtwinError, match="two axes that vary; of policy, set_buffer"):
        plot.heat(two, "all.mean_us", where={"gc.low_percent": 4})


def test_lines_have_a_panel_for_each_value_of_an_axis(two):
    figure = plot.lines(two, "all.mean_us", "buffer.capacity", panels="gc.low_percent")
    assert [axes.get_title() for axes in figure.axes] == ["low percent 4", "low percent 6"]
    for axes, low in zip(figure.axes, [4, 6], strict=True):
        drawn = [list(container.lines[0].get_ydata()) for container in axes.containers]
        expected = [means(two, policy=policy, set_gc_low_percent=low) for policy in ("lru", "cflru")]
        assert drawn == expected


def test_bars_of_one_axis_differ_in_hatching(sweep):
    axes = plot.bars(sweep, "all.mean_us", where={"buffer.capacity": "1 MiB"}).axes[0]
    fills = {
        (bar.patches[0].get_hatch(), bar.patches[0].get_facecolor())
        for bar in axes.containers
        if hasattr(bar, "patches")
    }
    assert len(fills) == len(POLICIES)


def test_heat_map_from_the_command_line(two, tmp_path, cli):
    axes = ("--over", "buffer.capacity")
    result = cli("plot", "heat", two.directory, "--figure", "all.p99_us", "-o", tmp_path / "x.svg")
    assert result.returncode == 0, result.stderr
    result = cli(
        "plot",
        "lines",
        two.directory,
        "--figure",
        "all.p99_us",
        *axes,
        "--panels",
        "policy",
        "-o",
        tmp_path / "y.svg",
    )
    assert result.returncode == 0, result.stderr


def heights(axes):
    """Return the heights of bars by their names, in the order of their positions."""
    found = {}
    for container in axes.containers:
        if hasattr(container, "patches"):
            found.setdefault(container.get_label(), []).extend(bar.get_height() for bar in container)
    return found


def test_a_distribution_is_that_of_the_result(runs):
    axes = plot.cdf(runs, requests="write").axes[0]
    for line, result in zip(axes.lines, runs.values(), strict=True):
        cdf = result.cdf("write")
        assert list(line.get_xdata()) == cdf["response_us"].to_pylist()
        assert list(line.get_ydata()) == cdf["share"].to_pylist()


def test_percentiles_are_those_of_the_summary(runs):
    axes = plot.percentiles(runs).axes[0]
    for line, result in zip(axes.lines, runs.values(), strict=True):
        drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for nines, name in ((10, "p90_us"), (100, "p99_us"), (1000, "p999_us")):
            assert drawn[nines] == pytest.approx(result.latency[name], rel=1e-5)


def test_bars_of_the_breakdown_and_of_the_amplification_sum_to_their_totals(runs):
    for draw, whole in (
        (plot.breakdown, lambda result: result.latency["mean_us"]),
        (plot.amplification, lambda result: result.gc_write_amplification),
    ):
        stacked = heights(draw(runs).axes[0])
        for i, result in enumerate(runs.values()):
            shown = sum(column[i] for column in stacked.values())
            assert shown == pytest.approx(whole(result), rel=2e-3 if draw is plot.breakdown else 1e-12)
            assert whole(result) > 1.5


def test_time_and_collections_are_those_of_the_history(runs):
    figure = plot.over_time(runs, measures=["iops", "p99_us"])
    iops = figure.axes[0].lines
    for line, result in zip(iops, runs.values(), strict=True):
        assert list(line.get_ydata()) == result.history["iops"].to_pylist()
    figure = plot.gc_map(runs["lru"])
    shares = figure.axes[0].collections[0].get_array()
    by_window = runs["lru"].history["gc_share_by_chip"].to_pylist()
    assert shares.shape == (4, len(by_window))
    assert [list(column) for column in shares.T] == by_window


def test_bars_of_a_sweep_are_its_statistics(sweep):
    stacked = heights(plot.bars(sweep, "all.mean_us").axes[0])
    rows = sweep.statistics(["all_mean_us"]).to_pylist()
    for policy in POLICIES:
        assert stacked[policy] == [row["mean"] for row in rows if row["policy"] == policy]
    ratios = heights(plot.bars(sweep, "all.mean_us", normalized=True).axes[0])
    assert ratios["lru"] == [1, 1, 1]
    assert ratios["gcar-lru"] == [row["ratio"] for row in rows if row["policy"] == "gcar-lru"]
    turned = plot.bars(sweep, "all.mean_us", by="buffer.capacity", over="policy").axes[0]
    assert [text.get_text() for text in turned.get_xticklabels()] == POLICIES
    one = plot.bars(sweep, "all.mean_us", where={"buffer.capacity": "4 MiB"}).axes[0]
    assert [text.get_text() for text in one.get_xticklabels()] == POLICIES


def test_sizes_of_hit_ratios_are_written_in_full():
    """The axis is logarithmic, and no size is written as a power of ten."""
    table = flashtwin.hits("zipf:requests=100", ["lru"], [16, 1 << 8, 1 << 24, 1 << 26])
    axes = plot.hits(table).axes[0]
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.0625", "1", "65536", "262144"]


def test_lines_of_a_sweep_stand_at_their_sizes_with_their_intervals(sweep):
    axes = plot.lines(sweep, "all.p99_us", "buffer.capacity").axes[0]
    rows = [row for row in sweep.statistics(["all_p99_us"]).to_pylist() if row["policy"] == "cflru"]
    line, _, (interval,) = axes.containers[POLICIES.index("cflru")]
    assert list(line.get_xdata()) == [1, 4, 16]
    assert list(line.get_ydata()) == [row["mean"] for row in rows]
    for segment, row in zip(interval.get_segments(), rows, strict=True):
        assert segment[:, 1] == pytest.approx([row["mean_low"], row["mean_high"]])


@pytest.mark.parametrize(("columns", "inches"), [(1, 3.5), (2, 7.16)])
def test_a_figure_is_as_wide_as_columns_of_a_paper(runs, sweep, columns, inches, tmp_path):
    drawn = [draw(runs, columns=columns) for draw in (plot.cdf, plot.percentiles, plot.breakdown)]
    drawn += [draw(runs, columns=columns) for draw in (plot.amplification, plot.over_time, plot.gc_map)]
    drawn.append(plot.bars(sweep, "all.mean_us", columns=columns))
    drawn.append(plot.lines(sweep, "all.mean_us", "buffer.capacity", columns=columns))
    for figure in drawn:
        assert figure.get_size_inches()[0] == inches
    plot.save(drawn[0], tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:20]
    assert int.from_bytes(header, "big") == int(inches * 300)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_results_give_the_same_bytes(runs, kind, tmp_path):
    for name in ("a", "b"):
        plot.save(plot.breakdown(runs), tmp_path / f"{name}.{kind}")
    first = (tmp_path / f"a.{kind}").read_bytes()
    assert first == (tmp_path / f"b.{kind}").read_bytes()
    if kind == "pdf":
        # Text is embedded with TrueType fonts, so that it can be searched and publishers accept it.
        assert b"/TrueType" in first or b"/CIDFontType2" in first
        assert b"/Type3" not in first
        assert b"CreationDate" not in first


def grey(colour):
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_lines_and_bars_differ_without_colour():
    lines = [style.line(i) for i in range(12)]
    assert len({(str(line["linestyle"]), line["marker"]) for line in lines}) == 12
    bare = [style.line(i, markers=False) for i in range(5)]
    assert len({str(line["linestyle"]) for line in bare}) == 5
    fills = [style.fill(i) for i in range(10)]
    for i, one in enumerate(fills):
        for other in fills[:i]:
            difference = abs(grey(one["facecolor"]) - grey(other["facecolor"]))
            assert one["hatch"] != other["hatch"] or difference > 0.12, (one, other)
    for one, after in pairwise(fills):
        assert one["hatch"] != after["hatch"], "what lies on one another differs at a glance"


def test_undrawable_results_are_reported(runs, sweep, tmp_path):
    never = flashtwin.run(
        "uniform:write=0,requests=50", "demo", set=SMALL, precondition="none", pacing=flashtwin.ClosedLoop(1)
    )
    for draw, message in (
        (lambda: plot.cdf([]), "no runs to draw"),
        (lambda: plot.cdf(never, requests="write"), "no write whose response time"),
        (lambda: plot.cdf(never, requests="both"), "give all, read or write"),
        (lambda: plot.amplification(never), "no page was programmed for the host"),
        (lambda: plot.over_time(never), "history=True"),
        (lambda: plot.over_time(runs, measures=["speed"]), "measures: speed: give some of iops"),
        (lambda: plot.cdf(runs, columns=3), "give 1 or 2"),
        (lambda: plot.cdf(5), "found 5; give a Result"),
        (lambda: plot.cdf([5]), "found 5; give a Result"),
        (lambda: plot.bars(sweep, "all.speed"), "no column of numbers"),
        (lambda: plot.bars(sweep, "all.mean_us", by="speed"), "its axes are device, policy"),
        (lambda: plot.bars(sweep, "all.mean_us", where={"policy": "arc"}), "never arc; its values are lru"),
        (lambda: plot.bars(sweep, "all.mean_us", by="policy", over="policy"), "both are policy"),
        (lambda: plot.lines(sweep, "all.mean_us", "workload"), "set_buffer_capacity varies, too.*--panels"),
        (lambda: plot.save(plot.cdf(runs), tmp_path / "a.doc"), "must end in one of"),
    ):
        with pytest.raises(flashtwin.FlashtwinError, match=message):
            draw()


def test_the_command_draws_the_figures_of_the_functions(cli, runs, sweep, tmp_path):
    files = []
    for policy, result in runs.items():
        files.append(tmp_path / f"{policy}.json")
        result.save(files[-1])
    done = cli("plot", "cdf", *files, "--requests", "read", "--labels", "a,b,c", "-o", tmp_path / "cdf.svg")
    assert done.returncode == 0, done.stderr
    named = dict(zip("abc", files, strict=True))
    plot.save(plot.cdf(named, requests="read"), tmp_path / "same.svg")
    assert (tmp_path / "cdf.svg").read_bytes() == (tmp_path / "same.svg").read_bytes()
    asked = ("--figure", "all.mean_us", "--over", "buffer.capacity", "--where", "policy=lru", "--normalized")
    done = cli("plot", "lines", sweep.directory, *asked, "--columns", "2", "-o", tmp_path / "lines.svg")
    assert done.returncode == 0, done.stderr
    chosen = {"where": {"policy": "lru"}, "normalized": True, "columns": 2}
    plot.save(plot.lines(sweep, "all.mean_us", "buffer.capacity", **chosen), tmp_path / "same.svg")
    assert (tmp_path / "lines.svg").read_bytes() == (tmp_path / "same.svg").read_bytes()
    for arguments, message in (
        (("cdf", files[0], "--labels", "a,b", "-o", "a.svg"), "give 1 names"),
        (("cdf", tmp_path / "none.json", "-o", "a.svg"), "cannot read this record"),
        (("time", files[0], "--measures", "iops,x", "-o", "a.svg"), "measures: x"),
        (("bars", sweep.directory, "--figure", "all.mean_us", "--where", "lru", "-o", "a.svg"), "AXIS=VALUE"),
        (("bars", tmp_path, "--figure", "all.mean_us", "-o", "a.svg"), "no results.parquet"),
    ):
        done = cli("plot", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
