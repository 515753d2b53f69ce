"""Devices far larger than memory: accepted if their tables fit, otherwise rejected before any allocation."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import flashtwin
from clients import need, qemu_io
from flashtwin._support import memory

TIB = 1 << 40
#: With pages of this size, 64 TiB are 10^8 pages, on flash and in the map.
LARGE_PAGES = {"geometry.page_bytes": "1 MiB", "geometry.flash_page_bytes": "1 MiB"}


def test_64_tib_take_less_than_a_gib_of_memory():
    need("nbdkit", "qemu-io")
    options = {"size": "64T", "store": "none", "precondition": "none", "set": LARGE_PAGES}
    with flashtwin.serve("sata-dc", **options) as server:
        assert server.size_bytes == 64 * TIB
        assert server.started_from == "never written"
        end = 64 * TIB - 4096
        qemu_io(server.uri, f"write -P 1 {end} 4k", "flush", f"read -P 0 {end} 4k", "read -P 0 32T 1M")
        status = Path(f"/proc/{server.pid}/status").read_text()
        peak_kib = int(status.partition("VmHWM:")[2].split()[0])
        assert peak_kib < 1 << 20
        assert server.stop().responses["write"]["requests"] == 1


#: Settings that need far more address space than is free. Each has the amount of memory that the error must
#: contain.
TOO_LARGE = {
    "serve('demo', size='4T', store='none', precondition='none')": "the device takes 8.7",
    "serve('demo', size='4T', store='none')": "2 times the device takes 17.2",
    "run(LOAD, 'demo', set=SET)": "the device takes 15.38",
    "compare(LOAD, ['lru', 'cflru', 'fab'], 'demo', threads=2, set=SET)": "3 times the device takes 45.6",
    "save_snapshot('never-made', 'demo', set=SET)": "2 times the device takes 30.50",
}
_PROGRAM = """
import flashtwin
LOAD = "uniform:write=1,requests=1000"
SET = {"geometry.blocks_per_plane": 1 << 20}
flashtwin."""


@pytest.mark.parametrize("what", TOO_LARGE)
def test_an_oversized_device_is_refused_before_allocation(what):
    if what.startswith("serve"):
        need("nbdkit")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM + what],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert TOO_LARGE[what] in said and "give a smaller size, or larger pages" in said, said
    assert ("--precondition none takes half" in said) == (what.endswith("store='none')"))
    assert ("fewer threads take less" in said) == what.startswith("compare")


def test_no_more_is_asked_for_than_the_machine_or_its_container_has(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTAINER", limit)
    memory.need(1 << 20)
    limit.write_text("max\n")
    memory.need(1 << 20)
    limit.write_text(f"{300 << 20}\n")
    memory.need(1 << 20)
    with pytest.raises(
        flashtwin.FlashtwinError, match=r"takes 356 MiB of memory, of which 300 MiB can be had"
    ):
        memory.need(100 << 20)
    with pytest.raises(flashtwin.FlashtwinError, match=r"2 times the device takes 456 MiB of memory.*; less"):
        memory.need(100 << 20, devices=2, less="less")
    limit.unlink()
    with pytest.raises(flashtwin.FlashtwinError, match="of memory, of which"):
        memory.need(1 << 60)
