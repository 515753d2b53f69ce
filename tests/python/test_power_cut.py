"""Power losses of served devices, and commands to these devices."""

import contextlib
import json
import socket
import stat
import struct
import time
from urllib.parse import unquote

import pytest

import flashtwin
from clients import client, need
from flashtwin.cli import main
from mutations import seeds
from power import PAGE, Checker, Connection, RefusedError, contents

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
VOLATILE = {"buffer.power_loss_protection": "false", "buffer.capacity": "512KiB"}


def serve(more=VOLATILE, **options):
    need("nbdkit")
    given = {"device": "demo", "set": {**SMALL, **more}, "precondition": "sequential", **options}
    return flashtwin.serve(**given)


def path_of(server):
    return unquote(server.uri.partition("?socket=")[2])


def command(capsys, *words):
    code = main(["ctl", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


@seeds(2)
def test_a_power_loss_loses_unflushed_writes_and_reports_them(seed):
    with serve() as server:
        checker = Checker(server, path_of(server), seed=seed)
        for _ in range(8):
            checker.cut()
        assert checker.lost > 0
        assert checker.answered > 0


@seeds(2)
def test_a_protected_buffer_loses_nothing(seed):
    with serve({"buffer.power_loss_protection": "true"}) as server:
        checker = Checker(server, path_of(server), may_lose=False, seed=seed)
        for _ in range(3):
            checker.cut()
        assert checker.lost == 0


@seeds(2)
def test_without_a_buffer_only_incomplete_writes_are_lost(seed):
    with serve({"buffer": "none"}) as server:
        checker = Checker(server, path_of(server), may_lose=False, seed=seed)
        for _ in range(3):
            checker.cut()


def test_connected_clients_must_reconnect():
    with serve() as server:
        at = path_of(server)
        with Connection(at) as old:
            old.write(0, contents(0, 1), fua=True)
            old.write(PAGE, contents(1, 1))
            cut = server.power_cut()
            assert (cut.lost, cut.unfinished) == ([1], 0)
            for attempt in (old.flush, lambda: old.read(0, PAGE), lambda: old.write(0, bytes(PAGE))):
                with pytest.raises(RefusedError):
                    attempt()
        with Connection(at) as new:
            assert new.read(0, 2 * PAGE) == contents(0, 1) + bytes(PAGE)
            new.write(PAGE, contents(1, 2))
            new.flush()
            assert server.power_cut().lost == []
        with Connection(at) as again:
            assert again.read(PAGE, PAGE) == contents(1, 2)


def test_commands(capsys):
    server = serve()
    at = path_of(server)
    assert stat.S_IMODE(server.control.stat().st_mode) == 0o600
    code, said, _ = command(capsys, at, "stats")
    assert code == 0
    assert "now      0 requests in flight, 0 dirty pages" in said
    assert "blocks erased" in said
    code, said, _ = command(capsys, at, "stats", "--json")
    assert code == 0
    assert json.loads(said)["responses"]["write"]["requests"] == 0
    code, said, _ = command(capsys, server.control, "power-cut", "--torn")
    assert (code, json.loads(said)) == (0, {"unfinished": 0, "lost": []})
    code, _, said = command(capsys, at, "fail", 0)
    assert code != 0
    assert "no array" in said
    assert command(capsys, at, "stop")[0] == 0
    assert server.wait(30)
    server.stop()
    assert not server.control.exists()
    code, _, said = command(capsys, at, "stats")
    assert code != 0
    assert "no server listens here" in said


def test_responses_are_delayed_and_reads_fail_on_demand(capsys):
    with serve({"buffer": "none"}) as server, Connection(path_of(server)) as connection:
        connection.write(0, contents(0, 1))
        server.disturb(read_error_share=1.0)
        with pytest.raises(RefusedError):
            connection.read(0, PAGE)
        server.disturb(latency_us=200_000)
        began = time.monotonic()
        assert connection.read(0, PAGE) == contents(0, 1)
        # The read must not complete before the latency has passed. How much later it completes depends on the
        # host.
        assert time.monotonic() - began >= 0.2
        code, said, _ = command(capsys, server.control, "disturb")
        assert (code, json.loads(said)["latency_us"]) == (0, 0)
        assert connection.read(0, PAGE) == contents(0, 1)
        with pytest.raises(flashtwin.FlashtwinError, match="a share from 0 to 1"):
            server.disturb(read_error_share=2.0)


def test_members_fail_and_are_replaced():
    small = {"geometry.blocks_per_plane": 20}
    with serve(device="raid5-array", set={f"member.{key}": value for key, value in small.items()}) as server:
        with Connection(path_of(server)) as connection:
            connection.write(0, contents(0, 1), fua=True)
            server.fail_member(2)
            assert connection.read(0, PAGE) == contents(0, 1)
        with pytest.raises(flashtwin.FlashtwinError, match="2"):
            server.fail_member(2)
        with pytest.raises(flashtwin.FlashtwinError, match="99"):
            server.replace_member(99)
        server.replace_member(2)
        # While this member is rebuilt, no other member may fail.
        server.fail_member(5)
        with Connection(path_of(server)) as connection, pytest.raises(RefusedError):
            connection.read(0, PAGE)


def test_garbage_on_the_control_socket_harms_no_client():
    with serve() as server:
        for garbage in (b"", b"\x00\xff" * 4000, b"{\n", b"[1]\n", b'{"do": "explode"}\n', b'{"do": 7}\n'):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(server.control))
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                try:
                    answer = connection.makefile().readline()
                except ConnectionResetError:
                    continue
                assert "error" in json.loads(answer)
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect(str(server.control))
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert server.power_cut().lost == []


def test_idle_control_connections_do_not_delay_others():
    with serve() as server, contextlib.ExitStack() as open_:
        silent = [open_.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(80)]
        # Retried, because a busy machine may take longer than the timeout of idle connections.
        for attempt in range(5):
            one = silent[attempt * 16 : attempt * 16 + 16]
            for connection in one:
                connection.connect(str(server.control))
                connection.setblocking(False)
            assert server.power_cut().lost == []
            with contextlib.suppress(BlockingIOError):
                one[0].recv(1)
                continue
            break
        else:
            pytest.fail("the command waited for idle connections")
        # When the maximum is exceeded, the oldest connections are closed.
        for _ in range(100):
            open_.enter_context(socket.socket(socket.AF_UNIX)).connect(str(server.control))
        assert server.power_cut().lost == []


def test_recordings_replay(tmp_path):
    record = tmp_path / "live.csv"
    with serve(record=record) as server:
        with Connection(path_of(server)) as connection:
            for number in range(50):
                connection.write(number * PAGE, contents(number, 1), fua=number % 5 == 0)
            connection.flush()
            connection.read(0, 3 << 20)
        client("qemu-io", "-f", "raw", "--discard=unmap", "-c", "discard 4k 64k", server.uri)
        report = server.stop()
    info = flashtwin.trace_info(record)
    asked = {kind: of["requests"] for kind, of in report.responses.items()}
    # A read of 3 MiB reaches the device in pieces of 1 MiB.
    assert asked["write"] == 50
    assert asked["read"] == 3
    assert info["requests"] == sum(asked.values())
    replayed = flashtwin.run(record, device=f"{record}.toml", precondition="sequential")
    assert {kind: replayed.summary[kind]["requests"] for kind in asked} == asked
    device = (tmp_path / "live.csv.toml").read_text()
    with pytest.raises(flashtwin.FlashtwinError, match="already"):
        serve({"buffer": "none"}, record=record)
    assert (tmp_path / "live.csv.toml").read_text() == device
