"""Placement: descriptions of schemes, rules and scopes; stepping; and runs without time.

`FLASHTWIN_WRITE_DOCS=1 pytest tests/python/test_placement.py` rewrites the list of docs/placement.md."""

import json
import os

import pytest

import flashtwin
from flashtwin import _core
from pages import ROOT
from test_cli import wrong

#: A small device, and a load that fills it many times but takes only a moment.
SETUP = {"units": 60, "unit_pages": 32, "logical_pages": 1440, "low": 3, "handles": 2}
LOAD = (
    "uniform:write=1,size=4k,range=0%..20%,placement=0,bytes=0.8"
    " + uniform:write=1,size=4k,range=20%..100%,placement=1,bytes=0.2"
)
PAGE = ROOT / "docs" / "placement.md"
LIST = "## All schemes, rules and scopes\n"
WORDS = "| word | default | meaning |\n"


def waf(load=LOAD, **more):
    return flashtwin.placement_waf(load, setup={**SETUP, **more.pop("setup", {})}, **more)


class Greedy(flashtwin.Victim):
    """The shipped rule, rewritten in Python."""

    def choose(self, pool):
        return min(pool.units, key=lambda u: (u.valid, -u.age), default=None)


class ByHandle(flashtwin.Placement):
    """The shipped scheme with two handles, rewritten in Python."""

    classes = 2

    def host(self, page):
        return page.handle


def test_lists_and_descriptions(cli):
    every = flashtwin.placements()
    assert {info["kind"] for info in every} == {"scheme", "victim", "scope"}
    listed = json.loads(cli("placement", "list", "--json").stdout)
    assert [info["name"] for info in listed] == [info["name"] for info in every]
    shown = cli("placement", "list").stdout
    for info in every:
        assert info["name"] in shown
        assert all(parameter["key"] in repr(info) for parameter in info["parameters"])
    assert "Invalidation Time" in cli("placement", "show", "sepbit").stdout
    assert json.loads(cli("placement", "show", "noisy", "--json").stdout)["kind"] == "scope"
    wrong(cli("placement", "show", "sepbits"), '"sepbits"', "sepbit")


def test_a_vector_of_the_specification(cli):
    ops = "W 0 4 0; W 4 4 1; W 0 2 0; W 4 2 1; W 0 2 0; W 4 2 1; W 0 1 0; W 4 1 1; W 0 1 0; L"
    steps = flashtwin.trace_placement(ops, units=8, handles="ii,ii", low=2)
    assert "; ".join(steps[8]["did"]) == "victim u2 v1; 80h; erase u2; victim u3 v1; 80h; erase u3"
    assert steps[8]["state"].endswith("s:u6[1 5 . .]* free 7 2 3")
    assert steps[9]["output"] == "hbmw 19 mbmw 21 mbe 8"
    words = [word for key in ("units=8", "handles=ii,ii", "low=2") for word in ("--set", key)]
    assert cli("placement", "trace", *words, ops).stdout == f"{steps!r}\n"
    assert json.loads(cli("placement", "trace", *words, ops, "--json").stdout) == steps


def test_the_same_arguments_give_the_same_result_on_any_number_of_threads():
    one = waf(victims=["greedy", "fifo", "greedy@noisy"], threads=1)
    two = waf(victims=["greedy", "fifo", "greedy@noisy"], threads=2)
    assert one.to_json() == two.to_json()
    assert waf(seed=2).to_json() != waf().to_json()
    assert one[0].waf < one[1].waf


def test_the_noisy_aware_optimum_is_that_of_the_closed_form():
    setup = {"units": 204, "unit_pages": 64, "logical_pages": 10240, "handles": "pi,pi", "survivors": "same"}
    rows = flashtwin.placement_waf(
        LOAD, setup=setup | {"low": 3}, victims=["greedy", "greedy@noisy:quota=optimal"]
    )
    greedy, optimal = rows
    assert greedy.waf == pytest.approx(greedy.closed_forms()["uniform_greedy"], rel=0.05)
    assert optimal.waf == pytest.approx(optimal.closed_forms()["best_split"], rel=0.08)
    assert optimal.waf < 0.8 * greedy.waf


def test_counts_of_a_row_agree_with_each_other():
    row = waf(schemes=["handle"], victims=["greedy"])[0]
    owners = row.by_owner()
    host = sum(owner["host_pages"] for owner in owners)
    moved = sum(owner["moved_in"] for owner in owners)
    assert moved == sum(owner["moved_out"] for owner in owners) > 0
    assert row.waf == pytest.approx(1 + moved / host)
    assert sum(map(sum, row.caused())) == moved
    assert sum(owner["live"] for owner in owners) == SETUP["logical_pages"]
    assert sum(owner["units"] for owner in owners) <= SETUP["units"]
    written = [at for at, _ in row.series()]
    assert written == sorted(written)


def test_a_users_rule_and_scheme_do_what_the_shipped_ones_do():
    shipped, rule, scheme, both = waf(schemes=["handle", ByHandle], victims=["greedy", Greedy])
    for row in (rule, scheme, both):
        assert row.raw["series"] == shipped.raw["series"]
    assert (rule.victim, scheme.scheme) == ("Greedy", "ByHandle")
    assert waf(schemes=[ByHandle()])[0].raw == scheme.raw


def test_a_users_classes_are_named_by_file(cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import flashtwin\n"
        "class Mine(flashtwin.Victim):\n"
        "    def choose(self, pool):\n"
        "        return min(pool.units, key=lambda u: (u.valid, -u.age), default=None)\n"
    )
    words = [word for key, value in SETUP.items() for word in ("--set", f"{key}={value}")]
    mine = f"{tmp_path / 'mine.py'}:Mine"
    found = json.loads(cli("placement", "waf", LOAD, *words, "--victims", f"greedy;{mine}", "--json").stdout)
    assert found["rows"][0]["series"] == found["rows"][1]["series"]
    wrong(cli("placement", "waf", LOAD, *words, "--victims", f"{tmp_path / 'mine.py'}:Yours"), "Mine")


def test_a_scheme_that_places_survivors():
    class Chain(flashtwin.Placement):
        classes = 3
        needs = ("age", "moves", "old_class")

        def __init__(self):
            self.erased_units = 0
            self.seen = set()

        def host(self, page):
            assert page.age is None or page.age <= page.clock
            self.seen.add(page.old_class)
            return 0

        def moved(self, page):
            assert page.age is not None
            return min(page.moves + 1, 2)

        def erased(self, unit, valid, clock):
            assert valid <= unit.pages
            self.erased_units += 1

    mine = Chain()
    row = waf(schemes=[mine], setup={"low": 5})[0]
    assert {owner["name"] for owner in row.by_owner()} == {"h0", "h1", "h2"}
    assert mine.erased_units == row.raw["after"]["erases"]
    assert {None, 0, 1, 2} == mine.seen


def test_the_oracle_reads_the_future():
    rows = waf(
        "zipf:theta=1,write=1,size=4k", schemes=["none", "oracle:classes=6"], setup={"low": 8, "units": 66}
    )
    assert rows[1].waf < 0.9 * rows[0].waf


def test_errors_of_users_stop_the_run():
    class Fails(flashtwin.Victim):
        def choose(self, pool):
            raise RuntimeError("not today")

    class Alien(flashtwin.Victim):
        def choose(self, pool):
            return 3

    class Wide(flashtwin.Placement):
        classes = 2

        def host(self, page):
            return 2

    class Nowhere(flashtwin.Placement):
        def host(self, page):
            return 0

        def moved(self, page):
            return "elsewhere"

    class Greedless(flashtwin.Placement):
        needs = ("everything",)

    with pytest.raises(RuntimeError, match="not today"):
        waf(victims=[Fails])
    with pytest.raises(flashtwin.FlashtwinError, match=r"must be one of pool\.units"):
        waf(victims=[Alien])
    with pytest.raises(flashtwin.FlashtwinError, match="host returned 2; must be a class from 0 to 1"):
        waf(schemes=[Wide])
    with pytest.raises(flashtwin.FlashtwinError, match="elsewhere"):
        waf(schemes=[Nowhere])
    with pytest.raises(flashtwin.FlashtwinError, match="everything"):
        waf(schemes=[Greedless])


def test_a_rule_that_gains_nothing_ends():
    class Fullest(flashtwin.Victim):
        def choose(self, pool):
            return max(pool.units, key=lambda u: u.valid)

    with pytest.raises(flashtwin.FlashtwinError, match="the victim rule chooses none"):
        waf(victims=[Fullest])


def test_survivors_of_one_unit_go_to_every_class():
    class Scatter(flashtwin.Placement):
        classes = 6

        def __init__(self):
            self.turn = 0

        def host(self, page):
            return page.lpn % 2

        def moved(self, page):
            self.turn += 1
            return self.turn % self.classes

    row = waf(schemes=[Scatter], setup={"low": 6, "units": 66})[0]
    assert len(row.by_owner()) == 6
    with pytest.raises(flashtwin.FlashtwinError, match="low: found 3; must be at least 6"):
        waf(schemes=[Scatter])


def test_a_device_that_does_not_fit_into_memory_is_refused():
    setup = {"units": 60_000, "unit_pages": 65_536, "logical_pages": 3_000_000_000}
    with pytest.raises(flashtwin.FlashtwinError, match=r"of memory.*divided by a scale"):
        waf(setup=setup, threads=64, victims=["greedy", "fifo", "random"])


def test_level_is_unknown_if_the_warm_up_was_given():
    assert waf()[0].level is True
    row = waf(warm=1.0)
    assert row[0].level is None
    assert row.__repr__().splitlines()[3].endswith(" -")


def test_a_trace_is_a_load(tmp_path):
    requests = [f"{n},W,{n * 7919 % 1440 * 4096},4096,{n % 2}" for n in range(40_000)]
    trace = tmp_path / "trace.csv"
    trace.write_text("\n".join(["time_us,op,offset_bytes,size_bytes,placement", *requests]) + "\n")
    row = waf(trace, warm=4.0)[0]
    hosts = [owner["host_pages"] for owner in row.by_owner() if owner["name"] in ("h0", "h1")]
    assert hosts[0] == pytest.approx(hosts[1], rel=0.01)
    far = tmp_path / "far.csv"
    far.write_text("time_us,op,offset_bytes,size_bytes\n0,W,99999744,4096\n")
    with pytest.raises(flashtwin.FlashtwinError, match="beyond the device, which has 5898240 bytes"):
        waf(far)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schemes": ["handel"]}, 'did you mean "handle"'),
        ({"victims": ["greedy@nosy"]}, 'did you mean "noisy"'),
        ({"victims": ["greedy@noisy:quota=1"]}, "quota"),
        ({"victims": ["greedy:window=3"]}, "window"),
        ({"setup": {"low": 0}}, "low"),
        ({"setup": {"unit": 3}}, "no such word"),
        ({"schemes": ["none", "sepbit"], "setup": {"low": 2}, "threads": 2}, "scheme sepbit"),
        ({"setup": {"logical_pages": 1900}}, "larger reserve"),
        ({"scale": 0}, "scale"),
        ({"scale": 64}, "unit_pages"),
        ({"device": "nvme-tlc2"}, "nvme-tlc"),
        ({"load": "uniform:write=1,requests=10"}, "repeat it"),
    ],
)
def test_errors_name_the_word(arguments, message):
    with pytest.raises(flashtwin.FlashtwinError, match=message):
        waf(**arguments)


def test_a_device_gives_the_sizes():
    rows = flashtwin.placement_waf("uniform:write=1,size=4k", "nvme-tlc", scale=1024, schemes=["none"])
    assert rows[0].device["units"] == "128"
    assert rows[0].waf > 1


def test_theory(cli):
    forms = json.loads(cli("placement", "theory", "--fill", "0.8", "--split", "20/80", "--json").stdout)
    assert forms["best_split"] == pytest.approx(1.998, rel=0.001)
    assert forms["uniform_greedy"] == pytest.approx(2.69, rel=0.005)
    assert "2.500" in cli("placement", "theory", "--fill", "0.8").stdout
    wrong(cli("placement", "theory", "--fill", "1"), "fill: found 1")
    wrong(cli("placement", "theory", "--fill", "0.8", "--split", "20"), "--split")
    wrong(cli("placement", "theory", "--fill", "0.8", "--split", "0/80"), "--split")


def catalogue():
    parts = []
    for kind, title in (("scheme", "Schemes"), ("victim", "Victim rules"), ("scope", "Scopes")):
        parts.append(f"### {title}\n")
        for info in flashtwin.placements():
            if info["kind"] == kind:
                parts.append(described(info))
    return "\n".join(parts)


def described(info):
    lines = [f"#### {info['name']}\n", f"{info['line'][0].upper()}{info['line'][1:]}.\n"]
    if "rule" in info:
        lines.append("\n".join(f"- {sentence}" for sentence in info["rule"]) + "\n")
    if "source" in info:
        of = info["source"]
        lines.append(f"{of['authors']}: {of['title']}. {of['venue']}, {of['year']}.\n")
    if info["parameters"]:
        rows = [
            f"| `{p['key']}` | {p['default']} | {p['description']} Takes {p['takes']}. | {p['provenance']} |"
            for p in info["parameters"]
        ]
        head = "| parameter | default | meaning | source |\n|---|---|---|---|\n"
        lines.append(head + "\n".join(rows) + "\n")
    return "\n".join(lines)


def words_table():
    rows = [f"| `{word}` | {default} | {meaning} |" for word, default, meaning in _core.placement_words()]
    return WORDS + "|---|---|---|\n" + "\n".join(rows) + "\n"


def test_the_page_lists_everything():
    text = PAGE.read_text()
    before, after = text.split(LIST)
    start = before.index(WORDS)
    end = before.index("\nThe parameters of the scheme, the rule", start)
    written = f"{before[:start]}{words_table()}{before[end:]}{LIST}\n{catalogue()}"
    if os.environ.get("FLASHTWIN_WRITE_DOCS"):
        PAGE.write_text(written)
    assert after and PAGE.read_text() == written, (
        "FLASHTWIN_WRITE_DOCS=1 pytest tests/python/test_placement.py"
    )


def test_the_figure_shows_moves_by_owner_and_cause(cli, tmp_path):
    words = [word for key, value in SETUP.items() for word in ("--set", f"{key}={value}")]
    done = cli("placement", "waf", LOAD, *words, "--figure", tmp_path / "waf.svg")
    assert "WAF" in done.stdout
    assert (tmp_path / "waf.svg").read_text().count("<path") > 20
    rows = waf(setup={"handles": "pi,pi"}, victims=["greedy", "greedy@noisy"])
    axes = flashtwin.plot.placements(rows).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert {"host", "h0, own", "h0, others", "h1, own", "h1, others"} <= {*labels}
    assert "best split, closed form" in labels
    wrong(cli("placement", "waf", LOAD, *words, "--figure", "waf.text"), "waf.text")


def test_log_pages_are_those_of_the_standard(cli, tmp_path):
    words = [word for key, value in SETUP.items() for word in ("--set", f"{key}={value}")]
    cli("placement", "waf", LOAD, *words, "--placement-log", tmp_path / "logs.json")
    (entry,) = json.loads((tmp_path / "logs.json").read_text())
    configuration, usage, sums, host, controller = entry["logs"]
    assert [page["log"] for page in entry["logs"]] == ["20h", "21h", "22h", "23h", "23h"]
    runs = configuration["configurations"][0]["runs"]
    assert runs == SETUP["unit_pages"] * 4096
    assert sum(int(handle["hbmw"]) for handle in usage["ruh"]) == int(sums["hbmw"])
    assert int(sums["mbe"]) % runs == 0
    # Bytes on flash are the bytes that were programmed and not yet erased.
    written = int(sums["mbmw"]) - int(sums["mbe"])
    assert 0 < written <= SETUP["units"] * runs
    assert (host["total"], host["events"]) == (0, [])
    assert len(controller["events"]) == 63 < controller["total"]
    assert {event["type"] for event in controller["events"]} == {"80h", "81h"}
