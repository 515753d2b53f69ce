"""The scripts of examples/live: their effects, messages about missing tools, and cleanup."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clients import need, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"


@pytest.fixture
def environment(tmp_path, short_path):
    """Create an environment whose `flashtwin` is the tested one. All files are in one directory."""
    bin_dir, place = tmp_path / "bin", short_path
    bin_dir.mkdir()
    command = bin_dir / "flashtwin"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flashtwin.cli "$@"\n')
    command.chmod(0o755)
    path = f"{bin_dir}:{os.environ['PATH']}:/usr/sbin:/sbin"
    return {**os.environ, "PATH": path, "TMPDIR": str(place)}


def start(name, environment, *options):
    return subprocess.Popen(
        [EXAMPLES / f"{name}.sh", *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def mounts_in(place):
    """Return the mounts below a directory, as the kernel lists them."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return "\n".join(line for line in lines if f"{place}/" in line)


def leaves_nothing(environment):
    place = environment["TMPDIR"]
    assert not list(Path(place).iterdir())
    assert mounts_in(place) == ""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert place not in process.read_text(errors="replace")
        except OSError:  # The process has ended.
            continue


def test_fio_verifies_and_other_clients_follow(environment):
    need("nbdkit", "fio", "nbdinfo", "nbdcopy", "qemu-io", "qemu-img")
    with start("fio", environment, "64") as process:
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "err= 0" in said and "the same" in said
    assert "Pattern verification failed" not in said
    # fio reads and verifies 64 MiB, and issues as many writes, trims and flushes as the job requests.
    issued = next(line for line in said.splitlines() if "issued rwts" in line)
    reads, writes, trims, flushes = map(int, issued.partition("total=")[2].split()[0].split(","))
    assert (reads, writes, trims) == (4096, 4096 + 2048, 2048)
    assert flushes > 64
    leaves_nothing(environment)


def need_loop_devices():
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        pytest.skip("no root, or no loop devices here")
    need("nbdkit", "nbdfuse", "fusermount3", "mkfs.ext4", "mkfs.xfs")


def test_file_systems_are_made_filled_and_clean(environment):
    need_loop_devices()
    with start("filesystems", environment, "--device", "demo", "--size", "400M") as process:
        said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert said.count("clean, and what was written is there") == 2
    leaves_nothing(environment)


def test_a_script_that_is_stopped_cleans_up(environment):
    need_loop_devices()
    with start("filesystems", environment, "--device", "demo", "--size", "400M") as process:
        wait_for(lambda: "/mounted ext4" in mounts_in(environment["TMPDIR"]) or process.poll() is not None)
        os.killpg(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    leaves_nothing(environment)


def test_a_missing_program_is_reported_with_its_install_command(environment, tmp_path):
    tools = tmp_path / "few"
    tools.mkdir()
    for tool in ("bash", "env", "mktemp", "chmod", "rm", "dirname", "basename"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    for name, packages in [
        ("fio", "flashtwin nbdkit fio libnbd-bin qemu-utils"),
        ("filesystems", "flashtwin nbdkit"),
    ]:
        with start(name, {**environment, "PATH": str(tools)}) as process:
            said, _ = process.communicate(timeout=30)
        assert process.returncode == 1
        assert f"sudo apt-get install {packages}" in said
    leaves_nothing(environment)
