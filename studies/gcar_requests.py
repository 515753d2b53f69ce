"""GCaR with large requests: the same bytes a second in requests of each size.

    python studies/gcar_requests.py --mib 640

For each size: the mean response time under `lru` and `gcar-lru`, how long a page waits for its slot, and on
how many chips the dirty victims of a request lie. The victims are counted by the same two policies in Python.
"""

from __future__ import annotations

import argparse
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

import flashtwin

#: KiB of a request; 4 KiB come every 250 us.
SIZES = (4, 16, 32, 64, 128)


class Lru(flashtwin.Policy):
    """LRU that counts the dirty victims of each request by chip."""

    spares_gc = False
    victims: ClassVar[dict[int, Counter[int]]] = {}

    def __init__(self) -> None:
        self.order: OrderedDict[int, None] = OrderedDict()
        self.victims.clear()

    def insert(self, page: int, access: flashtwin.Access) -> None:
        """Make the page the most recent."""
        self.order[page] = None

    def hit(self, page: int, access: flashtwin.Access) -> None:
        """Make the page the most recent."""
        self.order.move_to_end(page)

    def forget(self, page: int) -> None:
        """Drop the page."""
        del self.order[page]

    def evict(self, incoming: flashtwin.Access) -> int:
        """Let go of the least recent page that is not spared, or of the least recent."""
        free = (page for page in self.order if not (self.spares_gc and self.collects(page)))
        page = next(free, next(iter(self.order)))
        del self.order[page]
        chip = self.device.chip(page)
        if chip is not None and self.device.dirty(page):
            self.victims.setdefault(incoming.request, Counter())[chip] += 1
        return page

    def collects(self, page: int) -> bool:
        """Say whether the chip of the page is collecting."""
        chip = self.device.chip(page)
        return chip is not None and self.device.in_gc(chip)


class GcarLru(Lru):
    """The same under GCaR."""

    spares_gc = True


def load(kib: int, mib: int) -> str:
    """Return a load of so many MiB in requests of so many KiB."""
    return f"gcar-synthetic:size={kib}k,interval={kib * 1000 // 16}us,requests={mib * 1024 // kib}"


def victims(policy: type[Lru], text: str) -> tuple[float, float]:
    """Mean number of chips that the dirty victims of a request lie on, and most of them on one chip."""
    flashtwin.run(text, device="gcar", policy=policy)
    counts = list(policy.victims.values())
    chips = sum(len(count) for count in counts)
    most = sum(max(count.values()) for count in counts)
    return chips / len(counts), most / len(counts)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=640, metavar="N", help="MiB accessed in each run")
    mib = parser.parse_args().mib
    head = (
        "request",
        "LRU ms",
        "GCaR-LRU ms",
        "change",
        "wait of a page ms",
        "chips of its victims",
        "most on one",
    )
    print(f"| {' | '.join(head)} |")
    print("|---|---|---|---|---|---|---|")
    for kib in SIZES:
        text = load(kib, mib)
        lru, gcar = (run(text, policy) for policy in ("lru", "gcar-lru"))
        means = [of["all"]["mean_us"] / 1000 for of in (lru, gcar)]
        waits = [of["buffer"]["slot_wait_mean_us"] / 1000 for of in (lru, gcar)]
        (chips, most), (gcar_chips, gcar_most) = (victims(policy, text) for policy in (Lru, GcarLru))
        cells = (
            *(f"{mean:.2f}" for mean in means),
            f"{(means[1] / means[0] - 1) * 100:+.0f} %",
            f"{waits[0]:.2f}, {waits[1]:.2f}",
            f"{chips:.1f}, {gcar_chips:.1f}",
            f"{most:.1f}, {gcar_most:.1f}",
        )
        print(f"| {kib} KiB | {' | '.join(cells)} |")


def run(text: str, policy: str) -> Mapping[str, Any]:
    """Run a load and return its summary."""
    return flashtwin.run(text, device="gcar", policy=policy).summary


if __name__ == "__main__":
    main()
