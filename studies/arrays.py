"""The claims about arrays: Harmonia's, GCaR's on an array, and the whole line of schemes in one table.

    python studies/arrays.py harmonia --requests 20000
    python studies/arrays.py gcar --requests 60000
    python studies/arrays.py line --requests 20000 --figure line.svg
    python studies/arrays.py rebuild --requests 60000
    python studies/arrays.py timeline --requests 20000 --figure gc.png

Prints tables in Markdown; `docs/array-claims.md` holds what they said. Loads are generated (policies
of the papers' traces are not public); each table names its load.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import flashtwin
from flashtwin import plot

Summary = Mapping[str, Any]

#: Loads with the means of Harmonia's Table 8, standing in for the traces.
ENTERPRISE = {
    "Financial": "uniform:size=exp(5212),write=0.811,rate=47.19/s",
    "TPC-C": "uniform:size=exp(5181),write=0.795,rate=388.3/s",
    "Cello": "uniform:size=exp(5181),write=0.804,rate=74.24/s",
    "TPC-H": "uniform:size=exp(30331),write=0.082,rate=172.7/s",
    "Openmail": "uniform:size=exp(7670),write=0.367,rate=846.6/s",
}


#: Settings that say where the pages of a volume lie.
VOLUME = tuple(f"array.{key}" for key in ("level", "groups", "segment", "spare_percent", "chunk", "rotation"))


#: Members of the same size, on which a round of collections is one collection long, not four.
ONE_PLANE: dict[str, object] = {
    "member__geometry__planes_per_chip": 1,
    "member__geometry__blocks_per_plane": 2048,
}


class Warm:
    """Arrays in the state that runs start from: those of the same members and groups are made once."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._files: dict[tuple[object, ...], Path] = {}

    def snapshot(self, device: str, settings: Mapping[str, Any], precondition: str) -> Path:
        """Return the file of a preconditioned array."""
        of_groups = settings.get("array.level") == "swan"
        members = {
            k: v
            for k, v in settings.items()
            if k.startswith("member.") or k == "array.members" or (of_groups and k in VOLUME)
        }
        key = (device, precondition, *sorted(members.items()))
        if key not in self._files:
            path = Path(self._directory.name) / str(len(self._files))
            flashtwin.save_snapshot(path, device, precondition=precondition, set=members)
            self._files[key] = path
        return self._files[key]


WARM = Warm()


def full_run(
    load: str, device: str, settings: Mapping[str, Any], precondition: str = "steady", warmup: int = 0
) -> flashtwin.Result:
    """Run a load on an array."""
    snapshot = WARM.snapshot(device, settings, precondition)
    return flashtwin.run(load, device=device, set=settings, snapshot=snapshot, warmup_requests=warmup)


def run(
    load: str, device: str, settings: Mapping[str, Any], precondition: str = "steady", warmup: int = 0
) -> Summary:
    """Run a load on an array and return its summary."""
    return full_run(load, device, settings, precondition, warmup).summary


def scheme(load: str, coordination: str, precondition: str = "steady", **more: object) -> Summary:
    """Run a load on Harmonia's array under a scheme."""
    settings = {"array.coordination": coordination}
    settings |= {key.replace("__", "."): value for key, value in more.items()}
    return run(load, "harmonia-array", settings, precondition)


def mean_ms(summary: Summary) -> float:
    """Mean response time in milliseconds."""
    return summary["all"]["mean_us"] / 1000


def deviation_ms(summary: Summary) -> float:
    """Standard deviation of response times in milliseconds."""
    return summary["all"]["deviation_us"] / 1000


def less(ours: float, baseline: float) -> str:
    """Say by how much less, in percent."""
    return f"{(ours / baseline - 1) * 100:+.1f} %"


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    head = list(head)
    print(f"\n**{title}**\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


def fullness(requests: int) -> None:
    """Print what the drives' reserve and the range of addresses make of HAR-F9."""
    financial = f"{ENTERPRISE['Financial']},requests={requests}"
    cases: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("as above", financial, {}),
        ("only the first 4 GiB are accessed", f"{financial},range=4GiB", {}),
        *(
            (f"{percent} % reserve", financial, {"member__geometry__reserve_percent": percent})
            for percent in (30, 50, 70)
        ),
    )
    rows: list[tuple[str, ...]] = []
    for name, text, more in cases:
        base, ri = (mean_ms(scheme(text, c, **more)) for c in ("local", "inclusive"))
        rows.append((name, f"{base:.3f}", f"{ri:.3f}", less(ri, base)))
    head = ("case", "local ms", "RI ms", "change")
    table("HAR-F9, why the gain is larger: Financial by the drives' state", head, rows)


def harmonia(requests: int) -> None:
    """Print the claims of Harmonia's simulations."""

    def load(name: str, more: str = "") -> str:
        return f"harmonia-{name}:requests={requests}{more}"

    rows = []
    for name, paper in (("hpc-r", "-60 %"), ("hpc-w", "-71 % (69 %)")):
        base, ri = (scheme(load(name), c) for c in ("local", "inclusive"))
        rows.append(
            (
                name,
                f"{mean_ms(base):.2f}",
                f"{mean_ms(ri):.2f}",
                less(mean_ms(ri), mean_ms(base)),
                paper,
                f"{deviation_ms(base):.2f}",
                f"{deviation_ms(ri):.2f}",
            )
        )
    head = ("load", "local ms", "RI ms", "change", "paper", "deviation local", "deviation RI")
    table("HAR-F6: mean response time, RI against local", head, rows)

    rows = []
    for name in ("hpc-w", "hpc-r"):
        base, ri = (scheme(load(name), c, **ONE_PLANE) for c in ("local", "inclusive"))
        rows.append((name, less(mean_ms(ri), mean_ms(base)), *(f"{deviation_ms(s):.2f}" for s in (base, ri))))
    head = ("load", "RI mean", "deviation local", "deviation RI")
    table("HAR-F6, why the deviation: one plane a chip, so that a round is one collection long", head, rows)

    rows = []
    for name in ("hpc-w", "hpc-r"):
        for factor in (0.25, 0.5, 1, 1.5):
            text = load(name, f",rate={476.5 * factor}/s")
            base, ri = (scheme(text, c) for c in ("local", "inclusive"))
            cells = (f"{mean_ms(s):.2f}" for s in (base, ri))
            rows.append((name, factor, *cells, less(mean_ms(ri), mean_ms(base))))
    table(
        "HAR-F7: mean response time in ms against the arrival rate",
        ("load", "rate x", "local", "RI", "change"),
        rows,
    )

    rows = []
    for members in (2, 4, 8, 12, 18):
        more = {"array__members": f"harmonia*{members}"}
        base, ri = (mean_ms(scheme(load("hpc-w"), c, **more)) for c in ("local", "inclusive"))
        rows.append((members, f"{base:.2f}", f"{ri:.2f}", f"{base / ri:.2f}"))
    head = ("members", "local ms", "RI ms", "local / RI")
    table("HAR-F8: HPC(W) against the number of members (paper: 2.7 at 2, 3.2 at 18)", head, rows)

    rows = []
    for name, text in ENTERPRISE.items():
        base, ri = (scheme(f"{text},requests={requests}", c) for c in ("local", "inclusive"))
        cells = (f"{s:.3f}" for s in (mean_ms(base), mean_ms(ri), deviation_ms(base), deviation_ms(ri)))
        rows.append((name, *cells, less(mean_ms(ri), mean_ms(base))))
    head = ("stand-in", "local ms", "RI ms", "deviation local", "deviation RI", "change")
    table("HAR-F9: generated stand-ins with the traces' means (paper: -10 % on average)", head, rows)

    fullness(requests)

    schemes = ("local", "inclusive", "selective", "idle", "ideal")
    rows = []
    for name in ("hpc-w", "hpc-w-burst-m", "hpc-w-burst-h"):
        results = [scheme(load(name), c) for c in schemes]
        rows.append((name, *(f"{mean_ms(s):.2f}" for s in results)))
        rows.append((f"{name}, p99", *(f"{s['all']['p99_us'] / 1000:.1f}" for s in results)))
        rows.append((f"{name}, erases", *(s["flash"]["erases"] for s in results)))
    title = "HAR-F11a, F11b, F12: ms, and erases (paper: under bursts PI < RS < local, near Ideal)"
    table(title, ("load", *schemes), rows)

    rows = []
    for precondition in ("sequential", "steady"):
        count = requests if precondition == "steady" else 30_000
        text = f"harmonia-hpc-w-skew:requests={count}"
        ri, rs = (scheme(text, c, precondition) for c in ("inclusive", "selective"))
        erases = [s["flash"]["erases"] for s in (ri, rs)]
        rows.append((precondition, *erases, f"{erases[0] / max(erases[1], 1):.2f}"))
    head = ("start", "RI erases", "RS erases", "RI / RS")
    table("HAR-F11b: HPC(W,Skew) (paper: RI 3 to 4 times RS)", head, rows)
    harmonia_why(requests)


def harmonia_why(requests: int) -> None:
    """Print experiments on what comes out otherwise than printed."""
    head = ("members", "local ms", "RI ms", "local / RI")
    rows: list[tuple[object, ...]] = []
    for members in (2, 8, 18):
        more = {"array__members": f"harmonia*{members}", **ONE_PLANE}
        base, ri = (
            mean_ms(scheme(f"harmonia-hpc-w:requests={requests}", c, **more)) for c in ("local", "inclusive")
        )
        rows.append((members, f"{base:.2f}", f"{ri:.2f}", f"{base / ri:.2f}"))
    table("HAR-F8, why not at 2: one plane a chip", head, rows)

    rows = []
    cases: list[tuple[str, int, dict[str, object]]] = [
        ("as above", 1, {}),
        ("four times the requests", 4, {}),
        ("one plane a chip", 1, ONE_PLANE),
        ("one plane a chip, 40 % reserve", 1, {**ONE_PLANE, "member__geometry__reserve_percent": 40}),
    ]
    for name, times, more in cases:
        text = f"harmonia-hpc-w-burst-m:requests={times * requests}"
        results = [scheme(text, c, **more) for c in ("local", "idle", "ideal")]
        erases = [s["flash"]["erases"] for s in results]
        rows.append((name, *(f"{mean_ms(s):.2f}" for s in results), f"{erases[1] / erases[0]:.2f}"))
    title = "HAR-F11a, F12, why proactive-idle is further from Ideal, and erases more: burst M"
    table(title, ("case", "local ms", "PI ms", "Ideal ms", "erases PI / local"), rows)


def gcar(requests: int) -> None:
    """Print GCAR-F14: RAIS5 of 4, 6 and 8 SSDs, LRU and GCaR-LRU, both definitions of a member in GC."""
    rows = []
    # A gigabyte of buffer is full after 33 000 requests.
    fill = 35_000
    for members in (4, 6, 8):
        cells = []
        for in_gc in ("any", "chip"):
            settings = {"array.members": f"gcar*{members}", "array.member_in_gc": in_gc}
            load = f"gcar-synthetic:requests={fill + requests}"
            lru, aware = (
                mean_ms(run(load, "gcar-array", settings | {"buffer.policy": policy}, warmup=fill))
                for policy in ("lru", "gcar-lru")
            )
            cells += [f"{lru:.3f}", f"{aware:.3f}", less(aware, lru)]
        rows.append((members, *cells))
    head = ("SSDs", "LRU ms", "GCaR-LRU, any", "change", "LRU ms", "GCaR-LRU, chip", "change")
    table("GCAR-F14: RAIS5, 1 GiB buffer (paper: up to -19.7 % at 8, -15.4 % on average)", head, rows)

    rows = []
    for level, in_gc, protect in (
        ("raid0", "any", "data"),
        ("raid0", "chip", "data"),
        ("raid5", "any", "data"),
        ("raid5", "chip", "data"),
        ("raid5", "any", "stripe"),
    ):
        settings = {"array.level": level, "array.member_in_gc": in_gc, "array.protect": protect}
        load = f"gcar-synthetic:requests={fill + requests}"
        lru, aware = (
            run(load, "gcar-array", settings | {"buffer.policy": policy}, warmup=fill)
            for policy in ("lru", "gcar-lru")
        )
        parity = [share_of_parity(each) for each in (lru, aware)]
        cells = [f"{mean_ms(each):.3f}" for each in (lru, aware)]
        rows.append((level, in_gc, protect, *cells, less(mean_ms(aware), mean_ms(lru)), *parity))
    head = ("level", "in GC", "protects", "LRU ms", "GCaR-LRU ms", "change", "parity by LRU", "by GCaR-LRU")
    table("Why: with and without parity, at 8; parity pages written for a page of data", head, rows)


def share_of_parity(summary: Summary) -> str:
    """Parity pages written for each page of data."""
    array = summary["array"]
    return f"{array['parity_pages_written'] / array['data_pages_written']:.3f}"


#: Each scheme of the line, by the settings that make it.
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
#: Times the requests of the others that swan is given, so that its groups take turns.
SWAN_TIMES = 10


#: Members of the rebuild study: 272 MiB each.
REBUILT = {"member.geometry.blocks_per_plane": 20, "buffer.capacity": "1 MiB"}


def line(requests: int, figure: str | None) -> None:
    """Print the whole line on RAID-5 of 8: p50 to p99.99 on three loads; draw it."""
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
            # The first half brings the pools to where the scheme keeps them.
            half = requests * (SWAN_TIMES if label == "swan" else 1)
            whole = f"{load},requests={2 * half}"
            result = full_run(whole, "raid5-array", {"buffer.policy": "lru"} | settings, warmup=half)
            panels[name][label] = result
            s = result.summary
            cells = (f"{s['all'][share]:.0f}" for share in shares)
            cv, wa = s["all"]["variation"], s["flash"]["write_amplification"]
            in_all = s["array"]["total_write_amplification"]
            rows.append((label, *cells, f"{cv:.2f}", f"{wa:.2f}", f"{in_all:.2f}"))
        head = ("scheme", "p50", "p90", "p99", "p99.9", "p99.99 us", "CV", "write amplification", "in all")
        table(f"RAID-5 of 8, {name}: {load},requests={2 * requests}", head, rows)
    if figure:
        plot.save(plot.percentiles(panels, columns=2), figure)


def rebuild(requests: int) -> None:
    """Print response times before, without, while rebuilding and after a member, at several limits."""
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
    """Print how much of the time 0, 1, and more members collect at once; draw who does when."""
    results = {}
    rows = []
    for coordination in ("local", "inclusive", "turns"):
        result = flashtwin.run(
            f"uniform:size=4k,write=0.8,rate=6k/s,requests={2 * requests}",
            device="raid5-array",
            set={"buffer.policy": "lru", "array.coordination": coordination},
            snapshot=WARM.snapshot("raid5-array", {}, "steady"),
            warmup_requests=requests,
            gc_timeline=True,
        )
        results[coordination] = result
        shares = at_once(result, 8)
        cells = [f"{100 * share:.0f} %" for share in (*shares[:3], sum(shares[3:8]), shares[8])]
        rows.append((coordination, *cells, f"{result.latency['variation']:.2f}"))
    head = ("coordination", "nobody", "one", "two", "three to seven", "all", "CV of response times")
    table("RAID-5 of 8 under writes: share of the time in which so many members collect", head, rows)
    if figure:
        plot.save(plot.collections(results, until_s=1), figure)


def at_once(result: flashtwin.Result, members: int) -> list[float]:
    """Return the share of the time in which 0, 1, 2 ... members collect."""
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


STUDIES = {"harmonia": harmonia, "gcar": gcar, "line": line, "rebuild": rebuild, "timeline": timeline}
#: Those that draw a figure, too.
DRAWN = ("line", "timeline")


def main() -> None:
    """Run what the command line asks for."""
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
