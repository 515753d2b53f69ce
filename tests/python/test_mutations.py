"""The rule of SECURITY.md for inputs read in Python: a result or an error of flashtwin, no other exception.

FLASHTWIN_SEEDS=N multiplies the number of random mutations by N."""

import contextlib
import json
import sys

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin import FlashtwinError, plot, study
from flashtwin._report.data import of_runs
from flashtwin._support.record import labels_of, load_record
from flashtwin._sweep.experiment import read_experiment
from flashtwin.calibrate.results import read_results
from flashtwin.importing import import_file
from flashtwin.study import definition, show
from flashtwin.study.page import markdown
from mutations import deep, mutated, paths, seeded, toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RAID = """
name = "raid"
[array]
level = "raid5"
members = "demo*4"
[member]
geometry.blocks_per_plane = 64
"""
EXPERIMENT = {
    "name": "an experiment",
    "devices": ["demo"],
    "policies": ["lru", "cflru:window=0.5"],
    "workloads": [LOAD],
    "seeds": [1, 2],
    "figures": ["all.mean_us"],
    "baseline": {"policy": "lru"},
    "parameters": {"buffer.capacity": ["1 MiB", "2 MiB"], "run.queue_depth": [1, 2]},
    "set": dict(SMALL),
    "run": {"requests_max": 1000, "precondition": "random"},
    "trace": {"reorder_window": 10},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Create the records of an SSD and of an array."""
    place = tmp_path_factory.mktemp("records")
    (place / "raid.toml").write_text(RAID)
    found = []
    for device, settings in (("demo", SMALL), (place / "raid.toml", {})):
        path = place / f"{len(found)}.run"
        flashtwin.run(f"{LOAD},trim=0.05,flush=0.01", device, set=settings, history=True).save(path)
        found.append(json.loads(path.read_text()))
    return found


def attempt(work, *arguments):
    """Call a function. It may reject its input with an error of flashtwin."""
    with contextlib.suppress(FlashtwinError):
        work(*arguments)


def content(path):
    """Compute the content of a report."""
    record = load_record(path)
    data, *_ = of_runs([record], labels_of([record]))
    json.dumps(data, allow_nan=False)


def draw_all(path):
    """Draw every figure of a record, and compare the record with itself."""
    flashtwin.report([path, path], path.with_suffix(".html"))
    record = load_record(path)
    for function in (
        plot.amplification,
        plot.breakdown,
        plot.cdf,
        plot.gc_map,
        plot.over_time,
        plot.percentiles,
    ):
        attempt(draw, function, record, path.with_suffix(".svg"))


def draw(function, record, path):
    plot.save(function({"a run": record}), path)


@pytest.mark.parametrize("which", [0, 1])
def test_mutated_records_are_read_or_refused(records, which, tmp_path):
    path = tmp_path / "bad.run"
    for rng in seeded(50):
        path.write_text(json.dumps(mutated(records[which], rng, rng.choice([1, 1, 3]))))
        attempt(flashtwin.report, path, tmp_path / "x.html")


def test_record_without_any_one_key_is_read_or_refused(records, tmp_path):
    path = tmp_path / "bad.run"
    # All elements of a list have the same form, so only the first is mutated.
    keys = [way for way in paths(records[0]) if not any(isinstance(step, int) and step for step in way)]
    for *way, key in keys:
        record = json.loads(json.dumps(records[0]))
        at = record
        for step in way:
            at = at[step]
        del at[key]
        path.write_text(json.dumps(record))
        attempt(content, path)
    assert len(keys) > 150


def test_mutated_records_are_drawn_or_refused(records, tmp_path):
    path = tmp_path / "bad.run"
    for rng in seeded(6):
        path.write_text(json.dumps(mutated(records[rng.randrange(2)], rng)))
        attempt(draw_all, path)


def test_refused_record_names_file_key_and_remedy(records, tmp_path):
    path = tmp_path / "bad.run"
    del records[0]["summary"]["warnings"]
    path.write_text(json.dumps(records[0]))
    with pytest.raises(FlashtwinError, match=r"bad\.run: record\.summary: warnings is missing; run it again"):
        load_record(path)


def test_mutated_experiments_are_read_or_refused(tmp_path):
    path = tmp_path / "bad.toml"
    for rng in seeded(300):
        values = mutated(EXPERIMENT, rng, rng.choice([1, 1, 3]))
        attempt(read_experiment, values)
        path.write_text(toml(values), errors="surrogatepass")
        attempt(read_experiment, path)


@pytest.mark.parametrize("name", ["cbm", "harmonia"])
def test_mutated_studies_are_read_or_refused(tmp_path, name):
    path = tmp_path / "bad.toml"
    text = definition.shipped(name, ".toml").read_text()
    values = tomllib.loads(text)

    def read():
        found = definition.read(str(path))
        for matrix in found.matrices:
            for variant in definition.VARIANTS:
                attempt(read_experiment, found.experiment(matrix, variant))

    for rng in seeded(20):
        path.write_text(toml(mutated(values, rng)), errors="surrogatepass")
        attempt(read)


@pytest.mark.parametrize("name", ["cbm"])
def test_mutated_outcomes_are_shown_or_refused(tmp_path, name):
    path = tmp_path / "outcome.json"
    values = json.loads(definition.shipped(name, ".json").read_text())

    def read():
        found = study.outcome(str(path))
        show.tables(found, 100)
        show.summary(found)
        markdown(found)

    for rng in seeded(100):
        path.write_text(json.dumps(mutated(values, rng)))
        attempt(read)


@pytest.mark.parametrize("device", ["demo", "qlc", "raid"])
def test_mutated_devices_are_read_or_refused(tmp_path, device):
    path = tmp_path / "bad.toml"
    values = tomllib.loads(RAID if device == "raid" else flashtwin.device(device).to_toml())
    for rng in seeded(100):
        path.write_text(toml(mutated(values, rng, rng.choice([1, 1, 3]))), errors="surrogatepass")
        attempt(flashtwin.device, path)


def test_mutated_text_is_read_or_refused(tmp_path):
    path = tmp_path / "bad.toml"
    texts = [toml(EXPERIMENT), definition.shipped("cbm", ".toml").read_text(), RAID]
    for rng in seeded(50):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        more = rng.choice(["[" * 5000, "{a=" * 2000, "9" * 5000, "\0", '"""', "[[x]]\n", "\ufeff", "e" * 9])
        path.write_text(text[:at] + more + text[at + rng.randrange(20) :])
        for read in (read_experiment, lambda p: definition.read(str(p)), flashtwin.device, import_file):
            attempt(read, path)


def test_mutated_measurements_are_read_or_refused(tmp_path):
    time_us = {"percentile": {"50.000000": 1000, "99.000000": 5000}, "N": 100, "mean": 1.0, "max": 9000}
    side = {"io_bytes": 1 << 30, "bw_bytes": 1 << 20, "runtime": 1000, "total_ios": 100, "clat_ns": time_us}
    results = {"fio version": "fio-3.33", "jobs": [{"jobname": "read-size-4k", "error": 0, "read": side}]}
    manifest = {"capacity_bytes": 1 << 30, "experiments": [{"name": "read-size-4k"}], "seed": 1}
    for rng in seeded(100):
        of = rng.randrange(2)
        texts = [
            json.dumps(mutated(each, rng) if i == of else each) for i, each in enumerate((manifest, results))
        ]
        (tmp_path / "manifest.json").write_text(texts[0])
        (tmp_path / "read-size-4k.json").write_text(texts[1])
        attempt(read_results, tmp_path, ())


DEEP = {
    "deep list": "devices = " + "[" * 100_000,
    "deep table": "x=" + "{a=" * 50_000,
    "large number": f'devices=["demo"]\nworkloads=["{LOAD}"]\nseeds=[{"9" * 5000}]\n',
}


@pytest.mark.parametrize("kind", sorted(DEEP))
@pytest.mark.parametrize("command", [["sweep"], ["study", "run"], ["device", "show"]])
def test_extreme_toml_is_an_error(cli, tmp_path, kind, command):
    path = tmp_path / "deep.toml"
    path.write_text(DEEP[kind])
    done = cli(*command, path, *(["-o", tmp_path / "out"] if command != ["device", "show"] else []))
    assert done.returncode == 2
    assert done.stderr.startswith(f"flashtwin: error: {path}:")


def test_expression_of_a_thousand_terms_is_an_error(tmp_path):
    text = definition.shipped("cbm", ".toml").read_text()
    path = tmp_path / "chain.toml"
    for value in ("a" + "+a" * 20_000, "(" * 400 + "a" + ")" * 400, "-" * 499, "1" * 499, "a\\u0000"):
        first = text.index("\nvalue = ")
        path.write_text(f'{text[:first]}\nvalue = "{value}"{text[text.index(chr(10), first + 1) :]}')
        attempt(definition.read, str(path))
    path.write_text(f'{text[:first]}\nvalue = "{"a" + "+a" * 1000}"{text[text.index(chr(10), first + 1) :]}')
    with pytest.raises(FlashtwinError, match="value: 2001 characters; give at most 500"):
        definition.read(str(path))


@pytest.mark.parametrize("text", ["[" * 200_000, json.dumps(deep(900)), "9" * 5000, "nan", "", "{}"])
def test_extreme_record_is_an_error(tmp_path, text):
    path = tmp_path / "deep.run"
    path.write_text(text)
    with pytest.raises(FlashtwinError, match=r"deep\.run: no record of a run"):
        load_record(path)
