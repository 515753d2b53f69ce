"""Time and memory of whole commands: a run with and without request log; `policy hits` against libCacheSim.

Commands that are compared run alternately, and the order changes from round to round. Figures are medians.
Times include the start of Python. The comparison with libCacheSim needs the package `libcachesim`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

LOG_ROUNDS = 5
LOG_REQUESTS = 5_000_000
HIT_ROUNDS = 3
HIT_REQUESTS = 5_000_000
POLICIES = {"lru": "LRU", "arc": "ARC", "s3-fifo": "S3FIFO"}
CAPACITIES = (1_024, 16_384, 131_072)
PAGE_BYTES = 4096
#: File with the processor time of the whole machine.
STAT = Path("/proc/stat")
FLASHTWIN = str(Path(sys.executable).with_name("flashtwin"))
#: Program that prints the miss ratio for objects of equal size. It is run as a separate command.
LIBCACHESIM = """
import sys, libcachesim
path, policy, pages = sys.argv[1:]
reader = libcachesim.TraceReader(
    trace=path,
    trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE,
    reader_init_params=libcachesim.ReaderInitParam(ignore_obj_size=True),
)
print(getattr(libcachesim, policy)(cache_size=int(pages)).process_trace(reader)[0])
"""


class Cost(NamedTuple):
    """Cost of one command."""

    wall_s: float
    cpu_s: float
    out: str


def cost(command: list[str]) -> Cost:
    """Run a command and return its cost."""
    before = os.times()
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    wall_s = time.monotonic() - began
    after = os.times()
    spent = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return Cost(wall_s, spent, done.stdout)


def alternate(
    commands: dict[str, list[str]], rounds: int, without: Path | None = None
) -> dict[str, list[Cost]]:
    """Run commands in turn, so that other load affects all of them equally.

    Every other round is in reverse order.

    The file `without` is removed before each command, because replacing a file takes longer than creating
    one.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in list(commands)[:: -1 if number % 2 else 1]:
            if without is not None:
                without.unlink(missing_ok=True)
            costs[name].append(cost(commands[name]))
    return costs


class Cores:
    """Number of cores that other processes keep busy, as a mean since the start; Linux only."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._others_s = self._measure()

    @staticmethod
    def _measure() -> float:
        user, nice, system, _idle, _iowait, *rest = map(int, STAT.read_text().split()[1:9])
        own = os.times()
        spent = own.user + own.system + own.children_user + own.children_system
        return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - spent

    def others(self) -> float:
        """Return the mean number of cores used by other processes."""
        return (self._measure() - self._others_s) / (time.monotonic() - self._began)


def figure(name: str, value: float) -> None:
    """Print a figure in the form of the Rust benchmarks."""
    print(f"{name}: {value:.4f}", flush=True)


def log(directory: Path) -> None:
    """Compare a run that writes a request log with the same run without a log.

    The log needs a core of its own.
    """
    load = f"uniform:write=0.8,size=4k,requests={LOG_REQUESTS}"
    run = [FLASHTWIN, "run", "--workload", load, "--device", "ecr", "--queue-depth", "64"]
    path = directory / "log.parquet"
    cores = Cores() if STAT.exists() else None
    costs = alternate({"plain": run, "log": [*run, "--requests", str(path)]}, LOG_ROUNDS, without=path)
    if cores is not None:
        figure("log_cores_of_others", cores.others())
    pairs = list(zip(costs["plain"], costs["log"], strict=True))
    ratios = sorted(log.wall_s / plain.wall_s for plain, log in pairs)
    figure("log_ratio", median(ratios))
    figure("log_ratio_least", ratios[0])
    figure("log_ratio_most", ratios[-1])
    cpu_us = [(log.cpu_s - plain.cpu_s) / LOG_REQUESTS * 1e6 for plain, log in pairs]
    figure("log_cpu_us_per_request", median(cpu_us))
    figure("log_bytes_per_request", path.stat().st_size / LOG_REQUESTS)


def write_oracle_general(path: Path) -> None:
    """Write a trace in libCacheSim's form.

    Accesses to most pages have a Zipf distribution; some pages are accessed only once.
    """
    import numpy as np

    rng = np.random.default_rng(1)
    page = rng.zipf(1.2, size=2 * HIT_REQUESTS)
    page = page[page < 1 << 21][:HIT_REQUESTS]
    kind = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
    records = np.zeros(len(page), dtype=kind)
    records["time"] = np.arange(len(page)) // 10_000
    records["object"] = page.astype(np.uint64) * np.uint64(PAGE_BYTES // 512)
    records["size"] = PAGE_BYTES
    records["next"] = -1
    records.tofile(path)


def hits(directory: Path) -> None:
    """Compare `policy hits` with libCacheSim on one file: the time, and the number of hits."""
    path = directory / "t.oracleGeneral"
    write_oracle_general(path)
    beside = importlib.util.find_spec("libcachesim") is not None
    if not beside:
        print("hits beside libCacheSim: not measured, since its package is not installed")
    for policy, theirs in POLICIES.items():
        for pages in CAPACITIES:
            ours = [FLASHTWIN, "policy", "hits", str(path), "--format", "oraclegeneral", "--policies", policy]
            ours += ["--capacity", str(pages * PAGE_BYTES), "--json"]
            commands = {"ours": ours}
            if beside:
                commands["theirs"] = [sys.executable, "-c", LIBCACHESIM, str(path), theirs, str(pages)]
            costs = alternate(commands, HIT_ROUNDS)
            name = f"hits_{policy.replace('-', '_')}_{pages}"
            figure(f"{name}_seconds", median(one.wall_s for one in costs["ours"]))
            figure(f"{name}_cpu_seconds", median(one.cpu_s for one in costs["ours"]))
            if beside:
                pairs = list(zip(costs["ours"], costs["theirs"], strict=True))
                figure(f"{name}_speedup", median(their.wall_s / our.wall_s for our, their in pairs))
                figure(f"{name}_cpu_speedup", median(their.cpu_s / our.cpu_s for our, their in pairs))
                row = json.loads(pairs[0][0].out)["rows"][0]
                misses = round(float(pairs[0][1].out) * row["accesses"])
                figure(f"{name}_hits_difference", row["hits"] + misses - row["accesses"])


if __name__ == "__main__":
    parts = {"log": log, "hits": hits}
    with tempfile.TemporaryDirectory() as temporary:
        for part in sys.argv[1:] or parts:
            parts[part](Path(temporary))
