"""Policies written in Python. Their results equal those of Rust, and every mistake is reported."""

import json
import traceback
from functools import partial

import pytest

import flashtwin
from conftest import LOAD, SMALL
from flashtwin.cli import main


class Lru(flashtwin.Policy):
    """The policy `lru`, rewritten in Python."""

    def __init__(self):
        self.order = {}

    def insert(self, page, access):
        self.order[page] = None

    def hit(self, page, access):
        del self.order[page]
        self.order[page] = None

    def candidates(self):
        """Return the pages that are evicted before all others."""
        return []

    def evict(self, incoming):
        pages = iter([*self.candidates(), *self.order])
        page = next(page for page in pages if not self.device.in_flight(page))
        del self.order[page]
        return page

    def forget(self, page):
        del self.order[page]


class CleanFirst(Lru):
    """The policy `cflru-eps`, rewritten in Python."""

    def __init__(self):
        super().__init__()
        self.dirty = {}

    def insert(self, page, access):
        super().insert(page, access)
        self.dirty[page] = access.dirty

    def hit(self, page, access):
        super().hit(page, access)
        self.dirty[page] = access.dirty

    def cleaned(self, page):
        self.dirty[page] = False

    def candidates(self):
        return [page for page in self.order if not self.dirty[page]]

    def evict(self, incoming):
        page = super().evict(incoming)
        del self.dirty[page]
        return page

    def forget(self, page):
        super().forget(page)
        del self.dirty[page]


class Gcar(Lru):
    """The policy `gcar-lru`, rewritten in Python."""

    def candidates(self):
        return [page for page in self.order if not self.device.in_gc(self.device.chip(page))]


def numbers(result):
    """Return a summary without the parts that only a policy in Rust has.

    These are names, counters, and entries inspected.
    """
    own = ("policy_counters", "entries_inspected")
    summary = {key: value for key, value in result.summary.items() if key not in ("policy", "buffer")}
    return summary | {"buffer": {k: v for k, v in result.summary["buffer"].items() if k not in own}}


def tiny(workload, policy, **options):
    """Run on a device of few pages, whose flushes go to the flash."""
    changes = SMALL | {"buffer.capacity": "128 KiB", "buffer.power_loss_protection": False}
    return flashtwin.run(workload, "demo", set=changes, policy=policy, **options)


@pytest.mark.parametrize(("mine", "theirs"), [(Lru, "lru"), (CleanFirst, "cflru-eps"), (Gcar, "gcar-lru")])
def test_a_policy_in_python_equals_the_same_policy_in_rust(trace, mine, theirs):
    for workload in (LOAD, trace):
        in_python, in_rust = tiny(workload, mine), tiny(workload, theirs)
        assert in_python.policy == mine.__name__
        assert numbers(in_python) == numbers(in_rust)
    assert mine is not Gcar or numbers(tiny(LOAD, "lru")) != numbers(tiny(LOAD, "gcar-lru"))


def test_a_users_policy_appears_in_comparisons_and_hit_ratios(trace):
    one = flashtwin.compare(LOAD, ["lru", Lru, CleanFirst], "demo", set=SMALL, threads=2)
    assert one.policies == ["lru", "Lru", "CleanFirst"]
    assert numbers(one["lru"]) == numbers(one["Lru"])
    assert numbers(flashtwin.run(LOAD, "demo", set=SMALL, policy=Lru)) == numbers(one["Lru"])
    table = flashtwin.hits(trace, ["lru", Lru, "cflru-eps", CleanFirst], [8, 100])
    for pages in (8, 100):
        assert table["lru", pages][2:] == table["Lru", pages][2:]
        assert table["cflru-eps", pages][2:] == table["CleanFirst", pages][2:]


def test_a_policy_receives_each_event():
    told = []

    class Watcher(Lru):
        def insert(self, page, access):
            super().insert(page, access)
            told.append(("insert", page, access))
            assert self.device.lpn(page) == access.lpn
            assert access.dirty == access.write

        def hit(self, page, access):
            super().hit(page, access)
            told.append(("hit", page, access))
            chips = self.device.chips
            assert self.device.chip(page) == access.lpn % chips == self.device.lpn(page) % chips
            assert access.dirty == self.device.dirty(page)

        def evict(self, incoming):
            told.append(("evict", None, incoming))
            for chip in range(self.device.chips):
                assert self.device.drain_time_us(chip) >= 0
                assert not self.device.chip_idle(chip) or self.device.drain_time_us(chip) == 0
                assert self.device.free_blocks(chip) > 0
                assert self.device.in_gc(chip) in (True, False)
            assert self.device.now_us >= 0
            return super().evict(incoming)

    load = "zipf:theta=0.9,write=0.5,requests=2000,size=8K"
    result = tiny(load, Watcher, precondition="steady:empty-buffer")
    kinds = [kind for kind, _, _ in told]
    accesses = [access for _, _, access in told]
    # A read of a page that is being evicted is a hit of which the policy is not notified.
    assert 0 < kinds.count("hit") <= result.summary["hits"]["pages"]
    evicted = result.summary["buffer"]
    assert kinds.count("evict") == evicted["evicted_clean_pages"] + evicted["evicted_dirty_pages"]
    assert all(told[i + 1][0] == "insert" for i, kind in enumerate(kinds) if kind == "evict")
    assert {access.request_pages for access in accesses} == {2}
    assert {access.write for access in accesses} == {True, False}
    assert max(access.request for access in accesses) < 2000
    assert "of 2 pages" in repr(accesses[0])


def test_trims_are_forgotten_and_flushed_pages_cleaned(trace):
    forgotten, cleaned = [], []

    class Watcher(Lru):
        def forget(self, page):
            super().forget(page)
            forgotten.append(page)

        def cleaned(self, page):
            assert not self.device.dirty(page)
            cleaned.append(page)

    tiny(trace, Watcher, precondition="steady:empty-buffer")
    assert forgotten
    assert cleaned


class Ahead(Lru):
    """LRU that writes its least recent dirty page back after a silence of 2 ms, one page at a time."""

    ahead_after_us = 2000

    def ahead(self, in_flight):
        if in_flight > 0:
            return None
        ready = (page for page in self.order if self.device.dirty(page) and not self.device.programming(page))
        return next(ready, None)


def written_ahead(result):
    return sum(op["count"] for op in result.summary["flash"]["ops"] if op["name"] == "write_back")


SILENCES = "zipf:theta=0.9,write=0.8,range=1M,on_rate=20k/s,on_length=20,duty=0.05,requests=2000"


def test_pages_are_written_ahead_in_silences():
    cleaned = []

    class Watched(Ahead):
        def ahead(self, in_flight):
            page = super().ahead(in_flight)
            assert page is None or not self.device.in_flight(page)
            return page

        def cleaned(self, page):
            assert not self.device.programming(page)
            cleaned.append(page)

    ahead, without = tiny(SILENCES, Watched), tiny(SILENCES, Lru)
    assert cleaned
    # A page that is written again during its program is not clean afterwards.
    assert 0.9 * written_ahead(ahead) < len(cleaned) <= written_ahead(ahead)
    assert ahead.summary["buffer"]["evicted_dirty_pages"] < without.summary["buffer"]["evicted_dirty_pages"]
    assert ahead.summary["all"]["mean_us"] < without.summary["all"]["mean_us"]


#: Devices with one open block per pool, and with two.
ONE_BLOCK = SMALL | {"buffer.capacity": "64 KiB"}
TWO_BLOCKS = ONE_BLOCK | {"ftl.separation": "policy"}
PAGES = flashtwin.device("demo", ONE_BLOCK).exported_bytes // 4096
#: Nine of ten writes go to the first fifth of the pages.
SKEWED = "hotcold:hot_access=0.9,hot_space=0.2,write=1,requests=60000"


class HotFifth(Lru):
    """LRU. The pages that `SKEWED` writes most often are hot."""

    def is_hot(self, lpn):
        return lpn < PAGES // 5


def test_a_policy_separates_hot_pages():
    asked = set()

    class Watched(HotFifth):
        def is_hot(self, lpn):
            asked.add(lpn)
            return super().is_hot(lpn)

    def run(policy):
        return flashtwin.run(SKEWED, "demo", set=TWO_BLOCKS, policy=policy, warmup_requests=40000)

    def moved(result):
        return result.summary["flash"]["pages_moved"]

    separated, mixed = run(Watched), run(Lru)
    assert min(asked) >= 0
    assert PAGES // 5 < max(asked) < PAGES
    assert moved(separated) < 0.95 * moved(mixed)
    assert numbers(mixed) == numbers(run("lru"))


def test_is_hot_needs_a_device_that_separates():
    with pytest.raises(flashtwin.FlashtwinError, match=r"HotFifth: .* is_hot; set ftl.separation=policy"):
        tiny(SKEWED, HotFifth)
    with pytest.raises(flashtwin.FlashtwinError, match=r"HotFifth: is_hot has no effect on an array"):
        flashtwin.run(SKEWED, "harmonia-array", policy=HotFifth, set={"buffer.capacity": "1 MiB"})
    # A hit ratio needs no device.
    flashtwin.hits(SKEWED, [HotFifth], [16])


def test_spare_blocks_are_visible():
    seen = set()

    class Watched(Lru):
        def insert(self, page, access):
            seen.add(self.device.spare_blocks)
            super().insert(page, access)

    tiny(SKEWED, Watched)
    flashtwin.hits(SKEWED, [Watched], [16])
    assert None in seen
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            lambda policy: next((p for p in policy.order if not policy.device.dirty(p)), None),
            "which is clean",
        ),
        (lambda policy: 1000, "ahead returned page 1000; it must return a dirty page"),
        (lambda policy: "x", "ahead returned 'x'"),
    ],
)
def test_ahead_must_return_a_dirty_page(returned, message):
    def ahead(self, in_flight):
        return returned(self) if len(self.order) > 20 else None

    wrong = type("Wrong", (Lru,), {"ahead": ahead})
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        tiny(SILENCES, wrong)


@pytest.mark.parametrize("after", [-1, 60_000_001, 1.5, "1"])
def test_the_silence_is_checked(after):
    wrong = type("Wrong", (Ahead,), {"ahead_after_us": after})
    with pytest.raises(flashtwin.FlashtwinError, match=r"ahead_after_us = .*; must be a whole number from 0"):
        tiny(SILENCES, wrong)


def test_a_policy_is_created_for_every_run_with_the_capacity():
    made = []

    class WithCapacity(Lru):
        def __init__(self, capacity):
            super().__init__()
            made.append((capacity, self))

    class WithDefault(Lru):
        def __init__(self, window=3):
            super().__init__()
            made.append((window, self))

    flashtwin.hits(LOAD, [WithCapacity, WithDefault], [64, 128])
    assert [number for number, _ in made] == [64, 128, 3, 3]
    assert [policy.capacity for _, policy in made] == [64, 128, 64, 128]
    named = flashtwin.hits(LOAD, [partial(WithDefault, window=5), lambda: WithDefault(window=6)], [64])
    assert named.policies == ["WithDefault", "<lambda>"]

    class Named(Lru):
        name = "my-lru"

    assert tiny(LOAD, Named).policy == "my-lru"


def test_several_victims_at_once():
    class InPairs(Lru):
        def evict(self, incoming):
            pages = list(self.order)[:2]
            for page in pages:
                del self.order[page]
            return pages

    row = flashtwin.hits(LOAD, [InPairs], [64])["InPairs", 64]
    assert row.accesses - row.hits - row.evicted_clean - row.evicted_dirty in (63, 64)
    assert tiny(LOAD, InPairs).summary["requests_submitted"] == 3000


RUNS = [
    partial(
        flashtwin.run, "uniform:write=0.8,requests=1e9", "demo", set=SMALL | {"buffer.capacity": "64 KiB"}
    ),
    lambda policy: flashtwin.hits("uniform:write=0.8,requests=1000000", ["lru", policy], [16]),
    lambda policy: flashtwin.compare(LOAD, ["lru", policy], "demo", set=SMALL),
]


@pytest.mark.parametrize("start", RUNS, ids=["run", "hits", "compare"])
@pytest.mark.parametrize(
    ("evict", "message"),
    [
        (lambda self: None, "policy Wrong: evict returned None; it must return a page"),
        (lambda self: [], "policy Wrong: evict returned no page"),
        (lambda self: 1 << 20, "policy Wrong: evict returned page 1048576, which is not among the"),
        (lambda self: -1, "policy Wrong: evict returned -1"),
        (lambda self: "page", "policy Wrong: evict returned 'page'"),
        (lambda self: [next(iter(self.order))] * 2, "policy Wrong: evict returned page 0 twice"),
        (lambda self: (page := next(iter(self.order)), page), "policy Wrong: evict returned page 0 twice"),
        (lambda self: self.device.lpn(1 << 20), "page 1048576 is not in the buffer"),
        (lambda self: self.device.in_gc(100), "chip 100 of"),
    ],
)
def test_a_wrong_victim_stops_the_run(start, evict, message):
    wrong = type("Wrong", (Lru,), {"evict": lambda self, incoming: evict(self)})
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        start(policy=wrong) if isinstance(start, partial) else start(wrong)


class OwnError(Exception):
    pass


@pytest.mark.parametrize("method", ["insert", "hit", "evict", "forget", "cleaned", "ahead"])
def test_an_exception_stops_the_run_and_comes_out_of_it(trace, method):
    def fails(self, *arguments):
        raise OwnError(method)

    wrong = type("Wrong", (Lru,), {method: fails})
    with pytest.raises(OwnError, match=method) as raised:
        tiny(trace, wrong, precondition="steady:empty-buffer")
    assert "in fails" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (Lru(), flashtwin.FlashtwinError, "give the class Lru, not an object of it"),
        (3, flashtwin.FlashtwinError, "found 3; must be a name"),
        (dict, flashtwin.FlashtwinError, "policy dict: made {}, which is not a flashtwin.Policy"),
        (type("Half", (flashtwin.Policy,), {}), TypeError, "abstract"),
    ],
)
def test_invalid_policies_are_refused(policy, error, message):
    with pytest.raises(error, match=message):
        tiny(LOAD, policy)


def test_the_device_can_be_queried_only_during_calls():
    kept = []

    class Keeper(Lru):
        def insert(self, page, access):
            super().insert(page, access)
            kept.append(self.device)

        def forget(self, page):
            self.device.dirty(page)

    flashtwin.hits(LOAD, [Keeper], [64])
    with pytest.raises(flashtwin.FlashtwinError, match="can be asked only while"):
        kept[0].dirty(0)
    with pytest.raises(flashtwin.FlashtwinError, match="can be asked only while"):
        kept[0].chips  # noqa: B018


def test_parameters_and_devices_without_a_buffer():
    with pytest.raises(flashtwin.DeviceError, match=r"buffer.window: has no effect here"):
        flashtwin.run(LOAD, "demo", policy=Lru, set=SMALL | {"buffer.window": 0.5})
    both = flashtwin.compare(LOAD, [Lru, "cflru"], "demo", set=SMALL | {"buffer.window": 0.5})
    assert len(both) == 2
    with pytest.raises(flashtwin.DeviceError, match=r"buffer.capacity"):
        flashtwin.run(LOAD, "harmonia", policy=Lru)


def test_steps_are_those_of_the_same_policy_in_rust():
    accesses = "W1 R2 W1 W3x2 trim2 gc+0 R5 W6 R1"
    mine = flashtwin.trace_policy(CleanFirst, accesses, capacity=3)
    theirs = flashtwin.trace_policy("cflru:window=1.0", accesses, capacity=3)
    for key in ("op", "hit", "evicted"):
        assert [step[key] for step in mine] == [step[key] for step in theirs]
    assert mine[0]["state"] == "1d"
    assert repr(mine).splitlines()[0].split() == ["op", "result", "state"]

    class Wrong(Lru):
        def evict(self, incoming):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        flashtwin.trace_policy(Wrong, "W1 W2", capacity=1)
    with pytest.raises(flashtwin.FlashtwinError, match="not an access"):
        flashtwin.trace_policy(Lru, "X1", capacity=1)
    with pytest.raises(flashtwin.FlashtwinError, match="give its parameters to it"):
        flashtwin.trace_policy(Lru, "W1", capacity=1, set={"window": 1})


def test_ctrl_c_stops_a_run_with_it():
    def progress(p):
        if p.label == "Lru" and p.done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(flashtwin.Interrupted) as stopped:
        flashtwin.run("uniform:write=1,requests=1e9", "demo", set=SMALL, policy=Lru, progress=progress)
    assert stopped.value.partial.summary["requests_submitted"] > 1000


class NumberGhosts(Lru):
    """A faulty policy: it remembers evicted pages by number, but numbers are reused for other pages."""

    def __init__(self):
        super().__init__()
        self.ghosts = {}

    def insert(self, page, access):
        self.known = page in self.ghosts
        super().insert(page, access)

    def evict(self, incoming):
        page = super().evict(incoming)
        self.ghosts[page] = None
        return page


class LpnGhosts(NumberGhosts):
    """A correct policy: it remembers evicted pages by logical page."""

    def insert(self, page, access):
        self.known = access.lpn in self.ghosts
        Lru.insert(self, page, access)

    def evict(self, incoming):
        page = Lru.evict(self, incoming)
        self.ghosts[self.device.lpn(page)] = None
        return page


@pytest.mark.parametrize("start", RUNS, ids=["run", "hits", "compare"])
def test_a_ghost_list_of_page_numbers_stops_the_run(start):
    with pytest.raises(flashtwin.FlashtwinError, match=r"has left the buffer.*remember.*access\.lpn"):
        start(policy=NumberGhosts) if isinstance(start, partial) else start(NumberGhosts)
    assert flashtwin.hits(LOAD, [LpnGhosts, "lru"], [64])["LpnGhosts", 64].hits > 0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda self, page: hash(page), "has left the buffer"),
        (lambda self, page: page == next(iter(self.order)), "has left the buffer"),
        (lambda self, page: next(iter(self.order)) < page, "has left the buffer"),
        (lambda self, page: [0, 1, 2, 3][page], "has left the buffer"),
        (lambda self, page: self.device.lpn(page), "has left the buffer"),
        (lambda self, page: next(iter(self.order)) == 3, r"compared with a number: self.device.lpn\(page\)"),
    ],
)
def test_each_use_of_a_page_after_its_eviction_raises(use, message):
    class Late(Lru):
        gone = None

        def evict(self, incoming):
            if self.gone is not None:
                assert repr(self.gone) == "Page(0, not in the buffer)"
                use(self, self.gone)
            self.gone = super().evict(incoming)
            return self.gone

    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.trace_policy(Late, "W1 W2 W3 W4", capacity=2)


def test_a_page_evicted_twice_is_reported():
    class Twice(Lru):
        gone = None

        def evict(self, incoming):
            self.gone = self.gone or super().evict(incoming)
            return self.gone

    with pytest.raises(flashtwin.FlashtwinError, match="evict returned page 0, which has left the buffer"):
        flashtwin.trace_policy(Twice, "W1 W2 W3 W4", capacity=2)


def test_pages_are_indices_and_keys_in_order():
    seen = []

    class Table(Lru):
        def insert(self, page, access):
            super().insert(page, access)
            seen.append(page)
            assert sorted(self.order, reverse=True)[0] == max(self.order)
            assert ["a", "b", "c"][page] == "abc"[int(page)]
            assert page != "page"
            assert repr(page) == f"Page({int(page)})"

        def evict(self, incoming):
            number = int(super().evict(incoming))
            return [number]

    steps = flashtwin.trace_policy(Table, "W1 W2 W3 W4 W5", capacity=3)
    assert [step["evicted"] for step in steps] == [[], [], [], ["1d"], ["2d"]]
    assert len({id(page) for page in seen}) == 5


def test_a_trace_shows_the_state_of_the_policy():
    class Shown(LpnGhosts):
        def state(self):
            return f"[{' '.join(map(self.device.text, self.order))}] ghosts {list(self.ghosts)}"

    steps = flashtwin.trace_policy(Shown, "W1 R2 W3", capacity=2)
    assert [step["state"] for step in steps] == ["[1d] ghosts []", "[1d 2c] ghosts []", "[2c 3d] ghosts [1]"]
    wrong = type("Wrong", (Lru,), {"state": lambda self: 3})
    with pytest.raises(
        flashtwin.FlashtwinError, match="policy Wrong: state returned 3; it must return a string"
    ):
        flashtwin.trace_policy(wrong, "W1", capacity=1)


MINE = """
import beside
import flashtwin


class Mine(flashtwin.Policy):
    def __init__(self):
        self.order = beside.order()

    def insert(self, page, access):
        self.order[page] = None

    def hit(self, page, access):
        self.order[page] = self.order.pop(page)

    def evict(self, incoming):
        page = next(iter(self.order))
        del self.order[page]
        return page

    def forget(self, page):
        del self.order[page]

    def state(self):
        return f"{len(self.order)} pages"


number = 3
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "beside.py").write_text("order = dict\n")
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_commands_take_a_class_of_a_file(mine, capsys):
    assert main(["policy", "trace", f"{mine}:Mine", "--capacity", "2", "W1 R2 W1 W3"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["W1", "miss", "1", "pages"],
        ["R2", "miss", "2", "pages"],
        ["W1", "hit", "2", "pages"],
        ["W3", "miss,", "ev", "2c", "2", "pages"],
    ]
    load = ["--workload", LOAD]
    hits = ["policy", "hits", *load, "--policies", f"lru,{mine}:Mine,min", "--capacity", "1MiB", "--json"]
    assert main(hits) == 0
    rows = {row["policy"]: row["hits"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["Mine"] == rows["lru"] <= rows["min"]
    assert main(["run", *load, "--device", "demo", "--policy", f"{mine}:Mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "Mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:Other", r"policy mine.py:Other: there is no Other in mine.py; it has Mine$"),
        ("mine.py:", "there is no name behind the colon in mine.py; it has Mine$"),
        ("mine.py:number", "number is 3; it must be a subclass of flashtwin.Policy"),
        ("none.py:Mine", "there is no file none.py"),
        ("wrong.py:Mine", r"wrong.py:2: ZeroDivisionError: division by zero"),
        ("syntax.py:Mine", r"syntax.py:1: SyntaxError"),
        ("beside.py:Mine", "it has no subclass of flashtwin.Policy"),
    ],
)
def test_a_wrong_file_is_reported(mine, monkeypatch, name, message):
    monkeypatch.chdir(mine.parent)
    (mine.parent / "wrong.py").write_text("x = 1\ny = 1 / 0\n")
    (mine.parent / "syntax.py").write_text("class\n")
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        flashtwin.trace_policy(name, "W1", capacity=1)
