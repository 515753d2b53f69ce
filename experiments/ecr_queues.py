"""Measures how unevenly the queues of the chips are filled under LRU (ECR, Fig. 4).

    python experiments/ecr_queues.py

The queue complete time of a chip is the time until it has completed all its queued operations. At each
eviction of a dirty page, the largest queue complete time of any chip is divided by the mean over all chips.
The table has the fraction of evictions at which this ratio exceeds ten, and the fraction at which all chips
are idle.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict
from typing import ClassVar

import flashtwin
from flashtwin import study

#: Ratio of largest to mean queue time above which the paper calls the queues uneven.
UNEVEN = 10


class Lru(flashtwin.Policy):
    """LRU that records, at each eviction of a dirty page, the ratio of the largest to the mean queue time."""

    ratios: ClassVar[list[float | None]] = []

    def __init__(self) -> None:
        self.order: OrderedDict[int, None] = OrderedDict()
        self.ratios.clear()

    def insert(self, page: int, access: flashtwin.Access) -> None:
        """Move the page to the most recent position."""
        self.order[page] = None

    def hit(self, page: int, access: flashtwin.Access) -> None:
        """Move the page to the most recent position."""
        self.order.move_to_end(page)

    def forget(self, page: int) -> None:
        """Drop the page."""
        del self.order[page]

    def evict(self, incoming: flashtwin.Access) -> int:
        """Evict the least recent page."""
        page = next(iter(self.order))
        del self.order[page]
        if self.device.dirty(page):
            queues = [self.device.drain_time_us(chip) for chip in range(self.device.chips)]
            mean = sum(queues) / len(queues)
            self.ratios.append(max(queues) / mean if mean > 0 else None)
        return page


def row(name: str, load: str, requests: int) -> str:
    """Run a load and return its row; the first half of the evictions is warm-up."""
    flashtwin.run(f"{load},requests={requests}", device="ecr", policy=Lru, beyond="wrap")
    late = Lru.ratios[len(Lru.ratios) // 2 :]
    uneven = sum(ratio is not None and ratio > UNEVEN for ratio in late) / len(late)
    idle = late.count(None) / len(late)
    return f"| {name} | {uneven:.0%} | {idle:.0%} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=14000, metavar="N", help="requests of each run")
    requests = parser.parse_args().requests
    print(f"| load | more than {UNEVEN} times the mean | all chips idle |\n|---|---|---|")
    for name, load in study.read("ecr").loads.items():
        for kind in ("bursts", "calm", "mean"):
            print(row(f"{name}/{kind}", f"{load.text},{load.arrivals[kind]}", requests))
    for rate in ("5k", "10k", "20k"):
        print(row(f"uniform at {rate}/s", f"ecr-uniform:rate={rate}/s", 2 * requests))


if __name__ == "__main__":
    main()
