"""Traces of other programs: tables in columns, keys, traces without times, hints in errors."""

import gc
import gzip
import json
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import flashtwin
from conftest import SMALL
from test_cli import wrong

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
COLUMNS = "time=when:datetime,offset=lba:pages,size=n:sectors,op=write:write=true,volume=disk"


def table():
    """Return a table of 60 requests, one per second, with columns that a replay does not use."""
    return pa.table(
        {
            "when": pa.array([1_700_000_000_000_500 + i * 1_000_000 for i in range(60)], pa.timestamp("us")),
            "lba": pa.array(range(60), pa.uint32()),
            "n": [8.0] * 60,
            "note": ['two\nlines, "quoted"'] * 60,
            "disk": pa.array(["a"] * 60).dictionary_encode(),
            "nested": [[1, 2]] * 60,
            "write": [i % 3 == 0 for i in range(60)],
        }
    )


def write(path, form):
    if form == "parquet":
        pq.write_table(table(), path, row_group_size=7)
    elif form == "arrow":
        feather.write_feather(table(), str(path))
    else:
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table().schema) as writer:
            writer.write_table(table())
    return path


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_tables_in_columns_are_read_like_text(tmp_path, form):
    path = write(tmp_path / f"t.{form}", form)
    info = flashtwin.trace_info(path, flashtwin.TraceOptions(columns=COLUMNS))
    assert (info["reads"]["requests"], info["writes"]["requests"]) == (40, 20)
    assert (info["span_s"], info["footprint_pages"], info["size_max_bytes"]) == (59.0, 60, 4096)
    assert [volume["name"] for volume in info["volumes"]] == ["a"]
    assert info["description"].startswith(f"t.{form}: csv trace")
    with pytest.raises(flashtwin.WorkloadError, match=r"t\.\w+.*begins .*when.*--columns"):
        flashtwin.trace_info(path)


def test_parquet_from_a_pipe_and_as_another_volume(cli, tmp_path):
    path = write(tmp_path / "t.parquet", "parquet")
    piped = cli("trace", "info", "-", "--columns", COLUMNS, stdin=path.open("rb"))
    assert piped.returncode == 0, piped.stderr
    assert "60: 40 reads, 20 writes" in piped.stdout


def test_changed_table_is_read_again(tmp_path):
    path = tmp_path / "t.parquet"
    options = flashtwin.TraceOptions(columns="offset=lba:pages")
    for rows in (3, 5):
        pq.write_table(pa.table({"lba": list(range(rows))}), path)
        assert flashtwin.trace_info(path, options)["requests"] == rows


def test_damaged_table_is_an_error_with_its_name(cli, tmp_path):
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    wrong(cli("trace", "info", path), "bad.parquet: cannot be read as a table in the form of Parquet")
    whole = write(tmp_path / "t.parquet", "parquet").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    wrong(cli("trace", "info", path), "bad.parquet: cannot be read as a table in the form of Parquet")


@pytest.mark.parametrize("name", ["log.parquet", "log.arrow"])
def test_request_log_replays_as_the_run_that_wrote_it(tmp_path, name):
    options = {"device": "demo", "set": SMALL, "precondition": "none"}
    log = tmp_path / "log.parquet"
    # Bursts of requests at the same instant. They complete in a different order.
    load = "uniform:write=0.7,size=list(4k*50+64k*50),on_rate=1e7/s,on_length=30,duty=0.001,requests=2000"
    first = json.loads(flashtwin.run(load, log=log, **options).to_json())
    rows = pq.read_table(log)
    assert rows.column("request").to_pylist() != sorted(rows.column("request").to_pylist())
    if name.endswith("arrow"):
        feather.write_feather(rows, str(tmp_path / name))
    again = json.loads(flashtwin.run(tmp_path / name, **options).to_json())
    assert again.pop("workload") == f"{name}: csv trace (a request log of flashtwin; plain)"
    first.pop("workload")
    different = {key for key in first if first[key] != again.get(key)}
    assert different <= {"seed", "warnings"}


class Stream:
    """A table of another package, which has only the Arrow PyCapsule interface."""

    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self.rows.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", [lambda rows: rows, Stream], ids=["arrow", "stream"])
def test_table_in_memory_is_a_trace(tmp_path, kind):
    options = flashtwin.TraceOptions(columns=COLUMNS)
    path = write(tmp_path / "t.parquet", "parquet")
    pages = [8, 100]
    found = flashtwin.hits(kind(table()), ["lru", "arc"], pages, trace_options=options)
    assert found.rows == flashtwin.hits(path, ["lru", "arc"], pages, trace_options=options).rows
    run = {"device": "demo", "set": SMALL, "trace_options": options, "precondition": "none"}
    ours, theirs = (flashtwin.run(rows, **run).summary for rows in (kind(table()), path))
    assert ours.pop("workload").startswith(("Table: csv trace", "Stream: csv trace"))
    theirs.pop("workload")
    assert ours == theirs
    both = flashtwin.compare(kind(table()), ["lru", "fifo"], **run)
    assert both["lru"].summary["all"] == ours["all"]
    with pytest.raises(flashtwin.WorkloadError, match=r"^(Table|Stream): no known trace format.*when"):
        flashtwin.hits(kind(table()), ["lru"], pages)


def test_files_of_tables_in_memory_end_with_their_use(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    flashtwin.hits(table(), ["lru"], [8], trace_options=flashtwin.TraceOptions(columns=COLUMNS))
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_request_log_in_memory_replays_as_the_run_that_wrote_it():
    options = {"device": "demo", "set": SMALL, "precondition": "none"}
    first = flashtwin.run("uniform:write=0.7,rate=1e5/s,requests=2000", log=True, **options)
    assert flashtwin.run(first.requests, **options).summary["all"] == first.summary["all"]


def test_table_with_the_columns_of_our_own_traces_needs_no_options(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i * 50}.5,{'RWTW'[i % 4]},{i % 37 * 4096},4096" for i in range(100)]
    path.write_text("\n".join(["time_us,op,offset_bytes,size_bytes", *lines]))
    columns = zip(*(line.split(",") for line in lines), strict=True)
    times, ops, offsets, sizes = columns
    rows = {"time_us": [*map(float, times)], "op": ops, "note": ops}
    rows |= {"offset_bytes": [*map(int, offsets)], "size_bytes": [*map(int, sizes)]}
    run = {"device": "demo", "set": SMALL, "precondition": "none"}
    ours, theirs = (flashtwin.run(each, **run).summary for each in (pa.table(rows), path))
    assert ours | {"workload": ""} == theirs | {"workload": ""}


def test_placement_column_of_a_table_in_memory_is_read():
    rows = {"time_us": [0.0, 1.0], "op": ["W", "W"], "offset_bytes": [0, 4096], "size_bytes": [4096, 4096]}
    run = {"device": "demo", "set": SMALL, "precondition": "none"}
    result = flashtwin.run(pa.table(rows | {"placement": [None, 65534]}), **run)
    assert result.summary["all"]["requests"] == 2
    with pytest.raises(flashtwin.WorkloadError, match=r'line 3: placement \(column 5\): found "65535"'):
        flashtwin.run(pa.table(rows | {"placement": [None, 65535]}), **run)


def test_strings_of_polars_are_read():
    rows = table().set_column(4, "disk", pa.array(["a"] * 60, pa.string_view()))
    found = flashtwin.hits(rows, ["lru"], [8], trace_options=flashtwin.TraceOptions(columns=COLUMNS))
    assert found["lru", 8].accesses == 60


def test_anything_else_is_refused_with_the_remedy():
    with pytest.raises(flashtwin.WorkloadError, match=r"found list; must be .*__arrow_c_stream__.*pandas"):
        flashtwin.run([1, 2], device="demo")


def test_import_and_text_traces_need_no_arrow(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,R,0,4096\n5,W,0,4096\n")
    code = f"import sys, flashtwin; flashtwin.trace_info({str(path)!r}); sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_keys_alone_are_enough_for_hits(cli, tmp_path):
    path = tmp_path / "loop.trace"
    path.write_text("".join(f"{i % 300}\n" for i in range(1500)))
    done = cli("policy", "hits", path, "--columns", "offset=1:pages", "--policies", "lru,min",
               "--capacity", "400KiB", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["policy"]: row["hits"] for row in json.loads(done.stdout)["rows"]}
    # The load is a loop over 300 pages in a buffer of 100. LRU evicts each page before its next access. MIN
    # hits at least 99 pages per round.
    assert rows["lru"] == 0
    assert 99 * 4 <= rows["min"] <= 100 * 4 + 4
    wrong(cli("policy", "hits", path, "--capacity", "400KiB"), "--columns offset=1:pages")


def test_trace_without_times_runs_in_a_closed_loop(cli, tmp_path):
    untimed = tmp_path / "untimed.csv"
    lines = [f"{i * 8 % 5000},8,{'RW'[i % 2]}\n" for i in range(500)]
    untimed.write_text("".join(lines))
    columns = "offset=1:sectors,size=2:sectors,op=3"
    done = cli("run", untimed, "--columns", columns, "--device", "demo", *SETTINGS, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pacing"] == "closed loop at queue depth 32"
    # All requests arrive at the same time, in a form of trace that has times.
    same = tmp_path / "same.csv"
    same.write_text("".join(f"7,{line[-2]},{i * 4096},4096\n" for i, line in enumerate(lines)))
    assert json.loads(flashtwin.run(same, device="demo", set=SMALL).to_json())["pacing"].startswith("closed")
    wrong(
        cli("run", same, "--device", "demo", *SETTINGS, "--speed", "2"), "no arrival times", "--queue-depth"
    )
    same.write_text(same.read_text() + "8,R,0,4096\n")
    assert json.loads(flashtwin.run(same, device="demo", set=SMALL).to_json())["pacing"].startswith("open")


def test_sweep_paces_a_trace_without_times_as_run_does(tmp_path):
    (tmp_path / "untimed.trace").write_text("".join(f"{i * 3 % 500}\n" for i in range(300)))
    (tmp_path / "sweep.toml").write_text(
        'devices = ["demo"]\npolicies = ["lru"]\nworkloads = ["untimed.trace"]\nseeds = [1]\n'
        '[trace]\ncolumns = "offset=1:pages"\naddresses = "compact"\n'
        '[run]\nprecondition = "none"\n'
    )
    flashtwin.sweep(tmp_path / "sweep.toml", tmp_path / "out")
    swept = flashtwin.results(tmp_path / "out").table.to_pylist()[0]
    options = flashtwin.TraceOptions(columns="offset=1:pages", addresses="compact")
    ran = flashtwin.run(
        tmp_path / "untimed.trace", device="demo", policy="lru", precondition="none", trace_options=options
    )
    assert swept["all_mean_us"] == pytest.approx(json.loads(ran.to_json())["all"]["mean_us"])


def test_error_beyond_the_device_names_the_volumes(cli, tmp_path):
    path = tmp_path / "devices.trace"
    path.write_text("".join(f"{i * 10**6} {i} {100 * i} 16 1\n" for i in range(1, 900)))
    done = cli("run", path, "--format", "mqsim", "--device", "demo", *SETTINGS)
    wrong(done, "899 volumes are laid end to end", "--volumes overlay", "--addresses compact")


def test_op_codes_that_never_occur_are_reported(cli, tmp_path):
    path = tmp_path / "scsi.csv"
    path.write_text("time,op,size,lbn\n500,2a,512,1\n501,28,4096,2\n501,8a,8192,3\n502,35,0,4\n")
    columns = "time=time:ms,offset=lbn:sectors,size=size,op=op:write=2a|8b"
    done = cli("trace", "info", path, "--columns", columns)
    assert 'no request has the op code "8b"' in done.stdout
    assert 'count as reads: "28" (1), "8a" (1), "35" (1)' in done.stdout
    right = cli("trace", "info", path, "--columns", columns.replace("2a|8b", "2a,8a:read=28:skip=35"))
    assert "3: 1 reads, 2 writes" in right.stdout
    assert "warning" not in right.stdout
    wrong(
        cli("trace", "info", path, "--columns", columns, "--time-unit", "us"), "--time-unit", "leave one out"
    )


MOBILE = "time=timestamp:s,offset=sector:sectors,size=size:sectors,op=rw_flag"


def mobile(rng, writes, reads, begin):
    """Return requests of a phone as MobileBlockIOTraces has them, with their times in seconds."""
    ops = ["W"] * writes + ["R"] * reads
    rng.shuffle(ops)
    return [
        (op, rng.randrange(4_000) * 8 + 200_000_000 * (i % 2), rng.choice((8, 16, 128)), begin + i * 0.003)
        for i, op in enumerate(ops)
    ]


def lines(requests):
    return "".join(f"Thread-{i % 3} #1,259:0,{op},{sector},{size},{time:.6f}\n"
                   for i, (op, sector, size, time) in enumerate(requests))  # fmt: skip


def test_device_is_aged_by_one_trace_and_measured_with_another(cli, tmp_path):
    rng = random.Random(1)
    aging = mobile(rng, 600, 0, 1_700_000_000)
    measured = mobile(rng, 900, 300, 1_700_000_100)
    header = "process,device,rw_flag,sector,size,timestamp\n"
    paths = [
        tmp_path / name for name in ("app_precond.csv.gz", "app_exec.csv.gz", "app.csv.gz", "both.csv.gz")
    ]
    first, second = header + lines(aging), header + lines(measured)
    # Older files of MobileBlockIOTraces have both parts, preconditioning and execution, with a line between
    # them.
    marked = first + "preconditioning_ended\n" + lines(measured)
    for path, text in zip(paths, (first, second, marked, first + lines(measured)), strict=True):
        path.write_bytes(gzip.compress(text.encode()))
    precond, execution, one, both = paths

    written = flashtwin.trace_info(precond, flashtwin.TraceOptions(columns=MOBILE))
    assert (written["reads"]["requests"], written["writes"]["requests"]) == (0, 600)
    info = flashtwin.trace_info(execution, flashtwin.TraceOptions(columns=MOBILE))
    for op, name in (("R", "reads"), ("W", "writes")):
        own = [size * 512 for kind, _, size, _ in measured if kind == op]
        assert (info[name]["requests"], info[name]["bytes"]) == (len(own), sum(own)), name
    assert info["span_s"] == pytest.approx(1199 * 0.003)

    run = {"device": "demo", "set": SMALL, "warmup_requests": 600, "precondition": "none"}
    options = flashtwin.TraceOptions(columns=MOBILE, addresses="compact")
    found = flashtwin.run(both, trace_options=options, **run).summary
    assert (found["read"]["requests"], found["write"]["requests"]) == (300, 900)
    skipping = flashtwin.TraceOptions(columns=MOBILE, addresses="compact", max_bad_lines=1)
    assert flashtwin.run(one, trace_options=skipping, **run).summary["all"] == found["all"]
    fresh = flashtwin.run(execution, trace_options=options, device="demo", set=SMALL, precondition="none")
    # Reads of pages that the aging wrote take time.
    assert found["read"]["mean_us"] > fresh.summary["read"]["mean_us"]
    refused = cli("trace", "info", one, "--columns", MOBILE)
    wrong(refused, "app.csv.gz, line 602", "preconditioning_ended", "--max-bad-lines N")


#: Three requests in the layouts of three public collections: a write of 4 KiB, a read of 4 KiB after 1 ms,
#: and a read of 512 bytes after another 1.5 ms.
LAYOUTS = {
    "fiu": "0 12 IO Thread #3 16 8 W 6 0 d41d8cd98f00b204e9800998ecf8427e\n"
    "1000000 7 dd 0 8 R 6 0 0cc175b9c0f1b6a831c399e269772661\n"
    "2500000 7 kjournald 16 1 R 6 0\n",
    "alibaba": "419,W,8192,4096,1577808000000046\n"
    "419,R,0,4096,1577808000001046\n"
    "419,R,8192,512,1577808000002546\n",
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("form", LAYOUTS)
def test_layouts_of_public_collections_are_detected(tmp_path, form, mark):
    path = tmp_path / "requests.txt"
    path.write_text(mark + LAYOUTS[form], encoding="utf-8")
    info = flashtwin.trace_info(path)
    assert f": {form} trace (guessed: 3 of the first 3 lines fit" in info["description"]
    assert [(info[kind]["requests"], info[kind]["bytes"]) for kind in ("reads", "writes")] == [
        (2, 4608),
        (1, 4096),
    ]
    assert info["span_s"] == 0.0025


def test_thesios_is_read_by_its_columns(cli, tmp_path):
    header = (
        "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,"
        "from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,"
        "start_time,disk_time,simulated_disk_start_time,simulated_latency\n"
    )
    lines = [
        f"{name},{offset},app,9.5,WARM,REPLICATED,{op},OTHER,0,-1,{size},{size},0,{time},0.1,0.1,0.1\n"
        for name, offset, op, size, time in (
            ("f0", 0, "READ", 4096, "1700000000.000000"),
            ("f1", 8192, "WRITE", 65536, "1700000000.500000"),
            ("f2", 4096, "READ", 8192, "1700000001.877000"),
        )
    ]
    path = tmp_path / "thesios.csv"
    path.write_text(header + "".join(lines))
    columns = "time=start_time:s,offset=file_offset,size=request_io_size_bytes,op=op_type,volume=filename"
    info = flashtwin.trace_info(path, flashtwin.TraceOptions(columns=columns))
    assert (info["reads"]["bytes"], info["writes"]["bytes"], info["span_s"]) == (12288, 65536, 1.877)
    assert [volume["name"] for volume in info["volumes"]] == ["f0", "f1", "f2"]
    assert any("3 volumes laid end to end" in warning for warning in info["warnings"])
    path.write_text(path.read_text().replace(",65536,", ",-1,"))
    wrong(
        cli("trace", "info", path, "--columns", columns),
        "thesios.csv, line 3: size (column 11)",
        'found "-1"',
    )
