"""Why CDA-GC collects more than LRU under a live database: tables of docs/live-claims.md, from recordings.

    python experiments/live_cda.py live.csv long.csv

live.csv is a recording of one minute of MariaDB on the served device `cosmos` (the board). long.csv is a
recording of one minute of MariaDB on the device `instant`, which takes no time. The second recording has
eight times as many requests. docs/live-claims.md has the commands that record them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

import flashtwin

CDA, STAGER, DISPATCHER = "cda-gc", "cda-gc-stager", "cda-gc-dispatcher"
RESET = "buffer.filter_reset_ms"
#: Settings with which the filter of CDA-GC, which detects hot pages, is reset every second. Some runs set
#: another time.
EACH_SECOND = {"buffer.filter_reset_items": 0, RESET: 1000}
#: Settings with the same exported pages, but a reserve that is larger by a quarter (72 instead of 70 blocks
#: per die), and settings that keep two instead of one block per die free.
ROOMIER = {"geometry.blocks_per_plane": 36, "geometry.reserve_percent": 11.2}
TWO_FREE = {"gc.low_percent": 3}
#: Number of times that the long recording is repeated in a run. The counters of the last repetition are
#: reported.
ROUNDS = 3
COLUMNS = "| run | buffer hits | pages written | hot writes | erases | pages moved | WA |"


def blocks(a_die: int) -> dict[str, object]:
    """Return settings for `a_die` blocks per die. Collection starts at one free block."""
    return {"geometry.blocks_per_plane": a_die // 2, "gc.low_percent": 101 / a_die}


LIVE = [
    ("lru", "lru", {}),
    ("lru, two free blocks", "lru", TWO_FREE),
    ("stager", STAGER, {}),
    ("dispatcher", DISPATCHER, {}),
    ("cda-gc", CDA, {}),
    ("dispatcher, reset after 1 ms", DISPATCHER, {RESET: 1}),
    ("dispatcher, reset after 10 s", DISPATCHER, {RESET: 10_000}),
    ("ecr", "ecr", {}),
    ("lcr", "lcr", {}),
    ("cflru:window=1.0", "cflru:window=1.0", {}),
]
LONG = [
    ("lru", "lru", {}),
    ("lru, two free blocks", "lru", TWO_FREE),
    ("stager", STAGER, {}),
    (
        "stager, the whole list, half a block",
        STAGER,
        {"buffer.test_num": 1024, "buffer.hp_margin_percent": 50},
    ),
    ("dispatcher", DISPATCHER, {}),
    ("cda-gc", CDA, {}),
    *((f"cda-gc, reset after {ms} ms", CDA, {RESET: ms}) for ms in (1, 10_000, 1_000_000)),
    ("72 blocks, two free: lru", "lru", ROOMIER | TWO_FREE),
    ("72 blocks, two free: cda-gc", CDA, ROOMIER | TWO_FREE),
    *((f"{n} blocks: {p}", p, blocks(n)) for n in (280, 560) for p in ("lru", CDA)),
    *(
        (
            f"a quarter in reserve: {p}",
            p,
            {"geometry.blocks_per_plane": 43, "geometry.reserve_percent": 25.5},
        )
        for p in ("lru", CDA)
    ),
    *(
        (f"{mib} MiB: {p}", p, {"buffer.capacity": f"{mib} MiB"})
        for mib in (4, 64, 256)
        for p in ("lru", CDA)
    ),
]

#: Runs of `LONG` that are also made with a single round, because later rounds access the same pages again.
FIRST = ("lru", CDA, "cda-gc, reset after 10000 ms", "cda-gc, reset after 1000000 ms")


class Watched(flashtwin.Policy):
    """LRU that records, for each evicted dirty page, the time since its last write and whether it was hot."""

    def __init__(self) -> None:
        self.pages: OrderedDict[int, tuple[float, bool]] = OrderedDict()
        self.seen: set[int] = set()
        self.reset_us = 0.0

    def insert(self, page: int, access: flashtwin.Access) -> None:
        """Insert the page."""
        self.hit(page, access)

    def hit(self, page: int, access: flashtwin.Access) -> None:
        """Move the page to the most recent position.

        If the access is a write, record whether the page is hot.
        """
        at, hot = self.pages.pop(page, (0.0, False))
        if access.write:
            at = self.device.now_us
            if at - self.reset_us >= 1e6:
                self.reset_us = at
                self.seen.clear()
            hot = access.lpn in self.seen
            self.seen.add(access.lpn)
        self.pages[page] = at, hot

    def evict(self, incoming: flashtwin.Access) -> int:
        """Evict the least recent page."""
        page, (at, hot) = next(iter(self.pages.items()))
        if self.device.dirty(page):
            left.append((self.device.lpn(page), self.device.now_us - at, hot and at >= self.reset_us))
        del self.pages[page]
        return page

    def forget(self, page: int) -> None:
        """Remove a trimmed page."""
        del self.pages[page]


#: Evictions recorded by `Watched`: the page, the microseconds since its last write, and whether it was hot.
left: list[tuple[int, float, bool]] = []


def table(recording: Path, device: str, depth: int, rounds: int, runs: list[tuple[str, str, dict]]) -> None:
    """Print the counters of the last round of each run."""
    once = sum(1 for _ in recording.open()) // rounds
    print(f"{COLUMNS}\n|{'---|' * 7}", flush=True)
    for label, policy, settings in runs:
        summary = flashtwin.run(
            recording,
            device=device,
            policy=policy,
            set=(EACH_SECOND if policy in (CDA, DISPATCHER) else {}) | settings,
            pacing=flashtwin.ClosedLoop(depth),
            warmup_requests=(rounds - 1) * once,
        ).summary
        flash = summary["flash"]
        count = {op["name"]: op["count"] for op in flash["ops"]}
        hot = [
            c["count"] for c in summary["buffer"]["policy_counters"] if c["name"] == "dispatcher_hot_writes"
        ]
        cells = [label, f"{summary['hits']['ratio']:.1%}", count["destage"], *(hot or ["-"])]
        cells += [flash["erases"], count["gc_move"], f"{flash['gc_write_amplification']:.2f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def leaving(recording: Path, device: str, depth: int) -> None:
    """Print how many evicted dirty pages are hot, and how many hot and cold ones are soon written again."""
    left.clear()
    flashtwin.run(recording, device=device, policy=Watched, pacing=flashtwin.ClosedLoop(depth))
    # Number of evictions that fill one block on each of the 64 dies. A page counts as soon written again if
    # it is evicted again within this number of evictions. The last evictions are not counted, because too few
    # follow them.
    soon, next_at, again = 64 * 128, {}, [False] * len(left)
    for i in reversed(range(len(left))):
        page = left[i][0]
        again[i] = next_at.get(page, len(left) + soon) - i <= soon
        next_at[page] = i
    kinds = [[again[i] for i in range(len(left) - soon) if left[i][2] == hot] for hot in (True, False)]
    shares = [f"{sum(kind) / len(kind):.0%} of {len(kind)}" if kind else "none" for kind in kinds]
    print(
        f"{len(left)} pages left for flash, {sum(hot for _, _, hot in left)} of them hot, in the median "
        f"{statistics.median(us for _, us, _ in left) / 1e6:.1f} s after their last write; "
        f"again within {soon} such writes: hot {shares[0]}, cold {shares[1]}"
    )


def repeated(recording: Path, place: Path) -> Path:
    """Write a file with the recording several times in succession, and return its path."""
    rows = [row.split(",", 1) for row in recording.read_text().splitlines()[1:]]
    span = float(rows[-1][0]) + 1
    path = place / "rounds.csv"
    with path.open("w") as file:
        file.write("time_us,op,offset_bytes,size_bytes\n")
        for n in range(ROUNDS):
            file.writelines(f"{float(time) + n * span:.3f},{rest}\n" for time, rest in rows)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    live, long = Path(sys.argv[1]), Path(sys.argv[2])
    board = f"{live}.toml"
    print(f"\n**{live.name}, one request at a time**\n")
    table(live, board, 1, 1, LIVE)
    leaving(live, board, 1)
    print(f"\n**{long.name}, 8 requests at a time, the first round**\n")
    table(long, board, 8, 1, [run for run in LONG if run[0] in FIRST])
    with tempfile.TemporaryDirectory() as place:
        print(f"\n**{long.name}, 8 requests at a time, the third round**\n")
        table(repeated(long, Path(place)), board, 8, ROUNDS, LONG)
    leaving(long, board, 8)
