"""Hit counts of policies without a device."""

import json

import pytest

import flashtwin
from conftest import LOAD
from flashtwin.hit_ratios import PAGES_MAX
from test_cli import interrupt, wrong

ONLINE = ["lru", "fifo", "arc", "s3-fifo", "sieve", "cflru:window=0.5"]


def lines(tmp_path, rows):
    path = tmp_path / "trace.csv"
    path.write_text(
        "time_us,op,offset_bytes,size_bytes\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows))
    )
    return path


def test_no_policy_hits_more_often_than_min():
    table = flashtwin.hits(LOAD, [*ONLINE, "min"], [64, 512])
    assert table.policies == [*ONLINE, "min"]
    assert table.capacities_pages == [64, 512]
    assert len(table) == 14
    for row in table:
        assert 0 < row.hits <= table["min", row.capacity_pages].hits
        assert row.hit_ratio == row.hits / row.accesses
        assert row.accesses == 3000
        if row.policy != "min":
            assert (row.reads + row.writes, row.read_hits + row.write_hits) == (row.accesses, row.hits)
            # Pages that were inserted and not evicted are in the buffer.
            assert row.accesses - row.hits - row.evicted_clean - row.evicted_dirty == row.capacity_pages
    assert table["min", 512].hits > table["lru", 512].hits > table["lru", 64].hits


def test_requests_are_cut_into_pages_in_order(tmp_path):
    path = lines(
        tmp_path, ["W,4096,12288", "R,5000,4096", "T,4096,4096", "F,0,0", "R,4096,4096", "W,12288,100"]
    )
    row = next(iter(flashtwin.hits(path, ["lru"], [8])))
    # Pages 1 to 3 are written, and reads of pages 1 and 2 hit. After a trim of page 1, its read misses. The
    # write of page 3 hits.
    assert (row.accesses, row.reads, row.read_hits, row.writes, row.write_hits) == (7, 3, 2, 4, 1)
    large = next(iter(flashtwin.hits(path, ["lru"], [8], page_bytes=16384)))
    assert (large.accesses, large.hits) == (4, 2)
    assert next(iter(flashtwin.hits(path, ["lru"], [8], requests_max=2))).accesses == 5


def test_capacities_are_shares_of_the_different_pages(tmp_path, cli):
    """The trace accesses each of 40 pages twice in succession. As a pipe, it can be read only once."""
    rows = [f"{'RW'[page % 2]},{page * 4096},4096" for page in range(40) for _ in range(2)]
    path = lines(tmp_path, rows)
    shares = flashtwin.hits(path, ["lru", "min"], ["0.1%", "10%", "50 %", 40])
    assert shares.to_json() == flashtwin.hits(path, ["lru", "min"], [1, 4, 20, 40]).to_json()
    drawn = flashtwin.curve(path, ["lru", "arc"], ["10%", "50%"])
    assert drawn.capacities_pages == [4, 20]
    command = "policy", "hits", "-", "--policies", "lru", "--capacity", "10%,16KiB", "--json"
    assert "twice" in cli(*command, input=path.read_text()).stderr
    result = cli(*command[:-2], "2.5%,200%", "--json", input=path.read_text())
    assert [row["capacity_pages"] for row in json.loads(result.stdout)["rows"]] == [1, 80]


def test_hits_equal_those_of_the_trace():
    text = "W1 R2 W3 R1 W4 R2"
    steps = flashtwin.trace_policy("lru", text, capacity=3)
    assert [step["hit"] for step in steps] == [False, False, False, True, False, False]


def test_threads_change_nothing_and_the_forms_agree(tmp_path):
    one = flashtwin.hits(LOAD, ONLINE, [64, 512])
    two = flashtwin.hits(LOAD, ONLINE, [64, 512], threads=2)
    assert one.to_json() == two.to_json()
    assert json.loads(one.to_json())["rows"][0]["policy"] == "lru"
    assert one.table.num_rows == 12
    assert "256 KiB" in repr(one)
    assert "2 MiB" in one._repr_html_()
    one.figure(tmp_path / "hits.png")
    assert (tmp_path / "hits.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(KeyError):
        one["lru", 65]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policies": []}, "none given"),
        ({"policies": ["lru", "lru"]}, "lru is named twice"),
        ({"policies": ["lruu"]}, 'found "lruu".*did you mean "lru"'),
        ({"policies": ["min:window=1"]}, "min.*no parameter"),
        ({"policies": ["lru:window=1"]}, "lru has no parameter window"),
        ({"capacities_pages": []}, "none given"),
        ({"capacities_pages": [0]}, "capacities_pages: 0"),
        ({"capacities_pages": [PAGES_MAX + 1]}, f"{PAGES_MAX + 1}: give pages from 1 to {PAGES_MAX}"),
        ({"capacities_pages": [8, 8]}, "twice"),
        ({"capacities_pages": [0]}, "0: give pages from 1 to"),
        ({"capacities_pages": ["0.1"]}, "'0.1': give pages, or a share"),
        ({"capacities_pages": ["0%"]}, "'0%': give pages, or a share"),
        ({"page_bytes": 1000}, "page_bytes: 1000: give a multiple of 512"),
        ({"threads": 0}, "threads: 0"),
        ({"workload": "zipf:write=0.8"}, "endless"),
        ({"workload": "/no/such.csv"}, "no such trace file"),
    ],
)
def test_errors(changed, message):
    arguments = {"workload": LOAD, "policies": ["lru"], "capacities_pages": [64]} | changed
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.hits(**arguments)


def test_capacities_end_where_those_of_devices_do():
    """The largest capacity is accepted. The core, too, refuses a capacity that is one page larger."""
    assert flashtwin.hits("uniform:requests=1", ["fifo"], [PAGES_MAX])["fifo", PAGES_MAX].accesses == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flashtwin.hit_ratios.PAGES_MAX", PAGES_MAX + 1)
        with pytest.raises(flashtwin.FlashtwinError, match=f"give 1 to {PAGES_MAX}"):
            flashtwin.hits("uniform:requests=1", ["fifo"], [PAGES_MAX + 1])


def test_an_address_beyond_the_last_page_is_an_error(tmp_path):
    path = lines(tmp_path, ["W,0,4096", "W,99999999995904,4096"])
    with pytest.raises(flashtwin.FlashtwinError, match=r"request 1: .*give larger pages"):
        flashtwin.hits(path, ["lru"], [64])
    assert len(flashtwin.hits(path, ["lru"], [64], page_bytes=1 << 20)) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_far_down_the_trace_ends_all_policies(tmp_path, threads):
    path = lines(tmp_path, [*(f"W,{page * 4096},4096" for page in range(100_000)), "W,x,4096"])
    with pytest.raises(flashtwin.WorkloadError, match=r"line 100002: .*found \"x\""):
        flashtwin.hits(path, ["lru", "arc", "min"], [64], threads=threads)


@pytest.mark.parametrize("requests_max", [1, 32_767, 32_768, 32_769, 100_000])
def test_of_many_requests_none_is_lost(tmp_path, requests_max):
    path = lines(tmp_path, (f"W,{page * 4096},4096" for page in range(100_000)))
    for row in flashtwin.hits(path, ["lru", "min"], [100_000], requests_max=requests_max):
        assert (row.accesses, row.hits) == (requests_max, 0)


def test_ctrl_c_keeps_the_counts():
    def progress(p):
        if p.label.startswith("sieve"):
            raise KeyboardInterrupt

    with pytest.raises(flashtwin.Interrupted) as stopped:
        flashtwin.hits("uniform:requests=10000000", ["lru", "sieve", "arc"], [64], progress=progress)
    assert [row.policy for row in stopped.value.partial] == ["lru"]
    assert stopped.value.partial.interrupted


def test_the_command(cli, trace, tmp_path):
    figure = tmp_path / "hits.svg"
    arguments = ("policy", "hits", trace, "--policies", "lru,min", "--capacity", "256KiB,1MiB")
    table = cli(*arguments, "--figure", figure)
    assert table.returncode == 0, table.stderr
    assert "csv trace (guessed" in table.stderr
    assert "256 KiB" in table.stdout
    assert "min" in table.stdout
    assert figure.read_text().lstrip().startswith("<?xml")
    rows = json.loads(cli(*arguments, "--json").stdout)["rows"]
    assert [(row["policy"], row["capacity_pages"]) for row in rows] == [
        ("lru", 64), ("lru", 256), ("min", 64), ("min", 256),
    ]  # fmt: skip
    every = cli("policy", "hits", "--workload", LOAD, "--policies", "all", "--capacity", "64KiB", "--json")
    names = [row["policy"] for row in json.loads(every.stdout)["rows"]]
    assert names == [name for name in flashtwin.policies() if not name.startswith("gcar-")] + ["min"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--capacity", "1MiB"), ["either a trace file or --workload"]),
        (("--workload", LOAD), ["--capacity"]),
        (("--workload", LOAD, "--capacity", "1MiX"), ["--capacity 1MiX"]),
        (("--workload", LOAD, "--capacity", "1000"), ["--capacity 1000", "4096"]),
        (("--workload", LOAD, "--capacity", "0.1"), ["--capacity 0.1", "as in 10%"]),
        (("--workload", LOAD, "--capacity", "5000TiB"), ["--capacity 5000TiB: give at most 256 GiB"]),
        (("--workload", LOAD, "--capacity", "1MiB", "--policies", "lru,lru"), ["twice"]),
        (("--workload", LOAD, "--capacity", "1MiB", "--page-bytes", "0"), ["--capacity"]),
    ],
)
def test_wrong_arguments(cli, arguments, parts):
    wrong(cli("policy", "hits", *arguments), *parts)


def test_ctrl_c_ends_the_command():
    load = "uniform:write=0.5,requests=2e6"
    arguments = ("policy", "hits", "--workload", load, "--policies", "all", "--capacity", "4MiB,64MiB")
    code, _, err = interrupt(arguments, 4)
    assert code == 130
    assert "interrupted" in err
