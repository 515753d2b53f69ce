"""A long run: a thousand million page operations and 200 days of virtual time, in bounded memory.

    python experiments/long_run.py [MILLIONS]

Requests of 64 pages, four fifths of them writes, are sent to the device `demo`. Their rate is chosen so that
the run spans 200 days for any number of MILLIONS of pages (default: 1000). Resident memory is sampled about
ten times per second.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import flashtwin

PAGES_A_REQUEST = 64
DAYS = 200
#: Fraction of the run after which memory must not grow. Before that, tables are accessed for the first time.
SETTLED = 0.05
GROWTH_MAX = 0.02


def resident_mib() -> float:
    """Return the resident memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def main() -> int:
    """Run the load and print its time and memory; return 1 if memory grew or not all pages were accessed."""
    pages = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 1_000_000_000
    requests = -(-pages // PAGES_A_REQUEST)
    rate = requests / (DAYS * 86_400)
    load = f"uniform:size=256k,write=0.8,arrival=constant,rate={rate:.9f}/s,requests={requests}"
    samples: list[float] = []

    def sample(progress: flashtwin.Progress) -> None:
        if progress.done > SETTLED * requests:
            samples.append(resident_mib())

    began = time.monotonic()
    result = flashtwin.run(load, "demo", progress=sample)
    wall_s = time.monotonic() - began
    summary = result.summary
    done = sum(summary["counts"][kind]["pages"] for kind in ("reads", "writes"))
    print(f"load            {load}")
    flash = sum(operation["count"] for operation in summary["flash"]["ops"])
    print(f"page operations {done:,} of the host, {flash:,} of the flash")
    print(f"virtual time    {summary['span_s'] / 86_400:.1f} days")
    print(f"wall clock      {wall_s:.0f} s, {done / wall_s / 1e6:.2f} million pages a second")
    print(f"resident memory {min(samples):.1f} to {max(samples):.1f} MiB in {len(samples)} samples")
    flat = max(samples) <= (1 + GROWTH_MAX) * min(samples)
    return int(not flat or done < pages or summary["requests_submitted"] != requests)


if __name__ == "__main__":
    sys.exit(main())
