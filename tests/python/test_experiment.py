"""Invalid experiments: each error contains the file, the line, the key and a remedy."""

import pytest

import flashtwin
from conftest import LOAD, SMALL

EXPERIMENT = {"devices": ["demo"], "policies": ["lru", "gcar-lru"], "workloads": [LOAD], "set": SMALL}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('polices = ["lru"]', (":3: polices", "did you mean policies?")),
        ("policies = []", (":3: policies", "empty axis")),
        ('policies = ["lruu"]', (":3: policies", 'did you mean "lru"?')),
        ('policies = ["min"]', (":3: policies", "min runs on no device")),
        ('policies = ["lru", "lru"]', (":3: policies", "twice")),
        ("seeds = 3", (":3: seeds", "list of whole numbers")),
        ("seeds = [-1]", (":3: seeds", "from 0")),
        ('figures = ["all.meen_us"]', (":3: figures", "did you mean all_mean_us")),
        ('[parameters]\n"buffer.capcity" = ["1 MiB"]', (":4: parameters.buffer.capcity", '"capacity"')),
        ('[parameters]\nbuffer.capacity = ["1 MiB", "7 foo"]', (":4: parameters.buffer.capacity", "7 foo")),
        ('[parameters]\nbuffer.capacity = "1 MiB"', (":4: parameters.buffer.capacity", "list of values")),
        ("[set]\ngc.low_percent = [3, 4]", (":4: set.gc.low_percent", "an axis of [parameters]")),
        ("[set]\n# a comment\ngeometry.chip = 4", (":5: set.geometry.chip", '"chips"')),
        ("[run]\nqueue_dept = 4", (":4: run.queue_dept", "did you mean queue_depth?")),
        ('[run]\nqueue_depth = "4"', (":4: run.queue_depth", "a whole number")),
        ("[run]\nqueue_depth = 4\nspeed = 1.0", (":5: run.speed", "take one of them")),
        ('[baseline]\npolicy = "arc"', (":4: baseline.policy", "one of the values of that axis")),
        ("[baseline]\nseed = 1", (":4: baseline.seed", "no axis")),
        ("[run]\nrequests_log = 1", (":4: run.requests_log", "true or false")),
        ("[run]\nqueue_depth = true", (":4: run.queue_depth", "a whole number")),
        ('[parameters]\n"run.requests_log" = [true]', (":4: parameters.run.requests_log", "in [run]")),
        ("[trace]\nformatt = 1", (":4: trace.formatt", "did you mean format?")),
        ("[", ("not TOML", "line 3")),
    ],
)
def test_an_error_names_line_and_remedy(tmp_path, text, parts):
    path = tmp_path / "e.toml"
    path.write_text(f'devices = ["demo"]\nworkloads = ["{LOAD}"]\n{text}\n')
    with pytest.raises(flashtwin.FlashtwinError) as e:
        flashtwin.sweep(path, tmp_path / "out")
    for part in (str(path), *parts):
        assert part in str(e.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workloads": ["nothing.csv"]}, "workloads: nothing.csv: no such trace file"),
        ({"devices": ["nothing"]}, "devices: no device is called"),
        ({"workloads": ["uniform:write=1"]}, "endless"),
        ({"policies": [flashtwin.Policy]}, "your own class"),
        ({"devices": []}, "empty axis"),
    ],
)
def test_an_error_of_a_mapping_names_its_key(tmp_path, change, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.sweep({**EXPERIMENT, **change}, tmp_path / "out")
