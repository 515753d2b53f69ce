"""Runs on devices and on smaller devices with the same ratios: `python experiments/scaled.py`.

Prints the table of docs/scaling.md. Each figure is a mean over the seeds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import mean

import flashtwin
from flashtwin import Result, TraceOptions

SEEDS = (1, 2, 3)
#: Requests of a run with a generated load on the device itself. On the smaller device, at least a quarter.
REQUESTS = 8_000_000


@dataclass(frozen=True)
class Case:
    """A load on a device that is predicted by a smaller device.

    Attributes:
        load: a generated load without its number of requests, or a trace.
        device: name of the device.
        scale: the smaller device has about 1/`scale` of the blocks.
        depth: requests in flight; None for the load's own times.
        keys: keys of the device.
    """

    load: str
    device: str
    scale: int
    depth: int | None = None
    keys: dict[str, str | int] = field(default_factory=dict)

    def run(self, scale: int, seed: int) -> Result:
        """Run the load on the device, or on a smaller one."""
        requests = max(REQUESTS // scale, REQUESTS // 4)
        generated = not self.load.startswith("example:")
        return flashtwin.run(
            f"{self.load},requests={requests}" if generated else self.load,
            self.device,
            set=self.keys,
            scale=scale,
            seed=seed,
            pacing=flashtwin.ClosedLoop(self.depth) if self.depth else None,
            warmup_requests=requests // 5 if generated else 0,
            trace_options=None if generated else TraceOptions(addresses="compact"),
        )


_BLOCKS: dict[str, str | int] = {"geometry.blocks_per_plane": 1024, "buffer.capacity": "256MiB"}
CASES = [
    Case("uniform:write=0.7", "nvme-tlc", 4, 32, _BLOCKS),
    Case("zipf:theta=0.99,write=0.7", "nvme-tlc", 4, 32, _BLOCKS),
    Case("hotcold:write=0.7,rate=30k", "nvme-tlc", 4, None, _BLOCKS),
    Case("zipf:theta=0.9,write=0.8", "ecr", 4, 64, {"buffer.policy": "gcar-lru"}),
    Case("uniform:write=0.8", "ecr", 4, 16, {"ftl.kind": "fast"}),
    Case("uniform:write=0.5,rate=4k", "raid5-array", 2),
    Case("example:postgres_pgbench", "sata-dc", 4),
    Case("example:mariadb_oltp", "sata-dc", 4),
]


_KINDS = ("read", "write")
_TIMES = ("mean_us", "p50_us", "p99_us", "p999_us")


def _figures(results: list[Result]) -> list[float]:
    """Return write amplification, hit ratio and response times of reads and writes: means over the runs."""

    def of(result: Result) -> list[float]:
        times = [result.summary[kind][key] for kind in _KINDS for key in _TIMES]
        return [result.gc_write_amplification or 0.0, result.hit_ratio, *times]

    return [mean(values) for values in zip(*map(of, results), strict=True)]


def _error(full: float, small: float) -> str:
    return f"{small / full - 1:+.1%}" if full else "-"


def main() -> None:
    """Print the table."""
    times = [f"{kind} {name}" for kind in _KINDS for name in ("mean", "p50", "p99", "p99.9")]
    columns = ["load, device", "scale", "WA", "hit ratio", *times, "time (s)"]
    print(f"| {' | '.join(columns)} |")
    print(f"|---|{'---:|' * (len(columns) - 1)}")
    for case in CASES:
        took, figures, factor = [], [], 1.0
        for scale in (1, case.scale):
            began = time.monotonic()
            results = [case.run(scale, seed) for seed in SEEDS]
            took.append((time.monotonic() - began) / len(SEEDS))
            figures.append(_figures(results))
            factor = results[0].summary.get("scale", {}).get("factor", 1.0)
        full, small = figures
        errors = [_error(*pair) for pair in zip(full, small, strict=True)]
        errors[1] = f"{full[1]:.3f}, {small[1]:.3f}"
        cells = [f"`{case.load}`, {case.device}", f"{factor:.1f}", *errors, f"{took[0]:.1f}, {took[1]:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
