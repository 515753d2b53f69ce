"""Clients of a block device, as processes that run to their end."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest


def need(*tools):
    """Skip the test if one of the given tools is missing. Where tools are required, the test fails."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    message = f"{', '.join(missing)}: not installed"
    if os.environ.get("FLASHTWIN_NBD_REQUIRED"):
        pytest.fail(message)
    pytest.skip(message)


def wait_for(what):
    """Wait for a condition, with a timeout that suits a busy machine."""
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


@contextlib.contextmanager
def started(*words, **options):
    """Start a process; on exit, kill its session."""
    with subprocess.Popen(list(map(str, words)), start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def client(*command, code=0):
    """Run a client to its end and return its output."""
    need(command[0])
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def fio(uri, **job):
    """Return the words of a fio job that verifies the data that it writes."""
    options = {
        "name": "job",
        "ioengine": "nbd",
        "uri": uri,
        "bs": "4k",
        "iodepth": 8,
        "verify": "crc32c",
        "verify_fatal": 1,
        "randseed": 7,
        "verify_state_save": 0,
        **job,
    }
    return ["fio", *(f"--{key}={value}" for key, value in options.items())]


def qemu_io(uri, *commands, code=0):
    """Run the commands of a session on the raw device."""
    words = [word for command in commands for word in ("-c", command)]
    return client("qemu-io", "-f", "raw", "--discard=unmap", *words, uri, code=code)
