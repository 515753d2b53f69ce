"""Long runs compared with the closed forms of docs/theory.md: `python experiments/theory.py`.

Each point is a device of one chip and a load. Prints the table of the page.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import flashtwin

PAGES_PER_BLOCK = 64
#: Divisor of the number of blocks. The result is the number of free blocks at which collection starts.
LOW = 64


@dataclass(frozen=True)
class Point:
    """A long run that is compared with a closed form.

    Attributes:
        load: the generated load, without its number of requests.
        fill: fraction of the pages in used blocks that is live; None if the flash does not matter.
        quantity: the name of the closed form.
        keys: further keys of the device.
        warmup: writes before the measurement, in capacities of the device (for hits: of the range).
        measured: measured writes, in the same unit as `warmup`.
    """

    load: str
    fill: float = 0.8
    quantity: str = "gc_write_amplification"
    keys: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    warmup: float = 2
    measured: float = 6


def _rule(rule: str, **more: int) -> dict[str, str | int | float | bool | None]:
    return {"gc.victim": rule, **{f"gc.{key}": value for key, value in more.items()}}


_BUFFER = {"buffer.capacity": "1MiB"}
POINTS = [
    Point("uniform:write=1", 0.9),
    Point("uniform:write=1", 0.8),
    Point("uniform:write=1", 0.6667, keys={"nand.backend": "modern"}),
    Point("uniform:write=1", 0.85, keys=_rule("fifo"), warmup=6),
    Point("uniform:write=1", 0.8, keys=_rule("random"), warmup=6),
    Point("uniform:write=1", 0.85, keys=_rule("d-choices", choices=2), warmup=6),
    Point("uniform:permute=true,write=1", 0.8, keys=_rule("fifo"), warmup=10),
    Point("hotcold:hot_access=0.8,hot_space=0.2,write=1", 0.8, keys=_rule("fifo"), warmup=20),
    Point("zipf:theta=0.9,write=1", 0.8, keys=_rule("fifo"), warmup=40),
    Point("zipf:theta=0.9,write=0.5", 0.5, "hit_ratio", {**_BUFFER, "buffer.policy": "lru"}),
    Point("zipf:theta=0.9,write=0.5", 0.5, "hit_ratio", {**_BUFFER, "buffer.policy": "fifo"}),
    Point("uniform:rate=6000", 0.5, "read_response_us", {"timing.read_us": 100}),
]


def keys(point: Point, blocks: int) -> dict[str, str | int | float | bool | None]:
    """Return the keys of a device with one pool.

    Live pages are the fraction `fill` of the pages in used blocks.
    """
    low = blocks // LOW
    # As in `Pool::units_in_use` of crates/flashtwin/src/theory.rs.
    exported = round(point.fill * (blocks - low - 1.5))
    modern = point.keys.get("nand.backend") == "modern"
    return {
        "geometry.chips": 1,
        "geometry.planes_per_chip": 1,
        "geometry.blocks_per_plane": blocks,
        "geometry.pages_per_block": PAGES_PER_BLOCK,
        "geometry.reserve_percent": (blocks - exported + 0.3) / blocks * 100,
        "gc.low_percent": (low + 0.3) / blocks * 100,
        "ftl.summary_page": False,
        "nand.copy_back": True,
        "timing.transfer_ns_per_byte": 0,
        "link.command_overhead_us": 0,
        "link.bus_ns_per_sector": 0,
        **({"geometry.channels": 1} if modern else {"nand.parallel_units": 1}),
        **({} if "buffer.capacity" in point.keys else {"buffer": None}),
        **point.keys,
    }


def measure(point: Point, blocks: int) -> tuple[float, float]:
    """Run a point on a device with `blocks` blocks. Return the measured value and the closed form."""
    set_keys = keys(point, blocks)
    form = flashtwin.theory(point.load, "demo", set=set_keys).own(point.quantity)
    if form is None or form.value is None:
        raise SystemExit(f"{point.load}: no closed form")
    pages = flashtwin.device("demo", set_keys).exported_bytes // 4096
    warmup, measured = (round(pages * times) for times in (point.warmup, point.measured))
    result = flashtwin.run(
        f"{point.load},requests={warmup + measured}",
        "demo",
        set=set_keys,
        precondition="steady",
        warmup_requests=warmup,
        **({} if "rate" in point.load else {"pacing": flashtwin.ClosedLoop(1)}),
    )
    found = {
        "gc_write_amplification": result.gc_write_amplification,
        "hit_ratio": result.hit_ratio,
        "read_response_us": result.summary["read"]["mean_us"],
    }[point.quantity]
    return found or 0.0, form.value


def main() -> None:
    """Print the table."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    print("| load | device | quantity | closed form | long run | difference |")
    print("|---|---|---|---:|---:|---:|")
    for point in POINTS:
        found, expected = measure(point, blocks)
        device = ", ".join(f"{key.split('.')[1]} {value}" for key, value in point.keys.items()) or "-"
        quantity = {
            "gc_write_amplification": f"write amplification, fill {point.fill:g}",
            "hit_ratio": "hit ratio",
            "read_response_us": "read response (us)",
        }[point.quantity]
        print(
            f"| `{point.load}` | {device} | {quantity} | {expected:.4g} | {found:.4g} "
            f"| {found / expected - 1:+.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
