"""A live run recorded, then replayed offline: how far each percentile is from what was met live.

    python studies/live_replay.py [SECONDS]

Live, at a dilation of 10, by fio at a given rate; then the recording on the same device. Both times are the
device's own. Prints a row for each percentile of reads, writes and flushes, with how far the two are apart,
and exits with 1 if that is more than 10 % in any. Needs nbdkit and fio (docs/live.md).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import flashtwin

DILATION = 10
#: Requests a second of the device's time.
RATE = 10_000
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


def main() -> None:
    """Measure, and fail if a percentile is too far off."""
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
                "iodepth": 16,
                "fsync": 200,
                "rate_iops": f"{RATE // DILATION // 2},{RATE // DILATION // 2}",
                "rate_process": "poisson",
                "size": "8G",
                "time_based": 1,
                "runtime": seconds,
            }
            subprocess.run(
                ["fio", *(f"--{key}={value}" for key, value in job.items())], check=True, capture_output=True
            )
            live = server.stop()
        replayed = flashtwin.run(record, device=f"{record}.toml").summary
    rows = [["", "", "live us", "replayed us", "off by %"], ["---"] * 5]
    for kind in ("read", "write", "flush"):
        for name, key in QUANTILES.items():
            met, said = live.responses[kind][key], replayed[kind][key]
            off = abs(said - met) / met if met else abs(said)
            good &= off <= SHARE_MAX
            rows.append([kind, name, f"{met:.1f}", f"{said:.1f}", f"{100 * off:.2f}"])
    for row in rows:
        print(f"| {' | '.join(row)} |")
    counts = ", ".join(f"{live.responses[kind]['requests']} {kind}" for kind in live.responses)
    late = live.lateness
    print(f"{counts}; late by {late['p50_us']:.0f} us, p99 {late['p99_us']:.0f} us")
    sys.exit(not good)


if __name__ == "__main__":
    main()
