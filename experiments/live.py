"""Overhead of serving: lateness at 20 000 requests per second, and throughput relative to a memory plugin.

    python experiments/live.py [SECONDS]

Needs nbdkit and fio (docs/live.md). The two servers (flashtwin and the memory plugin of nbdkit) run
alternately under the same fio job, so that other load on the host affects both equally.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import flashtwin

#: Requests in flight, enough for the rate. With more, fio sends several requests at once when it is behind
#: the rate, and these requests wait for each other in the socket.
DEPTH = 6
#: Requests per second of the lateness measurement, and largest permitted lateness in us.
RATE = 20_000
TARGETS_US = {"p50_us": 15, "p99_us": 150}
#: Smallest permitted throughput relative to nbdkit's memory plugin.
SHARE_MIN = 0.7
ROUNDS = 3


def fio(uri: str, **job: object) -> float:
    """Run a job and return its requests per second."""
    options = {"name": "job", "ioengine": "nbd", "uri": uri, "bs": "4k", "size": "1G", "time_based": 1, **job}
    command = ["fio", "--output-format=json", *(f"--{key}={value}" for key, value in options.items())]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    done = json.loads(said[said.index("{") :])["jobs"][0]
    return float(done["read"]["iops"] + done["write"]["iops"])


def late(seconds: float) -> dict[str, float]:
    """Return the rate and lateness of requests, half of them reads, to a data-centre SATA drive."""
    rate = f"{RATE // 2},{RATE // 2}"
    with flashtwin.serve("sata-dc", size="16G") as server:
        iops = fio(server.uri, rw="randrw", iodepth=DEPTH, runtime=seconds, rate_iops=rate)
        return {"requests_per_s": iops, **server.stop().lateness}


def lateness(seconds: float) -> bool:
    """Measure the lateness; return whether it is within its limits."""
    print("sata-dc, 4 KiB, half reads")
    rounds = [late(seconds) for _ in range(ROUNDS)]
    for one in rounds:
        print("  " + ", ".join(f"{key} {value:.1f}" for key, value in one.items()))
    middle = {key: median(one[key] for one in rounds) for key in rounds[0]}
    for key, most in TARGETS_US.items():
        print(f"median of {key}: {middle[key]:.1f}, to be below {most}")
    met = all(middle[key] < most for key, most in TARGETS_US.items())
    return met and middle["requests_per_s"] > 0.95 * RATE


def memory_plugin(seconds: float) -> float:
    """Return the requests per second of nbdkit's memory plugin."""
    with tempfile.TemporaryDirectory(prefix="flashtwin-") as place:
        path = Path(place) / "nbd.sock"
        with subprocess.Popen(["nbdkit", "--foreground", "--unix", str(path), "memory", "2G"]) as process:
            while not path.exists():
                time.sleep(0.05)
            try:
                return fio(f"nbd+unix:///?socket={path}", rw="randrw", iodepth=16, runtime=seconds)
            finally:
                process.terminate()


def instant(seconds: float) -> float:
    """Return the requests per second of the device that takes no time."""
    with flashtwin.serve("instant", size="2G", precondition="none") as server:
        return fio(server.uri, rw="randrw", iodepth=16, runtime=seconds)


def throughput(seconds: float) -> bool:
    """Measure the two servers alternately. Return whether flashtwin's throughput is large enough."""
    pairs = [(instant(seconds), memory_plugin(seconds)) for _ in range(ROUNDS)]
    for ours, theirs in pairs:
        print(f"instant {ours:.0f} requests/s, nbdkit memory {theirs:.0f}: {ours / theirs:.2f}x")
    share = median(ours / theirs for ours, theirs in pairs)
    print(f"median {share:.2f}x, to be at least {SHARE_MIN}x")
    return share >= SHARE_MIN


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    met = [lateness(seconds), throughput(seconds)]
    sys.exit(0 if all(met) else 1)
