"""Orders to served devices: changes while clients are active."""

import json
import time
from urllib.parse import unquote

import pytest

import flashtwin
from clients import need, wait_for
from flashtwin.cli import main
from power import PAGE, Connection, RefusedError, contents

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}


def serve(more=(), **options):
    need("nbdkit")
    given = {"device": "demo", "set": {**SMALL, **dict(more)}, "precondition": "steady", **options}
    return flashtwin.serve(**given)


def path_of(server):
    return unquote(server.uri.partition("?socket=")[2])


def command(capsys, *words):
    """Send a command; return its response or error."""
    code = main(["ctl", *map(str, words)])
    said = capsys.readouterr()
    return json.loads(said.out) if code == 0 else said.err


def test_dies_collect_when_ordered(capsys):
    with serve() as server:
        assert server.report().flash["erases"] == 0
        assert server.collect() == 4
        # One block in each of the four planes of each of the four chips is erased.
        wait_for(lambda: server.report().flash["erases"] == 16)
        assert command(capsys, path_of(server), "collect", "--die", 3) == {"dies": 1}
        wait_for(lambda: server.report().flash["erases"] == 20)
        assert "dies 0 to 3" in command(capsys, path_of(server), "collect", "--die", 4)
        assert "no array" in command(capsys, path_of(server), "collect", "--member", 0)


def test_the_policy_is_exchanged_under_clients(capsys):
    volatile = {"buffer.power_loss_protection": "false", "buffer.capacity": "512KiB"}
    with serve(volatile) as server:
        with Connection(path_of(server)) as connection:
            for number, policy in enumerate(["gcar-lru", "bplru", "s3-fifo", "req-block", "ecr"]):
                for page in range(200):
                    connection.write(page * PAGE, contents(page, number + 1))
                server.set_policy(policy)
                assert connection.read(0, 200 * PAGE) == b"".join(
                    contents(page, number + 1) for page in range(200)
                )
        socket = path_of(server)
        given = ["--set", "buffer.window=0.5"]
        assert command(capsys, socket, "policy", "cflru", *given) == {"policy": "cflru"}
        server.set_policy("cflru", set={"buffer.window": 16})
        changed = command(capsys, socket, "policy", "lfu", "--set", "buffer.count_max=8")
        assert changed == {"policy": "lfu"}
        keys = {"buffer.count_max": "8", "buffer.mean_max": "2", "gc.low_percent": "5"}
        assert command(capsys, socket, "set", "buffer.mean_max=2") == keys
        keys["buffer.count_max"] = "9"
        assert server.set_keys({"buffer.count_max": 9}) == keys
        refused = command(capsys, socket, "set", "geometry.chips=3")
        assert "of lfu: buffer.count_max, buffer.mean_max), and gc.low_percent, gc.idle_percent" in refused
        assert "from 2 to" in command(capsys, socket, "set", "buffer.count_max=1")
        assert server.set_keys({}) == keys, "an error changes nothing"
        assert "give KEY=VALUE" in command(capsys, socket, "set", "buffer.count_max")
        with Connection(socket) as connection:
            assert connection.read(0, PAGE) == contents(0, 5), "no page is lost"
        server.set_policy("lru")
        assert "lru has none" in command(capsys, socket, "set", "buffer.window=1")
        assert "no such policy" in command(capsys, socket, "policy", "lrru")
        assert "only the keys of a policy" in command(capsys, socket, "policy", "lru", "--set", "gc.low=3")
        assert "blocks of their own" in command(capsys, socket, "policy", "cda-gc")
        lost = server.power_cut().lost
        assert 0 < len(lost) <= 128


def test_gc_settings_change_under_clients(capsys, tmp_path):
    small = {"geometry.chips": 4, "geometry.channels": 2, "geometry.blocks_per_plane": 64}
    options = {"device": "nvme-tlc", "set": small, "store": tmp_path / "data"}
    with serve(**options) as server, Connection(path_of(server)) as connection:
        for page in range(64):
            connection.write(page * PAGE, contents(page, 1))
        erases = server.report().flash["erases"]
        changed = command(capsys, path_of(server), "set", "gc.idle_percent=20", "gc.preemptible=true")
        # Idle dies collect at once, until they have the new percentage of free blocks.
        wait_for(lambda: server.report().flash["erases"] > erases)
        low = changed["gc.low_percent"]
        assert changed == {"gc.idle_percent": "20", "gc.low_percent": low, "gc.preemptible": "true"}
        both = {"gc.low_percent": 7, "buffer.window": 1}
        with pytest.raises(flashtwin.FlashtwinError, match="lru has none"):
            server.set_keys(both)
        assert server.set_keys({}) == changed, "an error changes nothing"
        with pytest.raises(flashtwin.FlashtwinError, match=r"below geometry\.reserve_percent"):
            server.set_keys({"gc.low_percent": 60})
        assert "of [gc], only gc.low_percent" in command(capsys, path_of(server), "set", "gc.victim=fifo")
        assert server.set_keys({"gc.low_percent": 7})["gc.low_percent"] == "7"
        assert connection.read(0, 64 * PAGE) == b"".join(contents(page, 1) for page in range(64))
    # The next start has the settings of its device, and the flash as it was left.
    with serve(**options) as server, Connection(path_of(server)) as connection:
        assert server.set_keys({}) == {"gc.low_percent": low, "gc.preemptible": "false"}
        assert connection.read(0, PAGE) == contents(0, 1)
    small = {"member.geometry.blocks_per_plane": 20}
    with serve(device="raid5-array", precondition="none", set=small) as server:
        assert "members of an array" in command(capsys, path_of(server), "set", "gc.low_percent=3")


def test_a_member_is_slow(capsys):
    small = {"member.geometry.blocks_per_plane": 20, "buffer": "none"}
    with (
        serve(device="raid5-array", set=small, precondition="none") as server,
        Connection(path_of(server)) as connection,
    ):
        for page in range(24):
            connection.write(page * PAGE, contents(page, 1))

        def read_all():
            began = time.monotonic()
            for page in range(24):
                assert connection.read(page * PAGE, PAGE) == contents(page, 1)
            return time.monotonic() - began

        socket = path_of(server)
        chosen = [command(capsys, socket, "slow", member, "--times", 200) for member in range(3)]
        assert chosen == [{"times": 200}] * 3
        # A read of a page takes at least 20 us. On members that are 200 times slower, it takes at least 4 ms.
        assert read_all() >= 3 * 0.004
        for member in range(3):
            server.slow_member(member, 1)
        assert "members 0 to" in command(capsys, socket, "slow", 99, "--times", 2)
        with pytest.raises(flashtwin.FlashtwinError, match="from 1"):
            server.slow_member(0, 0.5)
        with pytest.raises(flashtwin.FlashtwinError, match="from 1"):
            server.slow_member(0, 1e9)


def test_a_dead_die_loses_what_lay_there(capsys):
    modern = {**SMALL, "geometry.channels": 2, "geometry.reserve_percent": 50, "buffer": "none"}
    with (
        serve(device="nvme-tlc", set=modern, precondition="none") as server,
        Connection(path_of(server)) as connection,
    ):
        connection.write(0, b"".join(contents(page, 1) for page in range(2000)))
        socket = path_of(server)
        lay_there = command(capsys, socket, "kill-die", 1)["pages"]
        assert 400 < lay_there < 600

        def fails(page):
            try:
                assert connection.read(page * PAGE, PAGE) == contents(page, 1)
            except RefusedError:
                return True
            return False

        lost = [page for page in range(2000) if fails(page)]
        assert len(lost) == lay_there
        for page in lost:
            connection.write(page * PAGE, contents(page, 1))
        assert not any(fails(page) for page in lost)
        report = server.report()
        assert report.dead_dies == [1] and report.responses["read"]["failed"] >= len(lost)
        assert "die 1 is dead" in command(capsys, socket, "kill-die", 1)
        assert "dies 0 to 3" in command(capsys, socket, "kill-die", 9)
        assert server.kill_die(0) > 0
    with serve() as server:
        assert "nand.backend" in command(capsys, path_of(server), "kill-die", 0)
    small = {"member.geometry.blocks_per_plane": 20}
    with serve(device="raid5-array", set=small, precondition="none") as server:
        assert "fail N" in command(capsys, path_of(server), "kill-die", 0)
