"""Limits of a served device: threads, memory and connections for its clients, also after they disconnect."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flashtwin
from clients import client, need, qemu_io, started, wait_for
from flashtwin._support.prerequisites import PLUGIN
from mutations import SEEDS
from raw_nbd import FLUSH, MAGIC, READ, REQUEST, WRITE, Client, RefusedError, resident_bytes, settled, threads

SMALL = {"geometry.blocks_per_plane": 64}
MIB = 1 << 20
#: Number of rounds of tests that are repeated; FLASHTWIN_SEEDS multiplies it.
ROUNDS = 8 * SEEDS


@contextlib.contextmanager
def serve(folder, **options):
    """Start a server. Yield it, the path of its socket, and its threads and memory without clients."""
    need("nbdkit")
    path = folder / "nbd.sock"
    options = {"device": "instant", "size": "256M", "precondition": "none", "socket": path, **options}
    with flashtwin.serve(**options) as server:
        yield server, path, (threads(server.pid), resident_bytes(server.pid))


def works(path):
    """Check that a client can write and read."""
    with Client(path) as fresh:
        fresh.write(4096, b"\x07" * 4096)
        assert fresh.read(4096, 4096) == b"\x07" * 4096


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[1])
from raw_nbd import READ, Client
client = Client(sys.argv[2])
for i in range(256):
    client.ask(READ, i % 200 << 20, 1 << 20)
print(flush=True)
time.sleep(60)
"""


def test_killed_clients_leave_no_threads_and_no_memory(tmp_path):
    with serve(tmp_path) as (server, path, (threads_before, bytes_before)):
        for _ in range(ROUNDS):
            words = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(path)]
            with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                process.kill()
        assert settled(server.pid, threads_before + 1) <= threads_before + 1
        assert resident_bytes(server.pid) < bytes_before + 32 * MIB
        works(path)


def test_data_in_flight_are_bounded_for_a_client_that_reads_nothing(tmp_path):
    with serve(tmp_path) as (server, path, (threads_before, bytes_before)):
        with Client(path) as greedy:
            for _ in range(60):
                greedy.ask(READ, 0, 32 * MIB)
            most = 0
            for _ in range(20):
                time.sleep(0.1)
                most = max(most, resident_bytes(server.pid))
                # Others are served meanwhile.
                works(path)
            assert most < bytes_before + 320 * MIB
        assert settled(server.pid, threads_before + 1) <= threads_before + 1
        wait_for(lambda: resident_bytes(server.pid) < bytes_before + 32 * MIB)


def test_large_requests_one_after_the_other_leave_no_buffers(tmp_path):
    with serve(tmp_path) as (server, path, (_, bytes_before)), Client(path) as large:
        # Requests start many workers, each of which receives a large request later.
        for handle in range(64):
            large.ask(READ, 0, 4096, handle)
        for _ in range(64):
            large.response(4096)
        for _ in range(24):
            assert large.read(0, 32 * MIB) == bytes(32 * MIB)
        assert resident_bytes(server.pid) < bytes_before + 96 * MIB


def test_requests_in_flight_at_once_are_256(tmp_path):
    options = {"device": "demo", "set": SMALL, "size": None, "dilation": 200}
    with serve(tmp_path, **options) as (server, path, (before, _)), Client(path) as deep:
        assert threads(server.pid) <= before + 3, "a connection starts threads when it needs them"
        for i in range(300):
            deep.ask(READ, i * 4096, 4096)
        wait_for(lambda: threads(server.pid) >= before + 256)
        assert threads(server.pid) <= before + 260
        for _ in range(300):
            assert deep.response(4096)[1] == 0


def break_off_in_a_header(path):
    broken = Client(path)
    broken.socket.sendall(REQUEST.pack(MAGIC, 0, WRITE, 0, 0, 4096)[:20])
    return broken


def break_off_in_the_data(path):
    broken = Client(path)
    broken.socket.sendall(REQUEST.pack(MAGIC, 0, WRITE, 0, 8192, 65536) + b"\xff" * 40000)
    return broken


def send_garbage(path):
    broken = Client(path)
    broken.socket.sendall(b"\xee" * 28)
    return broken


def write_too_much(path):
    broken = Client(path)
    broken.socket.sendall(REQUEST.pack(MAGIC, 0, WRITE, 0, 0, 1 << 31))
    return broken


@pytest.mark.parametrize(
    "wrong", [break_off_in_a_header, break_off_in_the_data, send_garbage, write_too_much]
)
def test_an_invalid_request_ends_its_connection_only(tmp_path, wrong):
    """nbdkit before 1.34.2 aborted on each of these requests if it was sending responses meanwhile."""
    with serve(tmp_path) as (server, path, (before, _)):
        with Client(path) as kept:
            for _ in range(ROUNDS):
                for reads in (0, 64):
                    broken = wrong(path)
                    broken.close()
                    with Client(path) as amid:
                        for _ in range(reads):
                            amid.ask(READ, 0, MIB)
                        if wrong is break_off_in_the_data:
                            amid.socket.sendall(REQUEST.pack(MAGIC, 0, WRITE, 0, 8192, 65536) + b"\xff" * 9)
                            amid.socket.shutdown(socket.SHUT_WR)
                        else:
                            amid.socket.sendall(b"\xee" * 28)
            # A write that was not received completely is not executed.
            assert kept.read(8192, 65536) == bytes(65536)
        assert settled(server.pid, before + 1) <= before + 1


def test_a_client_that_sends_no_more_still_gets_its_responses(tmp_path):
    with serve(tmp_path) as (_, path, _), Client(path) as half:
        for handle in range(40):
            half.ask(READ, 0, 65536, handle)
        half.socket.shutdown(socket.SHUT_WR)
        assert {half.response(65536)[0] for _ in range(40)} == set(range(40))


def test_other_aborts_end_the_server(tmp_path):
    with serve(tmp_path) as (server, path, _), Client(path):
        os.kill(server.pid, signal.SIGABRT)
        assert server.wait(30)
        with pytest.raises(flashtwin.FlashtwinError, match="ended with exit code -6"):
            server.stop()


def test_a_silent_client_is_disconnected_in_the_handshake(tmp_path):
    with serve(tmp_path) as (_, path, _), socket.socket(socket.AF_UNIX) as silent:
        silent.settimeout(60)
        silent.connect(str(path))
        assert silent.recv(18) == b"NBDMAGICIHAVEOPT\0\x03"
        began = time.monotonic()
        assert silent.recv(1) == b""
        assert 5 < time.monotonic() - began < 30


def test_nbdkit_without_the_preloaded_plugin_is_refused(tmp_path):
    need("nbdkit")
    device = tmp_path / "device.toml"
    device.write_text(flashtwin.device("demo", SMALL).to_toml())
    command = ["nbdkit", "--foreground", "--unix", tmp_path / "sock", PLUGIN, f"device={device}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "LD_PRELOAD" in done.stderr


def verify(path, number, start, end):
    """Verify data while other clients do the same. Return the reason if the server refuses the client."""
    start.wait()
    try:
        with Client(path) as connection:
            for round_ in range(3):
                content = bytes([number % 251, round_]) * 2048
                connection.write(number * 4096, content)
                connection.ask(FLUSH, 0, 0)
                assert connection.response()[1] == 0
                assert connection.read(number * 4096, 4096) == content
            end.wait()
    except RefusedError as refused:
        return str(refused)
    return None


def crowd(path, clients, forks):
    """Connect clients at the same time, while the host starts processes. Return the reasons of refusals."""
    start, end = threading.Event(), threading.Event()
    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(verify, path, number, start, end) for number in range(clients)]
        start.set()
        for _ in range(forks):
            assert subprocess.run(["/bin/true"], check=True, timeout=30).returncode == 0
        time.sleep(2)
        end.set()
        return [reason for each in running if (reason := each.result(60)) is not None]


@pytest.fixture
def pids_group():
    """Create a control group, of version 1 or 2, with at most 2000 processes and threads."""
    for root in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        group = root / f"flashtwin-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / "pids.max").write_text("2000")
                yield group
            finally:
                group.rmdir()
            return
    pytest.skip("no control group of processes can be made here")


ENTER = (
    "import os, sys\nopen(sys.argv[1], 'w').write(str(os.getpid()))\nos.execvp(sys.argv[2], sys.argv[2:])\n"
)


def test_400_clients_in_a_group_of_2000_threads(tmp_path, pids_group):
    need("nbdkit")
    path = tmp_path / "nbd.sock"
    words = ["-m", "flashtwin.cli", "serve", "--device", "instant", "--size", "64M", "--precondition", "none"]
    command = [sys.executable, "-c", ENTER, str(pids_group / "cgroup.procs"), sys.executable, *words]
    with started(*command, "--socket", path, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        reasons = crowd(path, 400, forks=100)
        current = pids_group / "pids.current"
        assert int(current.read_text()) < 1200
        # A connection counts until its thread ends.
        wait_for(lambda: int(current.read_text()) <= 20)
        works(path)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert 100 < len(reasons) < 400
    assert all("too many clients: this server accepts" in reason for reason in reasons)


@pytest.mark.parametrize("limit", [1_500_000, 3_000_000, 6_000_000])
def test_an_address_space_limit_fails_the_start_or_serves(tmp_path, limit):
    """The limits are in kB, as for `ulimit -v`."""
    need("nbdkit", "qemu-io")
    path = tmp_path / "nbd.sock"
    words = ["serve", "--device", "demo", "--set", "geometry.blocks_per_plane=64", "--precondition", "none"]
    bytes_ = limit << 10
    with started(
        *(sys.executable, "-m", "flashtwin.cli", *words, "--socket", path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_)),
    ) as process:
        if process.stdout.readline():
            uri = f"nbd+unix:///?socket={path}"
            for _ in range(5):
                qemu_io(uri, "write -P 7 0 64k", "read -P 7 0 64k")
            connections = [Client(path) for _ in range(5)]
            for each in connections:
                for handle in range(32):
                    each.ask(READ, handle * 4096, 4096, handle)
            for each in connections:
                assert {each.response(4096)[1] for _ in range(32)} == {0}
                each.close()
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
        assert (process.returncode == 0) == ("ulimit -v" not in said), said


def test_tls_clients_that_vanish_cost_nothing(tmp_path):
    need("nbdkit", "nbdsh", "openssl")
    keys = tmp_path / "keys.psk"
    keys.write_text(f"alice:{'ab' * 32}\n")
    keys.chmod(0o600)
    vanish = (
        "import os\n"
        f"h.set_tls(nbd.TLS_REQUIRE); h.set_tls_psk_file({str(keys)!r}); h.set_tls_username('alice')\n"
        f"h.connect_unix({str(tmp_path / 'nbd.sock')!r})\n"
        "for i in range(64): h.aio_pread(nbd.Buffer(1 << 20), i << 20)\n"
        "os._exit(0)\n"
    )
    with serve(tmp_path, tls_psk=keys) as (server, _, (before, bytes_before)):
        for _ in range(ROUNDS):
            client("env", "PATH=/usr/bin:/bin", "nbdsh", "-c", vanish)
        assert settled(server.pid, before + 1) <= before + 1
        assert resident_bytes(server.pid) < bytes_before + 64 * MIB
