"""Served devices under common clients, and under clients that misbehave."""

import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest

import flashtwin
from clients import client, fio, need, qemu_io, started, wait_for
from mutations import seeds
from power import Connection

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
MIB = 1 << 20


def serve(**options):
    need("nbdkit", "nbdinfo")
    given = {"device": "demo", "set": SMALL, "precondition": "sequential", **options}
    return flashtwin.serve(**given)


@pytest.fixture
def server():
    with serve() as started:
        yield started


def info(uri):
    return json.loads(client("nbdinfo", "--json", uri))["exports"][0]


def path_of(uri):
    return unquote(uri.partition("?socket=")[2])


def test_clients_receive_size_and_capabilities(server):
    said = info(server.uri)
    assert said["export-size"] == server.size_bytes == flashtwin.device("demo", SMALL).exported_bytes
    able = ["can_cache", "can_fast_zero", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"]
    assert all(said[what] for what in able), said
    assert not said["is_read_only"] and not said["is_rotational"]
    sizes = [said[f"block_size_{which}"] for which in ("minimum", "preferred", "maximum")]
    assert sizes == [1, 4096, 32 * MIB]


def test_a_copy_comes_back_and_holes_stay_holes(server, tmp_path):
    image, back = tmp_path / "image", tmp_path / "back"
    data = random.Random(3).randbytes(3 * MIB)
    with image.open("wb") as file:
        file.truncate(server.size_bytes)
        file.seek(5 * MIB + 512)
        file.write(data)
    client("nbdcopy", image, server.uri)
    client("nbdcopy", server.uri, back)
    with back.open("rb") as file:
        assert file.read(5 * MIB + 512) == bytes(5 * MIB + 512)
        assert file.read(len(data)) == data
    written = [e for e in json.loads(client("nbdinfo", "--map", "--json", server.uri)) if e["type"] == 0]
    assert sum(extent["length"] for extent in written) < 4 * MIB


def test_fio_finds_what_it_wrote(server):
    job = {"rw": "randrw", "size": "12M", "numjobs": 2, "offset_increment": "20M", "fsync": 32}
    said = client(*fio(server.uri, **job))
    assert "err= 0" in said
    report = server.stop()
    assert report.responses["flush"]["requests"] > 0
    assert report.responses["write"]["requests"] >= 2 * 1000
    calls = sum(kind["requests"] for kind in report.responses.values())
    assert report.lateness["calls"] == calls
    names = [f"{name}_us" for name in ("p50", "p75", "p90", "p95", "p99", "p995", "p999", "max")]
    late = [report.lateness[name] for name in names]
    assert late[0] > 0 and late == sorted(late)


def test_a_session_of_qemu_io(server):
    said = qemu_io(
        server.uri,
        "write -P 1 0 64k",
        "write -P 2 -f 1 511",
        "read -P 1 0 1",
        "read -P 2 1 511",
        "read -P 1 512 1k",
        "discard 8k 8k",
        "read -P 0 8k 8k",
        "write -z 20k 1k",
        "write -z -u 30k 4k",
        "read -P 0 20k 1k",
        "read -P 0 30k 4k",
        "read -P 1 21k 9k",
        "aio_write -P 5 1M 1M",
        "aio_write -P 6 2M 1M",
        "aio_flush",
        "flush",
        "read -P 5 1M 1M",
        "read -P 6 2M 1M",
    )
    assert "Pattern verification failed" not in said and "error" not in said.lower(), said
    client("qemu-img", "bench", "-f", "raw", "-w", "-c", "2000", "-d", "16", "-s", "4096", server.uri)


def test_flash_time_passes_and_dilation_stretches_it():
    times = []
    for dilation in (1, 50):
        with serve(dilation=dilation, set={**SMALL, "buffer": None}) as server:
            began = time.monotonic()
            qemu_io(server.uri, *["read 1M 4k"] * 20)
            times.append(time.monotonic() - began)
            report = server.stop()
        assert report.responses["read"]["requests"] == 20
        assert 25 <= report.responses["read"]["p50_us"] <= 60, "the chips' read and the transfer"
    # 20 reads of at least 25 us, one after the other, at a dilation of 50.
    assert times[1] >= 20 * 25e-6 * 50


def test_data_stored_nowhere_read_as_zeros():
    with serve(store="none", size="100M") as server:
        assert info(server.uri)["export-size"] == server.size_bytes == 100 * MIB
        qemu_io(server.uri, "write -P 7 0 1M", "read -P 0 0 1M")


def test_a_file_survives_and_must_fit(tmp_path):
    disk = tmp_path / "disk.img"
    with serve(store=disk) as server:
        qemu_io(server.uri, "write -P 9 4k 1M")
        assert "preconditioned" in server.started_from
    state = tmp_path / "disk.img.state"
    assert state.exists()
    with serve(store=disk) as server:
        assert str(state) in server.started_from
        qemu_io(server.uri, "read -P 9 4k 1M")
        with pytest.raises(flashtwin.FlashtwinError, match="another server uses this store"):
            serve(store=disk)
    with pytest.raises(flashtwin.FlashtwinError, match=r"holds \d+ bytes, the device has"):
        serve(store=disk, size="100M")
    with serve(store=disk, snapshot=state) as server:
        assert server.started_from.startswith(f"as {state} has it (snapshot {state} is not used: ")
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.raises(flashtwin.FlashtwinError, match="truncated"):
        serve(store=disk)


def test_arrays_are_served_and_restarted(tmp_path):
    of_members = {"member.geometry.blocks_per_plane": 64, "member.geometry.chips": 2}
    options = {"device": "raid5-array", "set": of_members, "store": tmp_path / "disk.img"}
    for command in ("write -P 3 100k 300k", "read -P 3 100k 300k"):
        with serve(**options) as server:
            qemu_io(server.uri, command, "flush")


def wait_for_writes(server):
    wait_for(lambda: server.report().responses["write"]["requests"] > 0)


def still_serves(server):
    qemu_io(server.uri, "write -P 8 64k 4k", "read -P 8 64k 4k")
    assert server.running


@seeds(2)
def test_garbage_and_half_open_connections_harm_no_other_client(server, seed):
    rng = random.Random(seed)
    held = []
    for length in (0, 0, 1, 7, 500, 100_000):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path_of(server.uri))
        held.append(connection)
        with contextlib.suppress(OSError):  # The server may have closed the connection.
            connection.sendall(rng.randbytes(length))
    still_serves(server)
    for connection in held:
        connection.close()
    still_serves(server)


def test_a_killed_client_leaves_a_server_that_serves(server):
    job = fio(server.uri, rw="randwrite", size="40M", time_based=1, runtime=600, verify=0, thread=1)
    need("fio")
    # The jobs are threads of fio. Forked jobs would have sessions of their own, and would continue to write
    # after fio is killed.
    with started(*job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_for_writes(server)
    still_serves(server)
    assert server.stop().responses["write"]["requests"] > 0


def disconnect_amid_responses(server, clients, offset=0):
    """Some of these clients made nbdkit before 1.34.2 abort."""

    def client():
        for _ in range(clients):
            Connection(path_of(server.uri)).leave_amid_writes(64, offset)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(client) for _ in range(4)]:
            done.result()
    still_serves(server)


def test_clients_that_disconnect_amid_responses_harm_no_other_client():
    with serve(device="instant", set=None) as server:
        disconnect_amid_responses(server, 100)
        assert server.stop().responses["write"]["requests"] > 0


def test_clients_that_disconnect_amid_refusals_harm_no_other_client(monkeypatch):
    # nbdkit itself refuses writes beyond the end, in threads that may never have called the plugin. With few
    # threads, a larger part of them send responses at the same time.
    monkeypatch.setattr("flashtwin.live._IN_FLIGHT", 16)
    with serve(device="instant", set=None) as server:
        disconnect_amid_responses(server, 30, server.size_bytes)


def test_a_restarted_server_resumes_its_state():
    need("fio")
    # The device is so slow that requests are always in flight.
    with serve(dilation=50, set={**SMALL, "buffer": None}) as server:
        job = fio(server.uri, rw="randwrite", size="6M")
        with subprocess.Popen(job, stdout=subprocess.PIPE, text=True) as process:
            wait_for_writes(server)
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(server.pid, signal.SIGCONT)
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and "err= 0" in said
        assert server.stop().lateness["max_us"] > 100_000


def test_a_full_disk_is_an_error_of_the_write(tmp_path):
    with serve(store=tmp_path / "disk.img") as server:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (8 * MIB, 8 * MIB))
        said = qemu_io(server.uri, "write -P 4 1M 1M", "write -P 5 9M 1M", code=1)
        assert "No space left on device" in said
        qemu_io(server.uri, "read -P 4 1M 1M", "read -P 0 9M 1M")
        # The first part of a write fits into the file, and the second does not. Bytes around the write stay
        # unchanged.
        said = qemu_io(server.uri, "write -P 6 7M 1M", "write -P 7 7680k 1M", code=1)
        assert "No space left on device" in said
        qemu_io(server.uri, "read -P 6 7M 512k", "read -P 0 8M 2M")
        still_serves(server)


class Mine(flashtwin.Policy):
    """A policy of a user."""


def test_invalid_settings_are_reported_before_serving(tmp_path, monkeypatch):
    need("nbdkit")
    wrong = [
        ({"size": "0"}, "give a size above 0"),
        ({"size": "big"}, "give a size above 0"),
        ({"size": 1}, "cannot have it"),
        ({"size": "100T"}, "larger pages hold more.*cannot have it"),
        ({"dilation": 0}, "give a number from 0.001"),
        ({"tcp": 0}, "give a port"),
        ({"tcp": 1, "socket": "x"}, "either a socket or a port"),
        ({"socket": tmp_path / ("x" * 120)}, "longer than 103 bytes"),
        ({"socket": tmp_path}, "already exists"),
        ({"store": tmp_path / "no" / "disk.img"}, "cannot make"),
        ({"snapshot": tmp_path / "none.state"}, "cannot open"),
        ({"policy": "nonsense"}, "nonsense"),
        ({"policy": Mine}, "Mine: a served device cannot have a policy of your own"),
    ]
    for options, said in wrong:
        with pytest.raises(flashtwin.FlashtwinError, match=said):
            serve(**options).stop()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(flashtwin.FlashtwinError, match="nbdkit is not installed; install it:"):
        flashtwin.serve("demo")


@pytest.mark.parametrize(
    ("device", "gib"), [("demo", 3), ("nvme-tlc", 16), ("sata-dc", 16), ("sata-tlc", 16), ("raid5-array", 3)]
)
def test_a_size_is_the_least_that_holds_it(device, gib):
    from flashtwin._policies import Choice
    from flashtwin._support.sizing import read, sized

    assert read("3G") == read("3GiB") == 3 << 30 and read("3 GB") == 3 * 10**9
    wanted = read(f"{gib}G")
    spec = sized(device, wanted, Choice.read(None), {})
    assert wanted <= spec.exported_bytes < wanted * 1.1
    given = flashtwin.device(device)
    assert spec.chips == given.chips and spec.buffer_pages == given.buffer_pages


@pytest.mark.parametrize("device", flashtwin.devices())
def test_a_size_below_the_minimum_is_rejected_with_the_minimum(device):
    from flashtwin._policies import Choice
    from flashtwin._support.sizing import read, sized

    def served(size):
        return sized(device, read(size), Choice.read(None), {})

    with pytest.raises(flashtwin.DeviceError, match="cannot have it with") as refused:
        served("4k")
    least = re.search(
        r"^size 4 KiB: the minimum is --size (\d+MiB) \(\d+ blocks a plane\): ", str(refused.value)
    )[1]
    assert not re.search(r":\d+:\d+:", str(refused.value))
    assert read(least) <= served(least).exported_bytes < read(least) * 1.1
    with pytest.raises(flashtwin.DeviceError, match=f"the minimum is --size {least}"):
        served(read(least) // 2)


def test_the_command_serves_until_stopped(tmp_path):
    need("nbdkit", "nbdinfo")
    at = tmp_path / "nbd.sock"
    sets = [f"--set={key}={value}" for key, value in SMALL.items()]
    command = [
        sys.executable,
        "-m",
        "flashtwin.cli",
        "serve",
        "--device=demo",
        "--json",
        f"--socket={at}",
        *sets,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ready = json.loads(process.stdout.readline())
        assert info(ready["uri"])["export-size"] == ready["size_bytes"]
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(said)["device"] == "demo"
    assert not at.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(ready["pid"], 0)


def test_only_loopback_is_listened_on_without_tls():
    need("nbdkit", "nbdinfo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve(tcp=port) as server:
        assert info(server.uri)["export-size"] == server.size_bytes
        listening = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
        ours = [line.split()[1] for line in listening if line.split()[1].endswith(f":{port:04X}")]
        assert ours and all(address.startswith("0100007F:") for address in ours), ours
