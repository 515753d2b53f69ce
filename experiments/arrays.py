"""Coordination schemes of arrays: response times, rebuilds, and garbage collection over time.

    python experiments/arrays.py line --requests 20000 --figure line.svg
    python experiments/arrays.py rebuild --requests 60000
    python experiments/arrays.py timeline --requests 20000 --figure gc.png

Prints the Markdown tables of `docs/array-claims.md`. The title of each table names its generated load. Claims
of the papers are checked by `flashtwin study run harmonia` and `flashtwin study run gcar`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import flashtwin
from flashtwin import plot

#: Settings that determine on which members the pages of a volume are.
VOLUME = tuple(f"array.{key}" for key in ("level", "groups", "segment", "spare_percent", "chunk", "rotation"))


class Warm:
    """Preconditioned arrays. Arrays with the same members and groups share one saved state."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._files: dict[tuple[object, ...], Path] = {}

    def snapshot(self, device: str, settings: Mapping[str, Any]) -> Path:
        """Return the file of a preconditioned array."""
        of_groups = settings.get("array.level") == "swan"
        members = {
            k: v
            for k, v in settings.items()
            if k.startswith("member.") or k == "array.members" or (of_groups and k in VOLUME)
        }
        key = (device, *sorted(members.items()))
        if key not in self._files:
            path = Path(self._directory.name) / str(len(self._files))
            flashtwin.save_snapshot(path, device, set=members)
            self._files[key] = path
        return self._files[key]


WARM = Warm()


def run(load: str, device: str, settings: Mapping[str, Any], warmup: int) -> flashtwin.Result:
    """Run a load on an array in its steady state, and return the result."""
    snapshot = WARM.snapshot(device, settings)
    return flashtwin.run(load, device=device, set=settings, snapshot=snapshot, warmup_requests=warmup)


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    head = list(head)
    print(f"\n**{title}**\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


#: Settings of each scheme that is compared.
LINE: dict[str, dict[str, str]] = {
    "local": {},
    "inclusive": {"array.coordination": "inclusive"},
    "selective": {"array.coordination": "selective"},
    "soft-limit": {"array.coordination": "soft-limit"},
    "proactive-idle": {"array.coordination": "idle"},
    "turns": {"array.coordination": "turns"},
    "turns, reads around": {"array.coordination": "turns", "array.reads": "around-gc"},
    "hedged": {"array.reads": "hedged"},
    "turns, hedged": {"array.coordination": "turns", "array.reads": "hedged"},
    "ebb": {
        "array.coordination": "turns",
        "array.reads": "around-gc",
        "array.protect": "stripe",
        "buffer.policy": "gcar-lru",
    },
    "swan": {"array.level": "swan"},
    "ideal": {"array.coordination": "ideal"},
}
#: Factor by which runs with SWAN have more requests. In such a run, each of its groups of members becomes the
#: front group, which receives the writes.
SWAN_TIMES = 10


#: Settings of the array that is rebuilt. Each member has 272 MiB.
REBUILT = {"member.geometry.blocks_per_plane": 20, "buffer.capacity": "1 MiB"}


def line(requests: int, figure: str | None) -> None:
    """Print p50 to p99.99 of all schemes on RAID-5 of 8 members under three loads; draw a figure."""
    loads = {
        "writes": "uniform:size=4k,write=0.8,rate=6k/s",
        "reads": "uniform:size=4k,write=0.2,rate=12k/s",
        "bursts": "uniform:size=16k,write=0.7,on_rate=10k/s,on_length=100,duty=0.1",
    }
    shares = ("p50_us", "p90_us", "p99_us", "p999_us", "p9999_us")
    panels: dict[str, dict[str, flashtwin.Result]] = {}
    for name, load in loads.items():
        rows = []
        panels[name] = {}
        for label, settings in LINE.items():
            # The first half of the requests is warm-up: the number of free blocks reaches the level at which
            # the scheme keeps it.
            half = requests * (SWAN_TIMES if label == "swan" else 1)
            whole = f"{load},requests={2 * half}"
            result = run(whole, "raid5-array", {"buffer.policy": "lru"} | settings, warmup=half)
            panels[name][label] = result
            s = result.summary
            cells = (f"{s['all'][share]:.0f}" for share in shares)
            cv, wa = s["all"]["variation"], s["flash"]["gc_write_amplification"]
            in_all = s["array"]["total_write_amplification"]
            rows.append((label, *cells, f"{cv:.2f}", f"{wa:.2f}", f"{in_all:.2f}"))
        head = ("scheme", "p50", "p90", "p99", "p99.9", "p99.99 us", "CV", "write amplification", "in all")
        table(f"RAID-5 of 8, {name}: {load},requests={2 * requests}", head, rows)
    if figure:
        plot.save(plot.percentiles(panels, columns=2), figure)


def rebuild(requests: int) -> None:
    """Print response times before, during and after a rebuild, for several limits of its rate.

    Also prints the response times without the failed member, before it is replaced.
    """
    head = ["limit MiB/s", "rebuild s", "p99 whole us", "degraded", "rebuilding", "p99.9 rebuilding", "after"]
    for chunk in ("4 KiB", "64 KiB"):
        rows = []
        for limit in (0, 100, 50, 25):
            load = f"uniform:size=4k,rate=4k/s,requests={requests}"
            s = flashtwin.run(
                load,
                device="raid5-array",
                set=REBUILT | {"array.chunk": chunk, "array.rebuild_mib_per_s": limit},
                precondition="sequential",
                faults=[flashtwin.Fail(3, at_s=1), flashtwin.Replace(3, at_s=2)],
            ).summary["array"]
            by_condition = {phase["condition"]: phase["all"] for phase in s["phases"][1:]}
            took = s["rebuilds"][0]["until_s"] - s["rebuilds"][0]["from_s"]
            p99 = [f"{by_condition[c]['p99_us']:.0f}" for c in ("degraded", "rebuilding")]
            before, after = (s["phases"][at]["all"]["p99_us"] for at in (0, -1))
            tail = by_condition["rebuilding"]["p999_us"]
            rows.append(
                (limit or "none", f"{took:.2f}", f"{before:.0f}", *p99, f"{tail:.0f}", f"{after:.0f}")
            )
        table(f"A member of RAID-5 of 8 is rebuilt, chunks of {chunk}", head, rows)


def timeline(requests: int, figure: str | None) -> None:
    """Print the fractions of time in which 0, 1, and more members run GC at once. Draw the collections."""
    results = {}
    rows = []
    for coordination in ("local", "inclusive", "turns"):
        result = flashtwin.run(
            f"uniform:size=4k,write=0.8,rate=6k/s,requests={2 * requests}",
            device="raid5-array",
            set={"buffer.policy": "lru", "array.coordination": coordination},
            snapshot=WARM.snapshot("raid5-array", {}),
            warmup_requests=requests,
            gc_timeline=True,
        )
        results[coordination] = result
        shares = at_once(result, 8)
        cells = [f"{100 * share:.0f} %" for share in (*shares[:3], sum(shares[3:8]), shares[8])]
        rows.append((coordination, *cells, f"{result.latency['variation']:.2f}"))
    head = ("coordination", "none", "one", "two", "three to seven", "all", "CV of response times")
    table("RAID-5 of 8 under writes: share of time by number of members in GC", head, rows)
    if figure:
        plot.save(plot.collections(results, until_s=1), figure)


def at_once(result: flashtwin.Result, members: int) -> list[float]:
    """Return the fractions of the time in which 0, 1, 2 ... members run GC."""
    assert result.gc_intervals is not None
    steps = []
    for row in result.gc_intervals.to_pylist():
        steps += [(row["begin_ns"], 1), (row["end_ns"], -1)]
    end = result.summary["span_s"] * 1e9
    spent = [0.0] * (members + 1)
    now, collecting = 0.0, 0
    for at, step in [*sorted(steps), (end, 0)]:
        spent[collecting] += min(at, end) - now
        now, collecting = min(at, end), collecting + step
    return [span / end for span in spent]


STUDIES = {"line": line, "rebuild": rebuild, "timeline": timeline}
#: Parts that also draw a figure.
DRAWN = ("line", "timeline")


def main() -> None:
    """Run the part that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=STUDIES, help="which tables")
    parser.add_argument("--requests", type=int, default=20_000, help="requests a run (default: 20000)")
    parser.add_argument("--figure", metavar="FILE", help=f"draw it, too (only {', '.join(DRAWN)})")
    args = parser.parse_args()
    if args.figure and args.study not in DRAWN:
        parser.error(f"--figure: {args.study} is a table only")
    more = [args.figure] if args.study in DRAWN else []
    STUDIES[args.study](args.requests, *more)


if __name__ == "__main__":
    main()
