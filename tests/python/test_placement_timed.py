"""Devices that write by units, in runs with time and as served devices."""

import json

import pytest

import flashtwin
from clients import client, fio, need
from test_cli import keeps_the_summary, wrong

#: A small device with room for four handles.
SMALL = {
    "geometry.chips": 8,
    "geometry.channels": 4,
    "geometry.blocks_per_plane": 64,
    "geometry.pages_per_block": 64,
    "buffer.capacity": "256 KiB",
    "placement.handles": "4",
}
#: Two parts of the device: a small part that gets most of the writes, and the rest.
PARTS = (
    "uniform:write=1,size=4k,range=0%..20%,placement={0},bytes=0.8"
    " + uniform:write=1,size=4k,range=20%..100%,placement={1},bytes=0.2,requests=60000"
)


def run(handles=(1, 2), **more):
    settings = {**SMALL, **more.pop("set", {})}
    options = {"precondition": "load:2", "pacing": flashtwin.ClosedLoop(32), **more}
    return flashtwin.run(PARTS.format(*handles), "nvme-fdp", set=settings, **options)


def moved(result):
    return sum(owner["moved_in_pages"] for owner in result.summary["placement"]["owners"])


def test_counts_by_owner_agree_with_those_of_the_flash():
    summary = run().summary
    ops = {op["name"]: op["count"] for op in summary["flash"]["ops"]}
    owners = {owner["name"]: owner for owner in summary["placement"]["owners"]}
    assert set(owners) == {"h1", "h2", "s"}
    host = sum(owner["host_pages"] for owner in owners.values())
    assert host == ops["destage"]
    came = sum(owner["moved_in_pages"] for owner in owners.values())
    assert came == ops["gc_move"] == owners["s"]["moved_in_pages"]
    assert sum(owner["moved_out_pages"] for owner in owners.values()) == came
    caused = summary["placement"]["caused"]
    assert sum(row["pages"] for row in caused) <= came
    # A unit has one block of each of the eight dies.
    assert sum(owner["erases"] for owner in owners.values()) * 8 == ops["erase"]
    by_handle = {row["handle"]: row["host_bytes"] for row in summary["placement"]["handles"]}
    assert by_handle[0] == by_handle[3] == 0
    written = summary["counts"]["writes"]["bytes"]
    assert by_handle[1] + by_handle[2] == written
    # One of five pages is hot, and gets four of five writes.
    assert by_handle[1] / written == pytest.approx(0.8, abs=0.01)


def test_the_same_arguments_give_the_same_result():
    assert run().to_json() == run().to_json()


def test_log_pages_of_a_run(cli, tmp_path):
    log = tmp_path / "log.json"
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    result = cli(
        "run",
        PARTS.format(0, 7),
        "--device",
        "nvme-fdp",
        *settings,
        "--queue-depth",
        "8",
        "--precondition",
        "none",
        "--placement-log",
        log,
    )
    assert "handle, 4 handles; greedy among global" in result.stdout
    configuration, usage, sums, host, controller = json.loads(log.read_text())
    assert configuration["configurations"][0]["runs"] == 8 * 64 * 4096
    assert [row["ruhid"] for row in usage["ruh"]] == [0, 1, 2, 3]
    assert int(sums["hbmw"]) == sum(int(row["hbmw"]) for row in usage["ruh"])
    # Handle 7 does not exist. Each write that names it uses handle 0 and causes an event.
    assert host["total"] > 1000
    assert {event["type"] for event in host["events"]} == {"03h"}
    assert {event["type"] for event in controller["events"]} <= {"80h", "81h"}
    assert int(usage["ruh"][0]["hbmw"]) == int(sums["hbmw"])


def test_separate_handles_and_a_quota_move_less():
    together = moved(run((1, 1)))
    apart = moved(run((1, 2), set={"placement.handles": "pi,pi,pi", "placement.survivors": "same"}))
    shared_out = moved(
        run(
            (0, 1),
            set={
                "placement.handles": "pi,pi",
                "placement.survivors": "same",
                "gc.scope": "noisy",
                "gc.quota": "optimal",
            },
        )
    )
    assert shared_out < apart < together


@pytest.mark.parametrize("preemptible", [True, False])
def test_write_amplification_is_that_of_the_run_without_time(tmp_path, preemptible):
    load = PARTS.format(1, 2)
    settings = {**SMALL, "gc.preemptible": preemptible, "gc.idle_percent": "none"}
    device = tmp_path / "device.toml"
    device.write_text(flashtwin.device("nvme-fdp", settings).to_toml())
    [row] = flashtwin.placement_waf(load.replace(",requests=60000", ""), device, setup={"handles": 4})
    timed = flashtwin.run(
        load.replace("60000", "200000"),
        "nvme-fdp",
        set={**settings, "buffer": "none"},
        precondition="load",
        pacing=flashtwin.ClosedLoop(8),
    )
    found = timed.summary["flash"]["gc_write_amplification"]
    assert found == pytest.approx(row.waf, rel=0.03)


def test_writes_that_pass_wait_less():
    waits = {
        passes: run(set={"gc.preemptible": passes, "buffer": "none"}).summary["write"]["max_us"]
        for passes in (True, False)
    }
    assert waits[True] < 0.7 * waits[False]


def test_the_load_of_a_state_must_write():
    reads = "uniform:write=0,size=4k,requests=1000"
    for load, device, message in [
        (reads, "nvme-fdp", "before write amplification could be measured"),
        (PARTS.format(0, 1), "nvme-tlc", "the device does not write by units"),
    ]:
        with pytest.raises(flashtwin.FlashtwinError, match=message):
            flashtwin.run(load, device, precondition="load", pacing=flashtwin.ClosedLoop(1))
    with pytest.raises(flashtwin.FlashtwinError, match="only runs and comparisons have a load"):
        flashtwin.save_snapshot("never.snapshot", "nvme-fdp", set=SMALL, precondition="load")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "placement.handles=300",
            "placement.scheme: handles: found 300; must be from 1 to 256",
        ),
        (
            "placement.handles=xi",
            'placement.handles: found "xi"; must be a number, or ii or pi for each handle',
        ),
        ("placement.groups=3", "placement.groups: found 3; must divide the 64 chips evenly"),
        ("placement.handles=40", "use fewer handles, smaller units or a larger reserve"),
        ("placement.scheme=oracle", "needs to know the load in advance"),
        ("gc.granularity=block", 'gc.granularity: with placement.scheme must be "superblock"'),
        ("placement.scheme=nosuch", "placement.scheme"),
    ],
)
def test_devices_without_room_or_sense_are_refused(cli, setting, message):
    wrong(cli("run", "uniform:requests=10", "--device", "nvme-fdp", "--set", setting), message)


def test_a_device_that_does_not_write_by_units_has_no_log(cli, tmp_path):
    log = tmp_path / "x.json"
    done = cli("run", "uniform:requests=10", "--queue-depth", "1", "--device", "demo", "--placement-log", log)
    keeps_the_summary(done, "does not write by units")


def test_a_snapshot_continues_as_the_device_itself(tmp_path):
    saved = tmp_path / "state"
    flashtwin.save_snapshot(saved, "nvme-fdp", set=SMALL, precondition="random:2")
    from_file = run(snapshot=saved, precondition="random:2").summary
    itself = run(precondition="random:2").summary
    from_file.pop("precondition"), itself.pop("precondition")
    assert from_file == itself


def test_an_export_is_a_handle():
    need("nbdkit", "fio")
    with flashtwin.serve("nvme-fdp", set=SMALL, precondition="none") as server:

        def uri(export):
            return server.uri.replace(":///?", f":///{export}?")

        assert all(row["ruamw"] == 8 * 64 * 4096 for row in server.placement_status())
        client(*fio(uri("h2"), rw="randwrite", size="512k", bs="64k"))
        client(*fio(uri("h3"), rw="randwrite", size="256k", bs="64k"))
        client(*fio(uri(""), rw="randwrite", size="128k", bs="64k"))
        refused = client(*fio(uri("h4"), rw="write", size="64k"), code=1)
        assert "h4" in refused or "export" in refused
        [_, usage, *_] = server.placement_log()
        written = [int(row["hbmw"]) // 1024 for row in usage["ruh"]]
        assert written == [128, 0, 512, 256]
        left = {row["pid"]: row["ruamw"] for row in server.placement_update(2)}
        assert left[2] == 8 * 64 * 4096
        with pytest.raises(flashtwin.FlashtwinError, match="no unit was closed"):
            server.placement_update(3, 9)


def test_a_server_without_units_has_no_handles():
    need("nbdkit")
    served = flashtwin.serve("demo", precondition="none", set={"geometry.blocks_per_plane": 64})
    with served as server, pytest.raises(flashtwin.FlashtwinError, match="does not write by units"):
        server.placement_status()


class ByHandle(flashtwin.Placement):
    """The shipped scheme with four handles, rewritten in Python."""

    classes = 4

    def host(self, page):
        return page.handle


class Greedy(flashtwin.Victim):
    """The shipped rule, rewritten in Python."""

    def choose(self, pool):
        return min(pool.units, key=lambda u: (u.valid, -u.age), default=None)


class Faulty(flashtwin.Placement):
    classes = 2

    def host(self, page):
        return 1 if page.clock < 30_000 else 1 // 0


def test_rules_of_users_do_in_time_what_the_shipped_ones_do():
    shipped, own, named = (
        run(precondition="random:1", **rules).summary
        for rules in (
            {},
            {"placement": ByHandle, "victim": Greedy},
            {"placement": "handle", "victim": "greedy@global"},
        )
    )
    assert named == shipped
    assert (own["placement"]["scheme"], own["placement"]["victim"]) == ("ByHandle", "Greedy")
    # Events have handles only if classes are handles.
    for name in ("logs", "scheme", "victim"):
        own["placement"].pop(name), shipped["placement"].pop(name)
    assert own == shipped
    sepbit = run(
        placement="sepbit:sample=8",
        victim="cost-benefit",
        set={"gc.low_percent_of_reserve": 40, "gc.idle_percent": 16},
    )
    placement = sepbit.summary["placement"]
    assert (placement["scheme"], placement["victim"]) == ("sepbit", "cost-benefit")
    assert {owner["name"] for owner in placement["owners"]} >= {"h0", "h1", "h2", "h3"}


def test_errors_of_users_stop_the_preconditioning_or_the_run():
    for precondition in ("random:1", "none"):
        with pytest.raises(ZeroDivisionError):
            run(precondition=precondition, placement=Faulty)
    with pytest.raises(flashtwin.FlashtwinError, match="does not write by units"):
        flashtwin.run(PARTS.format(0, 1), "nvme-tlc", precondition="none", placement=ByHandle)
    with pytest.raises(flashtwin.FlashtwinError, match="placement rules"):
        flashtwin.run(PARTS.format(0, 1), "raid5-array", precondition="none", placement=ByHandle)
