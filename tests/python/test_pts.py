"""SNIA's tests: the criterion by hand, rounds on an invented drive, and all tests on a small drive."""

import itertools
import json

import pytest

import flashtwin
from flashtwin._pts import tests as standard
from flashtwin._pts.drive import Access, Drive, Measured
from flashtwin._pts.steady import window_of

SMALL = {
    "geometry.blocks_per_plane": 32,
    "geometry.chips": 2,
    "geometry.reserve_percent": 20,
    "buffer.capacity": "256 KiB",
}


@pytest.mark.parametrize(
    ("values", "steady"),
    [
        ([100, 100, 100, 100, 100], True),
        # The range is exactly a fifth of the average; then slightly more.
        ([110, 90, 100, 90, 110], True),
        ([110.1, 90, 100, 90, 110], False),
        # The rise across the window is exactly a tenth; then slightly more.
        ([95, 97.5, 100, 102.5, 105], True),
        ([94.9, 97.5, 100, 102.5, 105.1], False),
        ([105.1, 102.5, 100, 97.5, 94.9], False),
        ([100, 100, 100, 100], False),
        ([0, 0, 0, 0, 0], False),
        # Only the last five count.
        ([900, 5, 100, 100, 101, 100, 100], True),
    ],
)
def test_steady_is_defined_as_in_the_standard(values, steady):
    assert window_of(values).steady == steady


def test_the_fitted_line_is_that_of_least_squares():
    window = window_of([7, 1, 10, 14, 9, 20, 17])
    # Computed by hand: rounds 3 to 7 have the mean 14 at round 5, and the slope (-2*-4 + 1*6 + 2*3 - 1*0 +
    # 0*-5) / 10.
    assert (window.first, window.last, window.average) == (3, 7, 14)
    assert window.slope == pytest.approx((-2 * -4 + -1 * 0 + 0 * -5 + 1 * 6 + 2 * 3) / 10)
    assert window.intercept == pytest.approx(14 - 5 * window.slope)
    assert window.range_percent == pytest.approx(100 * 11 / 14)
    assert window.slope_percent == pytest.approx(100 * 4 * window.slope / 14)


class MadeUp:
    """An invented drive.

    Writes of 4 KiB have the given figures, one per round. All other accesses have figures that change in each
    round.
    """

    def __init__(self, figures):
        self.figures = iter(figures)
        self.said = []

    def purge(self):
        self.said.append("purge")

    def write_through(self, label, access, times, queue_depth):
        self.said.append((access.block_bytes, access.reads_percent, access.sequential, times))

    def round(self, label, accesses, queue_depth, span_s):
        measured = {}
        for access in accesses:
            tracked = access == Access(4096, 0)
            value = next(self.figures) if tracked else len(self.said)
            self.said.append(access)
            measured[access] = Measured(value, value, value, value, value, 1.0)
        return measured


def test_rounds_end_with_the_first_steady_window_or_after_25():
    plan = standard.Plan(1.0, 32, lambda _: None)
    drive = MadeUp([500, 200, 100, 102, 99, 101, 100, *[1] * 30])
    (test,) = standard.iops(drive, plan)
    assert (test.window.first, test.window.last, test.window.steady) == (3, 7, True)
    assert drive.said[:2] == ["purge", (128 * 1024, 0, True, 2)]
    assert test.average(Access(4096, 0), "iops") == pytest.approx(100.4)
    within = [each[Access(8192, 100)].max_us for each in test.rounds[2:]]
    assert test.average(Access(8192, 100), "max_us") == max(within) > min(within)
    assert len(test.rounds[0]) == 7 * 8
    drive = MadeUp(itertools.cycle([100, 200]))
    (test,) = standard.latency(drive, plan)
    assert len(test.rounds) == 25
    assert (test.window.first, test.window.steady) == (21, False)


def drive():
    return Drive(flashtwin.device("demo", SMALL), seed=1, progress=None)


def test_a_drive_keeps_its_state_from_round_to_round_until_it_is_purged():
    tested, access = drive(), Access(4096, 0)
    fresh = tested.round("", [access], 8, 0.01)[access]
    assert fresh.gc_write_amplification == 1
    tested.write_through("", Access(128 * 1024, 0, sequential=True), 1, 8)
    tested.write_through("", access, 1, 8)
    used = tested.round("", [access], 8, 0.05)[access]
    assert used.gc_write_amplification > 1.2
    assert used.iops < fresh.iops / 2
    tested.purge()
    assert tested.round("", [access], 8, 0.01)[access].gc_write_amplification == 1


def test_measurements_of_a_round_obey_little_and_its_block_size():
    tested = drive()
    tested.write_through("", Access(128 * 1024, 0, sequential=True), 2, 8)
    for access, depth in (
        (Access(4096, 100), 8),
        (Access(8192, 65), 4),
        (Access(65536, 0, sequential=True), 1),
    ):
        measured = tested.round("", [access], depth, 0.2)[access]
        assert measured.iops * measured.mean_us * 1e-6 == pytest.approx(depth, rel=0.05)
        assert measured.mb_per_s == pytest.approx(measured.iops * access.block_bytes * 1e-6)
        assert measured.mean_us < measured.five_nines_us <= measured.max_us


def test_write_saturation_goes_from_the_new_drive_to_the_worn_in_one():
    tested = drive()
    found = standard.saturation(tested, standard.Plan(0.05, 16, lambda _: None))
    capacity = tested.spec.exported_bytes
    assert found.written_gb == pytest.approx(4 * capacity * 1e-9, rel=1e-4)
    whole = sum(found.iops) * found.interval_s * 4096
    assert 0.9 * 4 * capacity < whole <= 4 * capacity
    assert found.iops[0] > 2 * found.window.average
    assert found.amplification[0][1] == 1
    assert found.amplification[-1][1] > 1.2


@pytest.fixture(scope="module")
def results():
    return flashtwin.pts("demo", round_s=0.03, set=SMALL)


def test_a_report_has_every_test_its_tables_and_figures_and_the_same_bytes_again(results, tmp_path):
    path = results.write(tmp_path / "a" / "report")
    text = path.read_text()
    for title in ("Write saturation", "IOPS", "Throughput, 1024 KiB", "Throughput, 128 KiB", "Latency"):
        assert f"\n## {title}\n" in text
    assert (
        "- Rounds and intervals are 0.03 s of virtual time, not one minute: five see less of a slow drift."
        in text
    )
    drawn = sorted(file.name for file in path.parent.glob("*.svg"))
    assert len(drawn) == 1 + 4 + 2 + 2 + 3
    assert all(f"]({name})" in text for name in drawn)
    iops = next(test for test in results.rounds if test.name == "IOPS")
    said = f"{iops.average(Access(4096, 0), 'iops'):.0f}"
    (row,) = (line for line in text.splitlines() if line.startswith("| 4 KiB |") and line.count("|") == 9)
    assert row.split("|")[-2].strip() == said
    again = flashtwin.pts("demo", round_s=0.03, set=SMALL, which=["wsat"])
    kept = json.loads((path.parent / "report.json").read_text())
    assert json.loads(again.to_json())["tests"] == kept["tests"][:1]
    again.write(tmp_path / "again")
    assert (tmp_path / "again" / "wsat.svg").read_bytes() == (path.parent / "wsat.svg").read_bytes()


def test_the_command_writes_the_report_and_names_errors(cli, small_device, tmp_path):
    short = ("--tests", "throughput", "--round", "5ms", "--device", small_device)
    done = cli("pts", *short, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "report.json").read_text())
    assert "Throughput, 1024 KiB: " in done.stderr
    for arguments, message in (
        (("--round", "5"), "give a span of time"),
        (("--round", "0s"), "give the seconds of a round"),
        (("--tests", "iops,speed"), "tests: speed: give some of wsat"),
        (("--tests", ","), "there is none"),
        (("--queue-depth", "0"), "queue_depth: 0"),
        (("--seed", "-1"), "seed: -1"),
    ):
        done = cli("pts", *short, *arguments)
        assert done.returncode == 2
        assert message in done.stderr, done.stderr
    done = cli("pts", *short, "--set", "wear.erase_limit=2", "-o", tmp_path / "worn")
    assert done.returncode == 2
    assert "reached its end of life in a test (sequential:" in done.stderr
    assert not (tmp_path / "worn").exists()
