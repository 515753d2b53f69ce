"""The Python interface: results, determinism, errors."""

import json
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin._support.tables import PARTS


def run(workload=LOAD, **options):
    return flashtwin.run(workload, "demo", set=SMALL, **options)


def test_a_result_reports_what_was_run():
    result = run(policy="gcar-lru", seed=3)
    summary = result.summary
    assert summary["policy"] == result.policy == "gcar-lru"
    assert summary["seed"] == 3
    assert summary["precondition"] == "steady"
    assert summary["pacing"] == "closed loop at queue depth 32"
    assert summary["requests_submitted"] == 3000
    assert summary["counts"]["reads"]["requests"] + summary["counts"]["writes"]["requests"] == 3000
    assert 0 < result.hit_ratio < 1
    assert result.gc_write_amplification > 1
    assert not result.interrupted
    assert result.latency["p50_us"] <= result.latency["p99_us"] <= result.latency["max_us"]
    assert sum(result.breakdown.values()) == pytest.approx(result.latency["mean_us"])


def test_health_is_in_the_units_of_nvme_and_lifetime_follows_from_it():
    result = flashtwin.run(LOAD, "demo", set={**SMALL, "wear.rated_erases": 3000})
    summary, health = result.summary, result.health
    written = summary["counts"]["writes"]["bytes"]
    assert health["data_units_written"] == -(-written // 512_000)
    assert health["host_write_commands"] == summary["counts"]["writes"]["requests"]
    programs = sum(
        op["count"] for op in summary["flash"]["ops"] if op["name"] in {"destage", "gc_move", "summary"}
    )
    assert health["media_bytes_written"] == programs * summary["page_bytes"]
    amplification = health["device_write_amplification"]
    assert amplification == pytest.approx(health["media_bytes_written"] / written)
    life = health["lifetime"]
    days = life["warranty_years"] * 365
    drives = life["drive_writes_per_day"] * days * summary["exported_bytes"]
    assert drives == pytest.approx(life["host_tb_written"] * 1e12)
    at_this_rate = written / summary["span_s"] * life["years_at_this_rate"] * 365 * 86_400
    assert at_this_rate == pytest.approx(life["host_tb_written"] * 1e12)
    shown = repr(result)
    assert "drive writes a day over 5 years" in shown
    assert life["years_at_this_rate"] < 1
    assert f"5 years, {life['years_at_this_rate'] * 365:.3f} days at this rate" in shown
    assert "requests on average" in shown
    assert "Little" not in shown, "the same number, computed in another way"
    assert run().health["lifetime"] is None


def test_the_same_run_gives_the_same_bytes():
    first, second = run(seed=5), run(seed=5)
    assert first.to_json() == second.to_json()
    assert repr(first) == repr(second)
    assert run(seed=6).to_json() != first.to_json()


@pytest.mark.parametrize("device", ["demo", "tlc-client"])
def test_threads_change_nothing_and_compare_agrees_with_run(device):
    small = SMALL if device == "demo" else {"geometry.blocks_per_plane": 24, "geometry.pages_per_block": 64}
    small = small | {"geometry.reserve_percent": 25, "gc.low_percent": 5}
    options = {"set": small, "precondition": "random:0.5", "seed": 2}
    policies = ["lru", "gcar-lru", "cflru"]
    one = flashtwin.compare(LOAD, policies, device, threads=1, **options)
    two = flashtwin.compare(LOAD, policies, device, threads=2, **options)
    assert one.to_json() == two.to_json()
    for policy in policies:
        assert flashtwin.run(LOAD, device, policy=policy, **options).to_json() == one[policy].to_json()


def test_every_response_time_is_the_sum_of_its_parts(trace):
    result = run(trace, log=True, pacing=flashtwin.ClosedLoop(8))
    log = result.requests
    assert log.num_rows == 4000
    assert set(log["op"].to_pylist()) == {"read", "write", "trim", "flush"}
    assert set(log["status"].to_pylist()) == {"ok"}
    columns = {part: log[f"{part}_ps"].to_pylist() for part in PARTS}
    for i, response in enumerate(log["response_ps"].to_pylist()):
        assert sum(columns[part][i] for part in PARTS) == response
    host = [o in ("read", "write") for o in log["op"].to_pylist()]
    mean_us = sum(r for r, h in zip(log["response_ps"].to_pylist(), host, strict=True) if h) / sum(host) / 1e6
    assert mean_us == pytest.approx(result.latency["mean_us"])


def test_waits_for_slots_may_add_up_to_more_than_a_time_holds():
    slow = {"geometry.chips": 1, "buffer.capacity": "16 KiB", "timing.program_us": 1_000_000}
    load = "uniform:write=1,size=4k,rate=1000k/s,requests=6000,range=16M"
    summary = flashtwin.run(load, "demo", policy="lru", set={**SMALL, **slow}).summary
    buffer, write = summary["buffer"], summary["write"]
    slot_us = sum(us for part, us in write["parts_us"].items() if part.startswith("slot_"))
    waits_us = buffer["slot_waits"] * buffer["slot_wait_mean_us"]
    # The clock counts picoseconds in 64 bits; the sum is larger than its range.
    assert waits_us > 2 * 2**64 / 1e6
    assert waits_us == pytest.approx(write["requests"] * slot_us, rel=1e-9)


def test_the_log_in_a_file_is_the_log_in_memory(trace, tmp_path):
    path = tmp_path / "log.parquet"
    in_file = run(trace, log=path)
    assert in_file.requests is None
    assert pq.read_table(path).equals(run(trace, log=True).requests)
    assert [p.name for p in tmp_path.iterdir()] == ["log.parquet"]


def test_a_row_of_the_log_is_a_request_of_the_trace(trace):
    asked = [line.split(",") for line in trace.read_text().splitlines()[1:]]
    rows = run(trace, log=True).requests.to_pylist()
    assert sorted(row["request"] for row in rows) == list(range(len(asked)))
    start_ps = min(row["arrival_ps"] for row in rows)
    for row in rows:
        time_us, op, offset, size = asked[row["request"]]
        assert row["arrival_ps"] - start_ps == int(time_us) * 10**6
        assert row["op"] == {"R": "read", "W": "write", "T": "trim", "F": "flush"}[op]
        assert (row["offset_bytes"], row["size_bytes"]) == (int(offset), int(size))
        if op in "RW":
            assert row["pages"] == int(size) // 4096
            assert row["hits"] <= row["pages"]
        assert row["response_ps"] == sum(row[f"{part}_ps"] for part in PARTS)
        assert row["status"] == "ok"


def test_a_long_log_is_cut_into_groups_of_the_same_size(tmp_path):
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    for path in (first, second):
        run("uniform:write=0.5,requests=70k", log=path, warmup_requests=77)
    assert first.read_bytes() == second.read_bytes()
    file = pq.read_metadata(first)
    groups = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert groups == [32768, 32768, 70_000 - 77 - 65536]
    times = pq.read_table(first)
    done = pa.compute.add(times["arrival_ps"], times["response_ps"]).to_pylist()
    assert done == sorted(done)


def test_an_error_in_the_log_ends_the_run(monkeypatch):
    def broken(_table, _columns):
        raise RuntimeError("no room")

    monkeypatch.setattr(flashtwin._support.tables.RequestTable, "add", broken)
    with pytest.raises(RuntimeError, match="no room"):
        run("uniform:requests=1e9", log=True)


def test_warm_up_is_run_and_not_measured(trace):
    result = run(trace, warmup_requests=1000, requests_max=3000, log=True)
    assert result.summary["requests_submitted"] == 3000
    assert result.requests.num_rows == 2000
    assert result.requests["request"].to_pylist()[0] >= 1000


def test_the_series_counts_every_read_and_write(trace):
    result = run(trace, series_s=0.1)
    counts = result.summary["counts"]
    assert isinstance(result.series, pa.Table)
    assert sum(result.series["reads"].to_pylist()) == counts["reads"]["requests"]
    assert sum(result.series["writes"].to_pylist()) == counts["writes"]["requests"]
    assert run(trace).series.num_rows == 0


def test_the_distribution_ends_at_one_and_agrees_with_the_percentiles():
    result = run()
    cdf = result.cdf().to_pydict()
    assert cdf["share"][-1] == 1.0
    assert cdf["share"] == sorted(cdf["share"])
    median = next(us for us, share in zip(cdf["response_us"], cdf["share"], strict=True) if share >= 0.5)
    assert median == pytest.approx(result.latency["p50_us"], rel=0.002)


def test_pacing(trace):
    recorded = run(trace)
    faster = run(trace, pacing=flashtwin.OpenLoop(speed=10))
    flat_out = run(trace, pacing=flashtwin.AS_FAST_AS_POSSIBLE)
    assert recorded.summary["pacing"] == "open loop at the workload's times"
    assert faster.summary["span_s"] < recorded.summary["span_s"]
    assert flat_out.summary["inside"]["requests_mean"] > 100


def test_a_snapshot_stands_for_the_preconditioning_it_was_made_with(tmp_path):
    path = tmp_path / "demo.state"
    flashtwin.save_snapshot(path, "demo", set=SMALL, seed=4)
    from_file, direct = run(snapshot=path, seed=4).summary, run(seed=4).summary
    assert "steady" in from_file.pop("precondition")
    direct.pop("precondition")
    assert from_file == direct
    with pytest.raises(flashtwin.SnapshotError):
        flashtwin.run(LOAD, "demo", snapshot=path)


def test_the_printed_forms_hold_the_numbers():
    comparison = flashtwin.compare(LOAD, ["lru", "gcar-lru"], "demo", set=SMALL)
    assert len(comparison) == 2
    table = repr(comparison)
    assert "device write ampl." in table and "GC write ampl." in table
    assert "x" in table
    assert "gcar-lru" in comparison._repr_html_()
    assert comparison.table.column_names[0] == "policy"
    assert comparison.table.num_rows == 2
    result = comparison["lru"]
    assert "response time" in repr(result)
    assert "p99.9" in result._repr_html_()
    with pytest.raises(KeyError):
        comparison["sieve"]


def test_a_figure_is_written_and_the_same_results_draw_the_same_file(tmp_path):
    comparison = flashtwin.compare(LOAD, ["lru", "gcar-lru"], "demo", set=SMALL)
    for name in ("a.png", "b.png"):
        comparison.figure(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with pytest.raises(flashtwin.FlashtwinError, match=r"must end in one of: .*\.png"):
        comparison.figure(tmp_path / "c.doc")


def test_devices():
    assert {"demo", "ecr", "gcar", "harmonia"} <= set(flashtwin.devices())
    spec = flashtwin.device("demo", {"buffer.capacity": "8 MiB"}, policy="cflru")
    assert (spec.policy, spec.buffer_bytes) == ("cflru", 8 << 20)
    assert flashtwin.device("demo", {"buffer": None}).policy is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "arcc"}, 'did you mean "arc"'),
        ({"set": {"buffer.capcity": 1}}, 'did you mean "capacity"'),
        ({"device": "dmeo"}, "known are cbm, cosmos, demo"),
        ({"device": "/no/such.toml"}, "/no/such.toml"),
        ({"precondition": "warm"}, "steady"),
        ({"beyond": "ignore"}, "wrap"),
        ({"seed": -1}, "seed: -1"),
        ({"requests_max": 0}, "requests_max: 0"),
        ({"pacing": flashtwin.OpenLoop(0)}, "speed 0"),
        ({"series_s": 0}, "series interval"),
        ({"workload": "zipf:write=0.8"}, "requests=N"),
        ({"workload": "zipf:wrte=0.8"}, "did you mean write"),
        ({"workload": "/no/such/trace.csv"}, "no such trace file"),
        (
            {"trace_options": flashtwin.TraceOptions(format="msrr"), "workload": flashtwin.example_trace()},
            "msr",
        ),
        ({"snapshot": "/no/such.state"}, "/no/such.state"),
    ],
)
def test_errors_name_valid_values(wrong, message):
    arguments = {"workload": LOAD, "device": "demo"} | wrong
    with pytest.raises(flashtwin.FlashtwinError, match=None) as error:
        flashtwin.run(**arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": []}, "none given"),
        ({"policies": ["lru", "lru"]}, "twice"),
        ({"threads": 0}, "threads: 0"),
    ],
)
def test_errors_of_compare(wrong, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.compare(**({"workload": LOAD, "policies": ["lru"], "device": "demo"} | wrong))


def test_an_exception_of_a_progress_callback_ends_the_run():
    class EnoughError(Exception):
        pass

    def progress(_):
        raise EnoughError

    with pytest.raises(EnoughError):
        flashtwin.run("uniform:write=1,requests=1e9", "demo", set=SMALL, progress=progress)


def test_ctrl_c_keeps_the_results_so_far():
    def progress(p):
        if p.label == "lru" and p.done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(flashtwin.Interrupted) as stopped:
        flashtwin.run("uniform:write=1,requests=1e9", "demo", set=SMALL, progress=progress)
    partial = stopped.value.partial
    assert partial.interrupted
    assert 1000 < partial.summary["requests_submitted"] < 1e9
    assert "interrupted" in repr(partial)


def test_other_threads_run_while_a_device_does():
    seen = []
    done = threading.Event()

    def count():
        while not done.is_set():
            seen.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    run("uniform:write=0.8,requests=200000")
    took = time.monotonic() - began
    done.set()
    thread.join()
    assert len(seen) > took / 0.1


def test_trace_info_and_convert(trace, tmp_path):
    info = flashtwin.trace_info(trace)
    assert info["requests"] == 4000
    assert "footprint" in repr(info)
    new = tmp_path / "mixed.ftb"
    done = flashtwin.convert(trace, new)
    assert done.requests == 4000
    assert done.size_bytes == new.stat().st_size
    volatile = ("description", "lines", "volumes", "volumes_total")
    again = flashtwin.trace_info(new)
    assert {k: v for k, v in again.items() if k not in volatile} == {
        k: v for k, v in info.items() if k not in volatile
    }


def test_progress_knows_the_size_of_a_trace(trace, tmp_path):
    from flashtwin.workloads import source

    assert source(trace).estimate_requests() == pytest.approx(4001, rel=0.01)
    packed = tmp_path / "mixed.csv.zst"
    flashtwin.convert(trace, packed)
    assert source(packed).estimate_requests() == pytest.approx(4001, rel=0.01)
    assert source(flashtwin.example_trace()).estimate_requests() == pytest.approx(320_987, rel=0.1)
    assert source("example:mariadb_oltp").estimate_requests() == pytest.approx(535_758, rel=0.1)


def test_example_traces_are_workloads_by_name():
    both = [
        flashtwin.run(workload, "demo", requests_max=500, beyond="wrap").summary["all"]
        for workload in ("example:postgres_pgbench", flashtwin.example_trace())
    ]
    assert both[0] == both[1]
    with pytest.raises(
        flashtwin.WorkloadError, match=r"'example:mariadb': no such trace .* did you mean mariadb_oltp"
    ):
        flashtwin.run("example:mariadb", "demo")
    with pytest.raises(flashtwin.WorkloadError, match=r"there are mariadb_oltp, postgres_pgbench"):
        flashtwin.example_trace("../x")


def test_summaries_are_plain_json():
    assert json.loads(run().to_json())["flashtwin_version"] == flashtwin.__version__
