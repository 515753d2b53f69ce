"""Served devices and libnbd: variants of the protocol, invalid requests, and filters of nbdkit."""

import collections
import csv
import json
import shlex
import subprocess

import pytest

import flashtwin
from clients import client, fio, need

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
MIB = 1 << 20

#: Beginning of every session: a pattern of data, and a function that checks that a call fails with an errno.
_BEGIN = """
import errno, os
data = os.urandom(3 << 20)
def fails(code, call, *rest):
    try:
        call(*rest)
    except nbd.Error as e:
        assert e.errnum == code, e
    else:
        raise AssertionError("it did not fail")
"""


@pytest.fixture(scope="module")
def server():
    need("nbdkit", "nbdsh")
    with flashtwin.serve("demo", set=SMALL, precondition="none") as started:
        yield started


def session(server, commands):
    # The module of nbdsh belongs to the Python of the system.
    client("env", "PATH=/usr/bin:/bin", "nbdsh", "-c", _BEGIN + commands.replace("URI", repr(server.uri)))


@pytest.mark.parametrize("structured", [True, False])
def test_reads_and_writes_of_any_length_and_offset(server, structured):
    session(
        server,
        f"""
h.set_request_structured_replies({structured})
h.add_meta_context("base:allocation")
h.connect_uri(URI)
assert h.get_structured_replies_negotiated() is {structured}
for offset, length in [(0, 1), (511, 2), (4095, 4098), (70_001, 1 << 20), (999, 3 << 20)]:
    h.pwrite(data[:length], offset, nbd.CMD_FLAG_FUA if length % 2 else 0)
    assert h.pread(length, offset) == data[:length]
end = h.get_size()
h.pwrite(b"z", end - 1)
assert h.pread(1, end - 1) == b"z"
h.flush()
""",
    )


def test_trims_and_zeros_match_the_reported_extents(server):
    session(
        server,
        """
h.add_meta_context("base:allocation")
h.connect_uri(URI)
base, mib = 16 << 20, 1 << 20
h.trim(8 * mib, base)
h.pwrite(data, base + mib)
h.zero(mib, base + 2 * mib, nbd.CMD_FLAG_NO_HOLE)
h.trim(mib, base + 3 * mib, nbd.CMD_FLAG_FUA)
assert h.pread(4 * mib, base) == bytes(mib) + data[:mib] + bytes(2 * mib)
seen = []
def each(context, offset, entries, error):
    seen.extend(zip(entries[::2], entries[1::2]))
h.block_status(8 * mib, base, each)
kinds, at = [], 0
for length, flags in seen:
    kinds += [flags] * (length // 4096)
hole = nbd.STATE_HOLE | nbd.STATE_ZERO
assert kinds[:256] == [hole] * 256 and kinds[256:512] == [0] * 256, seen
assert kinds[768:1024] == [hole] * 256, seen
h.cache(mib, base)
fails(errno.ENOTSUP, h.zero, mib, base, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
""",
    )


def recorded(path):
    """Return how many requests of each kind a recording has."""
    with path.open() as file:
        return collections.Counter(row["op"] for row in csv.DictReader(file))


def test_small_trims_leave_their_neighbours_and_are_counted(tmp_path):
    need("nbdkit", "nbdsh", "fio")
    record = tmp_path / "live.csv"
    with flashtwin.serve("demo", set=SMALL, precondition="none", record=record) as server:
        session(
            server,
            """
h.connect_uri(URI)
h.pwrite(data[:8192], 8192)
for offset, length in [(1024, 512), (3584, 1024), (8191, 1)]:
    h.trim(length, 8192 + offset)
expected = bytearray(data[:8192])
expected[1024:1536] = bytes(512)
expected[3584:4608] = bytes(1024)
expected[8191:] = bytes(1)
assert h.pread(8192, 8192) == expected
h.trim(2 * MIB, 2 * MIB)
""".replace("MIB", str(MIB)),
        )
        job = {"rw": "randrw", "verify": 0, "verify_fatal": 0, "size": "1M", "number_ios": 200}
        client(*fio(server.uri, **job))
        client(*fio(server.uri, **job | {"rw": "randtrim", "bs": "512", "number_ios": 50}))
    found = {op: server.report().responses[op]["requests"] for op in ("read", "write", "trim")}
    assert found["read"] + found["write"] == 200 + 2
    # The trim of 2 MiB is two requests of the device.
    assert found["trim"] == 3 + 2 + 50
    rows = recorded(record)
    assert found == {"read": rows["R"], "write": rows["W"], "trim": rows["T"]}


def test_an_invalid_request_is_refused_and_the_connection_stays_open(server):
    session(
        server,
        """
h.connect_uri(URI)
h.set_strict_mode(0)
end = h.get_size()
fails(errno.EINVAL, h.pread, 4096, end)
fails(errno.EINVAL, h.pread, 4096, end - 4095)
fails(errno.ENOSPC, h.pwrite, data[:4096], end - 4095)
fails(errno.EINVAL, h.trim, 4096, end)
fails(errno.ENOSPC, h.zero, 4096, end)
fails(errno.EINVAL, h.pread, 4096, (1 << 64) - 4096)
fails(errno.EINVAL, h.block_status, 4096, 0, lambda *_: 0)
h.pwrite(data[:4096], end - 4096)
assert h.pread(4096, end - 4096) == data[:4096]
""",
    )


def test_many_requests_at_once_over_many_connections(server):
    session(
        server,
        """
handles = [nbd.NBD() for _ in range(8)]
for each in handles:
    each.connect_uri(URI)
    assert each.can_multi_conn()
size = 8192
for turn in range(4):
    asked = []
    for i in range(512):
        one = handles[i % 8]
        piece = bytearray(data[i * 37 + turn : i * 37 + turn + size])
        asked.append((one, one.aio_pwrite(nbd.Buffer.from_bytearray(piece), i * size)))
    for one, cookie in asked:
        while not one.aio_command_completed(cookie):
            one.poll(-1)
    # Written by one connection, flushed by another, read by a third.
    handles[turn].flush()
    for i in range(512):
        assert handles[(i + 3) % 8].pread(size, i * size) == data[i * 37 + turn : i * 37 + turn + size]
""",
    )


def test_between_two_servers_and_through_filters(server, tmp_path):
    need("nbdcopy", "nbdinfo", "qemu-img")
    with flashtwin.serve("demo", set=SMALL, precondition="none") as other:
        session(server, "h.connect_uri(URI)\nh.pwrite(data, 5 << 20)")
        client("nbdcopy", server.uri, other.uri)
        client("qemu-img", "compare", "-f", "raw", "-F", "raw", server.uri, other.uri)
        # Extents that were never written are not copied.
        written = [e for e in json.loads(client("nbdinfo", "--map", "--json", other.uri)) if e["type"] == 0]
        assert 3 * MIB <= sum(extent["length"] for extent in written) < server.size_bytes / 2
    filters = ["--filter=cow", "--filter=blocksize", "--filter=error", "nbd", f"uri={server.uri}"]
    snippet = "h.pwrite(data[:5000], 77); assert h.pread(5000, 77) == data[:5000]"
    run = f'PATH=/usr/bin:/bin nbdsh --uri "$uri" -c {shlex.quote(_BEGIN + snippet)}'
    subprocess.run(["nbdkit", "--unix", "-", *filters, "--run", run], check=True, timeout=60, cwd=tmp_path)
