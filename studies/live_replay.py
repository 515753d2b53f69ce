"""A live run recorded, then replayed offline: how far each percentile is from what was met live.

    python studies/live_replay.py [SECONDS]

Live, at a dilation of 10, by fio at a given rate; then the recording on the same device. Both times are the
device's own. Needs nbdkit and fio (docs/live.md).
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
QUANTILES = {"p50_us": "p50_us", "p99_us": "p99_us", "p999_us": "p999_us"}
SHARE_MAX = 0.10


def main() -> None:
    """Measure, and fail if a percentile is too far off."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    good = True
    with tempfile.TemporaryDirectory() as directory:
        record = Path(directory) / "live.csv"
        with flashtwin.serve("sata-tlc", size="16G", dilation=DILATION, record=record) as server:
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
    print(f"{'':<8}{'':<8}{'live':>10}{'replayed':>10}")
    for kind in ("read", "write", "flush"):
        for live_key, key in QUANTILES.items():
            met, said = live.responses[kind][live_key], replayed[kind][key]
            off = abs(said - met) / met if met else abs(said)
            good &= off <= SHARE_MAX
            print(f"{kind:<8}{key[:-3]:<8}{met:10.1f}{said:10.1f}  {100 * off:5.2f} %")
    sys.exit(not good)


if __name__ == "__main__":
    main()
