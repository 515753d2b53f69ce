"""Records a live run and replays it offline; prints the difference of each percentile.

    python experiments/live_replay.py [SECONDS]

fio sends requests at a given rate to the live device, which runs ten times slower than real time (a dilation
of 10). The recording of this run is then replayed offline on the same device. The times of both runs are
device times. The program prints a row for each percentile of reads, writes and flushes, with the difference
between the two runs. It exits with 1 if a difference exceeds 10 %. The last column is fio's latency divided
by the dilation; it includes the path through the socket and lateness, and its histogram is coarser. Needs
nbdkit and fio (docs/live.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import flashtwin

DILATION = 10
#: Requests per second of device time.
RATE = 10_000
JOBS = 10
QUANTILES = {
    "p50": "p50_us",
    "p75": "p75_us",
    "p90": "p90_us",
    "p95": "p95_us",
    "p99": "p99_us",
    "p99.5": "p995_us",
    "p99.9": "p999_us",
}
SHARE_MAX = 0.10


def fio(job: dict[str, object]) -> dict[str, dict[str, float]]:
    """Run a job; return the measured percentiles of each kind of request, in us."""
    percentiles = ":".join(name.removeprefix("p") for name in QUANTILES)
    options = {**job, "percentile_list": percentiles, "output-format": "json"}
    command = ["fio", *(f"--{key}={value}" for key, value in options.items())]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    done = json.loads(said[said.index("{") :])["jobs"][0]
    times = {kind: done[kind]["clat_ns"] for kind in ("read", "write")} | {"flush": done["sync"]["lat_ns"]}
    return {
        kind: {f"p{float(quantile):g}": ns / 1e3 for quantile, ns in of["percentile"].items()}
        for kind, of in times.items()
    }


def main() -> None:
    """Measure, and fail if the difference of a percentile is too large."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    good = True
    with tempfile.TemporaryDirectory() as directory:
        record = Path(directory) / "live.csv"
        with flashtwin.serve("sata-dc", size="16G", dilation=DILATION, record=record) as server:
            job = {
                "name": "job",
                "ioengine": "nbd",
                "uri": server.uri,
                "rw": "randrw",
                "bs": "4k",
                # Each job has one request in flight. With more, fio checks for responses only when its next
                # request is due.
                "numjobs": JOBS,
                "group_reporting": 1,
                "fsync": 200,
                "rate_iops": f"{RATE // DILATION // JOBS // 2},{RATE // DILATION // JOBS // 2}",
                "rate_process": "poisson",
                "size": "8G",
                "time_based": 1,
                "runtime": seconds,
            }
            met = fio(job)
            live = server.stop()
        replayed = flashtwin.run(record, device=f"{record}.toml").summary
    rows = [["", "", "live us", "replayed us", "off by %", "fio us"], ["---"] * 6]
    for kind in ("read", "write", "flush"):
        for name, key in QUANTILES.items():
            was, said = live.responses[kind][key], replayed[kind][key]
            off = abs(said - was) / was if was else abs(said)
            good &= off <= SHARE_MAX
            seen = met[kind][name] / DILATION
            rows.append([kind, name, f"{was:.1f}", f"{said:.1f}", f"{100 * off:.2f}", f"{seen:.1f}"])
    for row in rows:
        print(f"| {' | '.join(row)} |")
    counts = ", ".join(f"{live.responses[kind]['requests']} {kind}" for kind in live.responses)
    late = live.lateness
    print(f"{counts}; late by {late['p50_us']:.0f} us, p99 {late['p99_us']:.0f} us")
    sys.exit(not good)


if __name__ == "__main__":
    main()
