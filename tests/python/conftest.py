"""Traces and runs so small that every test takes only a moment."""

import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import flashtwin

# A background job ignores SIGINT, and so would its child processes, which tests interrupt by SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# With these settings, even runs of a few thousand requests include GC (tested with four policies).
SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
LOAD = "zipf:theta=0.9,write=0.8,requests=3000"


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """Create a text trace of 4000 requests of all four kinds."""
    rng = random.Random(7)
    lines = ["time_us,op,offset_bytes,size_bytes"]
    for i in range(4000):
        op = rng.choices("RWTF", (30, 60, 5, 5))[0]
        where = "0,0" if op == "F" else f"{rng.randrange(8000) * 4096},{rng.choice((4096, 8192, 65536))}"
        lines.append(f"{i * 700},{op},{where}")
    path = tmp_path_factory.mktemp("traces") / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def short_path():
    """Create a directory for sockets, whose paths may have at most 103 bytes; `tmp_path` is longer."""
    with tempfile.TemporaryDirectory(prefix="twin-") as path:
        yield Path(path)


@pytest.fixture
def cli():
    """Run the command line in a process of its own."""

    def run(*arguments, **options):
        command = [sys.executable, "-m", "flashtwin.cli", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)

    return run


@pytest.fixture
def small_device(tmp_path) -> Path:
    """Write the small device to a file."""
    path = tmp_path / "small.toml"
    path.write_text(flashtwin.device("demo", SMALL).to_toml())
    return path
