"""Studies: reading files, judging claims, and the consistency of the shipped outcomes and pages."""

import json
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import SMALL
from flashtwin import FlashtwinError, example_trace, results, run, study
from flashtwin._support.estimates import Estimate
from flashtwin.study.definition import DEMO, Claim, Measure
from flashtwin.study.expression import Expression
from flashtwin.study.figure import marks
from flashtwin.study.page import markdown, overview, write_html
from flashtwin.study.verdicts import (
    AS_PRINTED,
    CONDITIONAL,
    CONTRADICTORY,
    EXCLUDED,
    MET,
    MISSED,
    NO_EFFECT,
    NOT_REPRODUCED,
    OPEN,
    OPPOSITE,
    OTHER_SIZE,
    REPRODUCED,
    SAME_SIGN,
    UNDECIDED,
    UNMEASURED,
    UNTESTED,
    Reading,
    counts_of,
    pin_of,
    result_of,
    verdict_of,
)
from flashtwin.study.words import cases
from test_report import check, data_of

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
SET = "\n".join(f"{key} = {value}" for key, value in SMALL.items())
TEXT = f"""
title = "A study"
paper = "Nobody, Nowhere, 2000"
sentence = "It helps a little."
use = "Use it where GC is long."
about = "What it is about."

[workload.busy]
load = "zipf:theta=0.9,write=0.8"
arrivals.slow = "rate=2k/s"
arrivals.fast = "rate=20k/s"
trace = "Real"
source = "a folder"
published = "nothing"
stand_in = "all of it"

[matrix.main]
devices = ["demo"]
policies = ["lru", "gcar-lru"]
workloads = ["busy/slow", "busy/fast"]
seeds = [1, 2]
run.requests_max = 2000

[matrix.main.parameters]
"buffer.capacity" = ["1 MiB", "2 MiB"]

[matrix.main.set]
{SET}

[matrix.main.full]
seeds = [1, 2, 3]
run.requests_max = 4000

[[case]]
name = "fast arrivals"
why = "queues"
command = "flashtwin compare --device demo"
matrix = "main"
figure = "all_mean_us"
a.policy = "gcar-lru"
b.policy = "lru"
where.workload = "busy/fast"

[[pin]]
id = "P-1"
text = "hit ratio of LRU"
source = "Table 1"
matrix = "main"
figure = "hits_ratio"
a.policy = "lru"
value = "a"
unit = "percent"
printed = "some"
holds = [0, 100]

[[claim]]
id = "A-1"
text = "GCaR is faster"
source = "Fig. 1"
matrix = "main"
figure = "all_mean_us"
a.policy = "gcar-lru"
b.policy = "lru"
holds = [-99, 99]
readings = [{{ name = "fast", where.workload = "busy/fast" }}]
measures = [
  {{ name = "slow", where.workload = "busy/slow", printed = "-20 %" }},
  {{ name = "both, at most", where.workload = ["busy/slow", "busy/fast"], over = "max" }},
]

[[claim]]
id = "A-2"
text = "the moon is made of cheese"
matrix = "main"
figure = "hits_ratio"
a.policy = "gcar-lru"
value = "a"
unit = "percent"
above = 100
reason = "It is not."
causes = [{{ name = "at 1 MiB", where."buffer.capacity" = "1 MiB" }}]

[[claim]]
id = "A-3"
text = "hardware"
cannot_be_tested = "There is none."

[[change]]
id = "GCaR"
text = "what it adds to LRU"
reason = "It costs a look at each chip."
matrix = "main"
figure = "all_mean_us"
a.policy = "gcar-lru"
b.policy = "lru"
measures = [{{ name = "in fast arrivals", where.workload = "busy/fast" }}]

[[figure]]
title = "Fig. 1"
matrix = "main"
figure = "all_mean_us"
over = "buffer.capacity"
where.workload = "busy/slow"
base = {{ policy = "lru", "buffer.capacity" = "1 MiB" }}
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def test_a_study_is_run_judged_and_resumed(small, tmp_path, cli):
    out = tmp_path / "out"
    ran = cli("study", "run", small, "-o", out, "--threads", 2)
    assert ran.returncode == 0, ran.stderr
    first = (out / "study.json").read_bytes()
    found = json.loads(first)
    verdicts = {claim["id"]: claim["verdict"] for claim in found["claims"]}
    assert verdicts == {"A-1": REPRODUCED, "A-2": NOT_REPRODUCED, "A-3": UNTESTED}
    slow, both = found["claims"][0]["measures"]
    assert (slow["points"], both["points"], slow["seeds"]) == (2, 4, 2)
    assert slow["low"] < slow["value"] < slow["high"]
    assert slow["value"] <= both["value"]
    # The base of the figure is the first value of its own line.
    lru = found["figures"][0]["lines"][0]
    assert (lru["name"], lru["values"][0]) == ("lru", [1.0, 1.0, 1.0])
    assert "1 reproduced, 1 not reproduced, 1 not tested" in ran.stdout
    (pin,) = found["pins"]
    assert (pin["verdict"], pin["matrices"]) == (MET, ["main"])
    assert found["claims"][0]["footing"] == "robust"
    assert found["cases"][0]["measure"]["points"] == 2
    assert [mark[:2] for mark in marks(found)] == [("A-1", -20.0), ("fast arrivals", None)]
    assert (out / "small.svg").read_bytes().startswith(b"<?xml")
    again = cli("study", "run", small, "-o", out, "--threads", 1)
    assert again.returncode == 0, again.stderr
    assert (out / "study.json").read_bytes() == first
    fresh = cli("study", "run", small, "-o", tmp_path / "fresh", "--threads", 1)
    assert fresh.stdout.replace("fresh", "out") == ran.stdout
    assert (tmp_path / "fresh" / "study.json").read_bytes() == first
    assert (out / "study.md").read_text() == markdown(found)
    shown = cli("study", "show", out)
    assert shown.stdout.splitlines()[-1] in ran.stdout


def test_a_full_study_on_dask_has_the_bytes_of_threads(small, tmp_path, cli):
    for out, how in (("threads", ("--threads", 2)), ("dask", ("--dask", "local:2"))):
        ran = cli("study", "run", small, "--full", "-o", tmp_path / out, *how)
        assert ran.returncode == 0, ran.stderr
    for name in ("study.json", "study.md", "study.html", "main.sweep/results.parquet"):
        assert (tmp_path / "threads" / name).read_bytes() == (tmp_path / "dask" / name).read_bytes(), name
    found = json.loads((tmp_path / "dask" / "study.json").read_text())
    assert (found["variant"], found["matrices"][0]["cells"]) == ("full", 24)


#: Another claim on the matrix of the first claim.
SECOND = """
[[claim]]
id = "A-4"
text = "GCaR is faster in fast arrivals"
matrix = "main"
figure = "all_mean_us"
a.policy = "gcar-lru"
b.policy = "lru"
where.workload = "busy/fast"
below = {}
"""


def test_an_undecided_claim_gets_more_seeds(small, tmp_path):
    text = small.read_text()
    first = study.run_study(study.read(str(small)), tmp_path / "first", variant="full")
    slow = first["claims"][0]["measures"][0]
    assert slow["seeds"] == 3
    # The claim now has its own estimate as the threshold, instead of no effect. It therefore stays undecided.
    changed = text.replace('printed = "-20 %" }', f'printed = "-20 %", below = {slow["value"]} }}', 1)
    fast = first["claims"][0]["readings"][0]["value"]
    small.write_text(changed.replace("holds = [-99, 99]", "holds = [-99, -98]") + SECOND.format(fast))
    found = study.run_study(study.read(str(small)), tmp_path / "out", variant="full")
    assert found["claims"][-1]["measures"][0]["seeds"] in (13, 23), (
        "its seeds do not replace those of the first"
    )
    slow = found["claims"][0]["measures"][0]
    assert slow["seeds"] in (13, 23)
    assert found["matrices"][0]["cells"] == 24
    added = pq.read_table(tmp_path / "out" / "A-1.sweep" / "results.parquet")
    assert added.num_rows == (slow["seeds"] - 3) * 4, "two policies, two capacities, one workload"


def test_an_open_claim_of_few_seeds_names_the_remedy(small, tmp_path, cli):
    decided = cli("study", "run", small, "-o", tmp_path / "first")
    first = json.loads((tmp_path / "first" / "study.json").read_bytes())
    slow = first["claims"][0]["measures"][0]["value"]
    text = small.read_text()
    small.write_text(text.replace('printed = "-20 %" }', f'printed = "-20 %", below = {slow} }}', 1))
    undecided = cli("study", "run", small, "-o", tmp_path / "second")
    hint = "open: intervals of so few seeds are too wide; --full runs ten seeds"
    assert hint not in decided.stderr and hint in undecided.stderr


def test_a_study_counts_steady_runs(small, tmp_path):
    fixed = study.run_study(study.read(str(small)), tmp_path / "fixed", threads=1)
    assert fixed["matrices"][0]["steady"] is None
    assert "by a criterion" not in markdown(fixed)
    more = "run.requests_max = 2000\nrun.warmup_requests = 500\nrun.warmup_requests_max = 1000"
    small.write_text(TEXT.replace("run.requests_max = 2000", more))
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    counts = found["matrices"][0]["steady"]
    table = results(tmp_path / "out" / "main.sweep").table
    assert counts["runs"] == table.num_rows == 16
    assert counts["met"] == sum(table["steady_is_met"].to_pylist())
    assert set(table["steady_after_requests"].to_pylist()) <= {500, 1000}
    # Each run measures the same number of requests, whenever its measurement began.
    assert set(table["all_requests"].to_pylist()) == {1500}
    page = markdown(found)
    assert f"or up to a limit, {counts['met']} became steady" in page
    assert f"| main | 16 | {counts['met']} of 16, after " in page


def test_a_change_is_measured_and_not_judged(small, tmp_path):
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    (change,) = found["changes"]
    (measure,) = change["measures"]
    assert (measure["points"], measure["seeds"]) == (2, 2)
    page = markdown(found)
    _, _, section = page.partition("## What a change does")
    assert section.startswith("\n\n**GCaR**: what it adds to LRU\n\n| case | measured")
    assert "| in fast arrivals |" in section
    assert "It costs a look at each chip." in section
    # Changes have no verdicts. They are not counted among the claims.
    assert sum(counts_of(found["claims"]).values()) == 3
    write_html(found, tmp_path / "page.html")
    assert "in fast arrivals" in (tmp_path / "page.html").read_text()


def test_a_measure_is_the_ratio_of_the_sweep(small, tmp_path):
    small.write_text(
        TEXT.replace('name = "slow", where', 'name = "one", where."buffer.capacity" = "1 MiB", where')
    )
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    measure = found["claims"][0]["measures"][0]
    statistics = results(tmp_path / "out" / "main.sweep").statistics(["all_mean_us"]).to_pylist()
    (row,) = [
        row
        for row in statistics
        if row["policy"] == "gcar-lru"
        and row["set_buffer_capacity"] == "1 MiB"
        and row["workload"].endswith("rate=2k/s")
    ]
    for key, column in (("value", "ratio"), ("low", "ratio_low"), ("high", "ratio_high")):
        assert measure[key] == pytest.approx((row[column] - 1) * 100, rel=1e-4)


def test_a_trace_takes_the_place_of_its_stand_in(small, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    lines = [f"{i * 500},W,{i % 700 * 4096},4096" for i in range(2000)]
    (folder / "real.csv").write_text("\n".join(["time_us,op,offset_bytes,size_bytes", *lines]) + "\n")
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1, traces=folder)
    matrix = found["matrices"][0]
    assert matrix["axes"]["workload"] == ["busy (trace)"]
    assert matrix["cells"] == 8
    assert found["workloads"][0]["load"] == "the trace"
    assert str(folder) not in json.dumps(found)


def test_a_trace_on_disk_is_run_and_a_missing_one_is_named(small, tmp_path, cli):
    folder = tmp_path / "traces"
    folder.mkdir()
    shutil.copy(example_trace(), folder / "hm_0.csv.zst")
    another = (
        '[workload.other]\nload = "uniform:write=1"\ntrace = "prn_0"\nsource = "SNIA IOTTA"\n\n[matrix.main]'
    )
    text = TEXT.replace('trace = "Real"', 'trace = "hm_0"').replace("[matrix.main]", another, 1)
    small.write_text(text.replace('"busy/fast"]\nseeds', '"busy/fast", "other"]\nrun.beyond = "wrap"\nseeds'))
    ran = cli("study", "run", small, "-o", tmp_path / "out", "--threads", 2, "--traces", folder)
    assert ran.returncode == 0, ran.stderr
    assert f"trace prn_0: not in {folder}; its generated stand-in runs. Source: SNIA IOTTA" in ran.stderr
    assert "hm_0" not in ran.stderr
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    assert [load["name"] for load in found["workloads"]] == ["busy (trace)", "other"]
    assert "| busy (trace) | `the trace` |" in (tmp_path / "out" / "study.md").read_text()
    # The requests of the given trace ran, not those of the stand-in.
    table = results(tmp_path / "out" / "main.sweep").table
    recorded = [row for row in table.to_pylist() if row["workload"].endswith("hm_0.csv.zst")]
    direct = run(
        example_trace(), "demo", policy="lru", requests_max=2000, beyond="wrap", seed=1,
        set={**SMALL, "buffer.capacity": "1 MiB"},
    )  # fmt: skip
    means = {row["all_mean_us"] for row in recorded if row["policy"] == "lru"}
    assert direct.summary["all"]["mean_us"] in means


def test_variants_change_the_experiment(small):
    read = study.read(str(small))
    quick, full = (read.experiment("main", variant) for variant in ("quick", "full"))
    assert (quick["seeds"], quick["run"]) == ([1, 2], {"requests_max": 2000})
    assert (full["seeds"], full["run"]) == ([1, 2, 3], {"requests_max": 4000})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('text = "GCaR', 'txt = "GCaR', "text is missing"),
        ("holds = [-99, 99]", "hold = [-99, 99]", "hold: unknown; did you mean holds?"),
        ("holds = [-99, 99]", "holds = [-99]", "must be the two ends of a range"),
        ('matrix = "main"', 'matrix = "mian"', "must be one of main"),
        ('value = "a"', 'value = "a ** 2"', "only + - * / of numbers and a, b, c, d"),
        ('value = "a"', 'value = "a +"', "not an expression"),
        ('id = "A-2"', 'id = "A-1"', "claim A-1: there twice"),
        ('id = "A-2"', 'id = "A-2"\nsame_as = "A-9"', "no claim has this id"),
        ('id = "A-2"', 'id = "A-2"\nfooting = "sand"', "must be one of printed, stand-in"),
        ("holds = [0, 100]", "below = 0", "pin P-1: holds is missing"),
        ('source = "Table 1"', 'source = "Table 1"\nmatrices = ["mian"]', "pin P-1: matrices: no matrix"),
        ('figure = "hits_ratio"', 'figure = "hit_ratio"', "hit_ratio: no column"),
        (
            'where.workload = "busy/slow", printed',
            'where.workload = "busy/slwo", printed',
            "no value in matrix main, --quick",
        ),
        (
            'where."buffer.capacity" = "1 MiB"',
            'where."buffer.capacity" = "9 MiB"',
            "buffer.capacity = 9 MiB: no value in matrix main",
        ),
        ('b.policy = "lru"', 'b.polcy = "lru"', "polcy: no axis of matrix main"),
        ('workloads = ["busy/slow"', 'workloads = ["busy/slwo", "busy/slow"', "unknown arrivals"),
        ('devices = ["demo"]', 'devices = ["dem"]', "matrix.main"),
    ],
)
def test_errors_are_named(small, tmp_path, old, new, message):
    assert old in TEXT
    small.write_text(TEXT.replace(old, new))
    with pytest.raises(
        FlashtwinError, match=message.replace("*", r"\*").replace("+", r"\+").replace("?", r"\?")
    ):
        study.run_study(study.read(str(small)), tmp_path / "out", threads=1)


def test_an_unknown_study_suggests_the_nearest():
    with pytest.raises(FlashtwinError, match="did you mean gcar"):
        study.read("gcra")


def measure_of(holds, below, unit="change"):
    return Measure("", "m", "f", {}, {}, Expression("a", ""), "mean", unit, "", holds, below, None)


@pytest.mark.parametrize(
    ("found", "holds", "below", "result"),
    [
        ((-30, -35, -25), (-40, -20), 0, AS_PRINTED),
        ((-10, -15, -5), (-40, -20), 0, SAME_SIGN),
        ((-10, -25, 5), (-40, -20), 0, UNDECIDED),
        ((-30, -70, 10), (-40, -20), 0, UNDECIDED),
        ((10, 5, 15), (-40, -20), 0, OPPOSITE),
        ((1, -1, 2.5), (-40, -20), 0, NO_EFFECT),
        ((-2, -2.5, -1), (-40, -20), 0, NO_EFFECT),
        ((2, 1, 2.9), (-40, -20), 0, NO_EFFECT),
        ((-30, None, None), (-40, -20), 0, UNDECIDED),
        ((3, None, None), (-5, 5), None, AS_PRINTED),
        ((3, -40, 45), (-5, 5), None, UNDECIDED),
        ((7, None, None), (-5, 5), None, OTHER_SIZE),
        ((7, 4, 10), (-5, 5), None, UNDECIDED),
        ((-1, -2, -0.5), None, 0, AS_PRINTED),
        ((None, None, None), None, 0, UNMEASURED),
    ],
)
def test_results(found, holds, below, result):
    assert result_of(measure_of(holds, below), Estimate(*found)) == result


def test_a_ratio_has_no_effect_near_one():
    assert result_of(measure_of((0.5, 0.8), 1, "ratio"), Estimate(1.01, 0.98, 1.025)) == NO_EFFECT
    assert result_of(measure_of((5, 8), 9, "percent"), Estimate(10, 9.5, 10.5)) == OPPOSITE


@pytest.mark.parametrize(
    ("value", "contradicts", "verdict"),
    [(0.5, None, MET), (3, None, MISSED), (3, "another number", EXCLUDED), (None, None, UNMEASURED)],
)
def test_pins(value, contradicts, verdict):
    assert pin_of(measure_of((0, 1), None), Estimate(value, value, value), contradicts) == verdict


def claim_of(**given):
    base = {
        "id": "A", "text": "", "source": "", "measures": (), "footing": "printed", "condition": None,
        "readings": (), "same_as": None, "cannot_be_tested": None, "reason": None, "causes": (),
    }  # fmt: skip
    return Claim(**{**base, **given})


@pytest.mark.parametrize(
    ("given", "result", "readings", "missed", "verdict", "footing"),
    [
        ({}, AS_PRINTED, {}, [], REPRODUCED, "printed"),
        ({}, SAME_SIGN, {"D-1": AS_PRINTED}, [], REPRODUCED, "robust"),
        ({}, SAME_SIGN, {"D-1": OPPOSITE}, [], CONDITIONAL, "depends on D-1"),
        ({"condition": "chunks of 64 KiB"}, AS_PRINTED, {}, [], CONDITIONAL, "printed"),
        ({}, OPPOSITE, {"D-1": AS_PRINTED}, [], CONDITIONAL, "depends on D-1"),
        ({}, OPPOSITE, {"D-1": NO_EFFECT}, [], NOT_REPRODUCED, "robust"),
        ({}, NO_EFFECT, {}, [], NOT_REPRODUCED, "printed"),
        # If a reading is undecided, a pin (a value that the drive must reproduce) is missed, or a stand-in
        # replaces a trace, a claim stays open instead of being judged as not reproduced.
        ({}, OPPOSITE, {"D-1": UNDECIDED}, [], OPEN, "printed"),
        ({}, OPPOSITE, {"D-1": UNMEASURED}, [], OPEN, "printed"),
        ({}, OPPOSITE, {}, ["P-1"], OPEN, "printed"),
        ({"footing": "stand-in"}, OPPOSITE, {}, [], OPEN, "stand-in"),
        ({}, UNDECIDED, {}, [], OPEN, "printed"),
        # On a drive that differs from the paper's, a claim is reproduced only under a condition.
        ({}, AS_PRINTED, {}, ["P-1"], CONDITIONAL, "printed"),
        ({"footing": "vacuous"}, AS_PRINTED, {}, [], UNTESTED, "vacuous"),
        ({"footing": "self-contradictory"}, AS_PRINTED, {}, [], CONTRADICTORY, "self-contradictory"),
        ({"cannot_be_tested": "no hardware"}, "", {}, [], UNTESTED, "printed"),
    ],
)
def test_verdicts(given, result, readings, missed, verdict, footing):  # noqa: PLR0917 (columns of the table)
    found = verdict_of(claim_of(**given), result, [Reading(*each) for each in readings.items()], missed)
    assert (found.verdict, found.footing) == (verdict, footing)
    assert (found.condition is not None) == (verdict == CONDITIONAL)


def test_a_missed_pin_turns_the_verdict(small, tmp_path):
    small.write_text(TEXT.replace("holds = [0, 100]", "holds = [101, 102]"))
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    verdicts = {claim["id"]: claim["verdict"] for claim in found["claims"]}
    assert verdicts == {"A-1": CONDITIONAL, "A-2": OPEN, "A-3": UNTESTED}
    assert "the drive may differ from the paper's (missed: P-1)" in markdown(found)


def test_the_same_number_counts_once(small, tmp_path):
    small.write_text(TEXT.replace('id = "A-2"', 'id = "A-2"\nsame_as = "A-1"'))
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    assert sum(counts_of(found["claims"]).values()) == 2


def test_expressions():
    expression = Expression("(a / b - 1) * 2 + c", "")
    assert expression.names == {"a", "b", "c"}
    assert expression.of({"a": 3.0, "b": 2.0, "c": 1.0}) == 2.0
    assert expression.of({"a": 3.0, "b": 0.0, "c": 1.0}) is None


def test_a_page_in_a_browser(small, tmp_path):
    found = study.run_study(study.read(str(small)), tmp_path / "out", threads=1)
    page = tmp_path / "page.html"
    write_html(found, page)
    dom = check(page, tmp_path, {"figure-0"})
    assert "the moon is made of cheese" in dom
    assert "It is not." in dom
    assert data_of(page)["kind"] == "study"


@pytest.mark.parametrize("name", study.names())
@pytest.mark.parametrize("variant", ["quick", "full"])
def test_shipped_studies_select_what_their_matrices_have(name, variant):
    study.check(study.read(name), variant)


@pytest.mark.parametrize("name", study.names())
def test_the_shipped_outcome_is_of_the_shipped_study(name):
    read, found = study.read(name), study.outcome(name)
    assert [claim["id"] for claim in found["claims"]] == [claim.id for claim in read.claims]
    for claim, judged in zip(read.claims, found["claims"], strict=True):
        assert judged["text"] == claim.text
        assert [measure["name"] for measure in judged["measures"]] == [m.name for m in claim.measures]
        assert judged["verdict"] != UNMEASURED
        # Every verdict other than reproduced has a reason.
        assert judged["verdict"] == REPRODUCED or judged["reason"], claim.id
        # A claim is judged as not reproduced only if other interpretations of the paper (readings) were tried
        # as well, on a drive that does not differ from the paper's (no pin was missed).
        assert judged["verdict"] != NOT_REPRODUCED or (judged["readings"] and not judged["missed_pins"])
    assert not any(matrix["failed"] for matrix in found["matrices"])


@pytest.mark.parametrize("name", study.names())
def test_the_page_is_of_the_shipped_outcome(name):
    assert (PAGES / f"{name}.md").read_text() == markdown(study.outcome(name))


def test_the_summary_is_of_the_shipped_outcomes(cli):
    shown = cli("study", "list", "--markdown").stdout
    assert shown == overview([study.outcome(name) for name in study.names()])
    assert (PAGES / "README.md").read_text() == shown


@pytest.mark.parametrize("name", study.names())
def test_the_front_page_has_the_sentence_of_each_study(name):
    front = " ".join((PAGES.parents[1] / "README.md").read_text().split())
    assert f"(docs/reproduction/{name}.md): {study.outcome(name)['sentence']}" in front


def test_the_demo_is_shown_by_guide_and_front_page():
    read, found = study.read(DEMO), study.outcome(DEMO)
    assert DEMO not in study.names()
    assert not found["claims"]
    assert [case["measure"]["name"] for case in found["cases"]] == [case.name for case in read.cases]
    assert {"printed", "command"} <= set(cases(found)[0])
    guide = (PAGES.parent / "guide.md").read_text()
    assert all(row in guide for row in markdown(found).split("![")[0].splitlines() if row.startswith("|"))
    assert found["sentence"] in " ".join((PAGES.parents[1] / "README.md").read_text().split())


def test_a_command_of_the_demo_gives_its_row_again(tmp_path, cli):
    shipped = study.outcome(DEMO)
    (case,) = [case for case in shipped["cases"] if case["measure"]["name"].startswith("CBM (")]
    command = shlex.split(case["command"])
    assert command[0] == "flashtwin"
    ran = cli(*command[1:], "-o", tmp_path / "again", "--threads", 1)
    assert ran.returncode == 0, ran.stderr
    again = json.loads((tmp_path / "again" / "study.json").read_text())
    assert again["cases"] == [case]
    assert [matrix["name"] for matrix in again["matrices"]] == ["cbm"]


def test_some_matrices_of_a_study(small):
    read = study.read(str(small))
    assert read.only(["main"]).claims == read.claims[:2]  # the third is in no matrix
    with pytest.raises(FlashtwinError, match=r"no matrix is called 'mian'; did you mean main\?"):
        read.only(["mian"])


def test_claims_of_a_study_are_run_alone(small, tmp_path, cli):
    read = study.read(str(small))
    one = read.only_claims(["A-2"])
    assert [claim.id for claim in one.claims] == ["A-2"]
    assert (list(one.matrices), len(one.pins), one.changes, one.figures) == (["main"], 1, (), ())
    with pytest.raises(FlashtwinError, match=r"no claim is called 'a-22'; did you mean A-2\?"):
        read.only_claims(["a-22"])
    with pytest.raises(FlashtwinError, match=r"A-3 cannot be run: There is none\."):
        read.only_claims(["A-3"])
    result = cli("study", "run", small, "--claim", "A-2", "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert "A-2" in result.stdout and "A-1" not in result.stdout


def test_claims_of_a_study_are_shown_alone(cli):
    shown = cli("study", "show", "ecr", "--claim", "ECR-F13").stdout
    claim = next(each for each in study.outcome("ecr")["claims"] if each["id"] == "ECR-F13")
    assert f"ECR-F13 ({claim['source']}): {claim['text']}" in shown
    assert "ECR-F12" not in shown
    whole = json.loads(cli("study", "show", "ecr", "--claim", "ECR-F13,ECR-F12", "--json").stdout)
    assert sorted(each["id"] for each in whole["claims"]) == ["ECR-F12", "ECR-F13"]
    wrong = cli("study", "show", "ecr", "--claim", "ecr-f131")
    assert wrong.returncode == 2
    assert "did you mean ECR-F13?" in wrong.stderr


def test_file_of_a_study_is_printed(cli, tmp_path):
    copy = tmp_path / "copy.toml"
    copy.write_text(cli("study", "show", "ecr", "--toml").stdout)
    assert study.read(str(copy)).matrices == study.read("ecr").matrices


#: Claims of the five papers, by figure or table: claims that can be tested, and claims for which the study
#: states why they cannot be tested.
CLAIMS = {
    "gcar": "GCAR-: F2 F6a F6b F6c F7 F8a F8b F9a F9b F9c F10 F11 F12 F13 F14 T5",
    "harmonia": "HAR-: F1 F2 T3 T4 F3 T6 F4 F6 F7a F7b F8 F9 F10 F11a F11b F12 F13 T10",
    "ecr": "ECR-: F2 F3 F4 F6 F7 F8 F9 F10 F11 T4 F12 F13 F14 F15 F16",
    "cda-gc": "CDA-: F9a F9c F10a F10b F10c F11 F12 F13 F14 F15 F16 F11-16t F17 order",
    "cbm": "CBM-: F2 F3 F9 F10 F11 F12 F13 F14 F16 abs",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_of_the_papers_has_a_row(name):
    paper, claims = CLAIMS[name].split(": ")
    assert [claim.id for claim in study.read(name).claims] == [paper + claim for claim in claims.split()]
    for claim in study.outcome(name)["claims"]:
        assert bool(claim["measures"]) != (claim["verdict"] == UNTESTED), claim["id"]


def test_list_counts_verdicts(cli):
    listed = json.loads(cli("study", "list", "--json").stdout)
    assert [each["study"] for each in listed] == study.names()
    for each in listed:
        counted = [claim for claim in study.read(each["study"]).claims if claim.same_as is None]
        assert sum(each["verdicts"].values()) == len(counted)
