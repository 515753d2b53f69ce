"""Compares the policy COOP with others in cases that were not used to choose it.

    python experiments/coop.py -o coop.sweeps                    generated loads and recorded databases
    python experiments/coop.py -o coop.sweeps --traces DIR       also the traces of TRACES, if they are in DIR
    python experiments/coop.py -o coop.sweeps --quick            two seeds, one policy: checks the cells

Prints the tables of `docs/coop.md`. The cases differ in device, load, initial state and sizes. A cell is one
load on one device. Finished cells are kept, so that the same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import flashtwin

POLICIES = ["lru", "arc", "s3-fifo", "ecr", "gcar-lru", "cda-gc", "co-active", "coop"]
#: Column of the results, and its title.
FIGURES = {"all_mean_us": "mean", "all_p99_us": "p99", "all_p999_us": "p99.9", "flash_erases": "erases"}
#: Quantiles of Student's t for a two-sided interval of 95 %, by the number of seeds.
STUDENT = {2: 12.71, 3: 4.30, 5: 2.78, 10: 2.26}

BURSTS = "zipf:theta=0.8,range=400M,write=0.5,size=8k,on_rate=8k/s,on_length=250,duty=0.05"
CLOSED = "zipf:theta=1.2,range=400M,write=0.9,size=16k"
PACED = "hotcold:hot_access=0.9,hot_space=0.1,write=0.6,size=4k,rate=1k/s"
DEPTH = "zipf:theta=0.95,range=400M,write=0.7,size=4k"
#: Group of cells in which every policy may have at most 8 write-backs in flight. It has a table of its own.
LIMITED = "8 write-backs in flight"
#: Titles of traces, with the names of their files in the folder of `--traces`.
TRACES = {
    "cloudphysics": "cloudphysics_vscsi_113k.csv.zst",
    "financial1": "spc_financial1_50k_4k.csv.zst",
    "hm_0": "msr_hm_0_window_rw20_80.csv.zst",
    "iozone": "disksim_ssd_iozone_100k.csv.zst",
    "nexus5": "nexus5_installing.csv.zst",
}
#: Settings of each device. With few blocks, even a short run reaches collections.
PARTS: dict[str, dict[str, Any]] = {
    "demo": {"geometry.blocks_per_plane": 96},
    "gcar": {"geometry.blocks_per_plane": 64},
    "cosmos": {"geometry.blocks_per_plane": 64, "gc.low_percent": 4},
    "fit-7450-max": {"geometry.blocks_per_plane": 128, "ftl.separation": "none"},
    "fit-p5520": {"geometry.blocks_per_plane": 64, "ftl.separation": "none"},
    "fit-pe8110": {"geometry.blocks_per_plane": 128, "ftl.separation": "none"},
    "sata-dc": {"geometry.blocks_per_plane": 64},
    "tlc-client": {"geometry.blocks_per_plane": 64},
}


@dataclass(frozen=True)
class Matrix:
    """Cells that differ in load and policy.

    Attributes:
        group: column of the tables for which these cells are averaged.
        name: directory of the sweep.
        device: device of all cells.
        loads: loads by title.
        run: section `run` of the experiment.
        keys: further settings of the device, in addition to those of `PARTS`.
    """

    group: str
    name: str
    device: str
    loads: dict[str, str]
    run: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)

    def experiment(self, policies: list[str], seeds: int) -> dict[str, Any]:
        """Return the experiment of the sweep."""
        part = PARTS.get(self.device, {})
        run: dict[str, Any] = {
            "precondition": "steady",
            "beyond": "wrap",
            "warmup_requests": 20_000,
            "requests_max": 60_000,
        }
        return {
            "devices": [self.device],
            "policies": policies,
            "workloads": list(self.loads.values()),
            "seeds": list(range(1, seeds + 1)),
            "set": {**part, **self.keys},
            "run": {**run, **self.run},
        }


def matrices(traces: Path | None) -> Iterator[Matrix]:
    """Yield all matrices."""
    closed: dict[str, Any] = {"queue_depth": 32}
    for device in PARTS:
        group = "static placement" if device in ("demo", "gcar") else "dynamic placement"
        yield Matrix(group, f"open-{device}", device, {"bursts": BURSTS, "paced": PACED})
        yield Matrix(group, f"closed-{device}", device, {"closed loop": CLOSED}, closed)
        databases = {"mariadb": "example:mariadb_oltp", "pgbench": "example:postgres_pgbench"}
        yield Matrix("databases", f"databases-{device}", device, databases, {"queue_depth": 8})
    for device in ("demo", "cosmos", "fit-p5520", "sata-dc"):
        filled = {"precondition": "sequential"}
        group = "filled in order"
        yield Matrix(group, f"filled-open-{device}", device, {"bursts": BURSTS, "paced": PACED}, filled)
        yield Matrix(group, f"filled-closed-{device}", device, {"closed loop": CLOSED}, filled | closed)
    for device in ("demo", "fit-7450-max"):
        for reserve in (9, 22):
            name, kept = f"reserve-{reserve}-{device}", {"geometry.reserve_percent": reserve}
            yield Matrix("reserve of 9 and 22 %", name, device, {"closed loop": CLOSED}, closed, kept)
    for device in ("demo", "sata-dc"):
        for size in ("1 MiB", "64 MiB", "256 MiB"):
            name, sized = f"buffer-{size.replace(' ', '')}-{device}", {"buffer.capacity": size}
            yield Matrix("buffers of 1 to 256 MiB", name, device, {"bursts": BURSTS}, {}, sized)
        for depth in (1, 64, 256):
            run = {"queue_depth": depth}
            yield Matrix("depth 1 to 256", f"depth-{depth}-{device}", device, {"zipf": DEPTH}, run)
    small: dict[str, Any] = {"member.geometry.blocks_per_plane": 24}
    for name, device, keys in (
        ("raid5", "raid5-array", small),
        ("raid5-ggc", "raid5-array", {**small, "array.coordination": "inclusive"}),
        ("raid0", "gcar-array", {"member.geometry.blocks_per_plane": 32, "buffer.capacity": "32 MiB"}),
    ):
        yield Matrix("arrays", f"array-{name}", device, {"bursts": BURSTS, "paced": PACED}, {}, keys)
    for device in ("demo", "gcar", "cosmos"):
        limited = {"buffer.evict": "background", "buffer.background_depth": 8}
        loads = {"bursts": BURSTS, "paced": PACED}
        yield Matrix(LIMITED, f"limited-open-{device}", device, loads, {}, limited)
        yield Matrix(LIMITED, f"limited-closed-{device}", device, {"closed loop": CLOSED}, closed, limited)
    if traces is not None:
        found = {title: str(traces / file) for title, file in TRACES.items() if (traces / file).exists()}
        for device in ("demo", "fit-p5520"):
            yield Matrix("traces", f"traces-{device}", device, found, {"warmup_requests": 4_000})


@dataclass
class Cell:
    """Results of one load on one device: for each policy, the rows of its seeds."""

    group: str
    title: str
    rows: dict[str, list[dict[str, Any]]]

    def logs(self, policy: str, other: str, figure: str) -> list[float]:
        """Return, for each seed, the logarithm of the ratio of the figure of `policy` to that of `other`."""
        pairs = zip(self.rows[policy], self.rows[other], strict=True)
        values = [(mine[figure], theirs[figure]) for mine, theirs in pairs]
        return [math.log(mine / theirs) for mine, theirs in values if mine and theirs]


def cells(matrix: Matrix, directory: Path, policies: list[str], seeds: int) -> Iterator[Cell]:
    """Run a matrix; yield its cells."""
    found = flashtwin.sweep(matrix.experiment(policies, seeds), directory / matrix.name)
    columns = ["policy", "workload", "seed", "error", *FIGURES]
    rows = found.table.select(columns).to_pylist()
    for title, load in matrix.loads.items():
        own = [row for row in rows if row["workload"] == load or row["workload"] == Path(load).name]
        wrong = {row["error"] for row in own if row["error"]}
        if wrong or not own:
            print(f"{matrix.name}, {title}: left out: {', '.join(wrong) or 'no rows'}")
            continue
        of_policy = {
            policy: sorted((r for r in own if r["policy"] == policy), key=lambda r: int(r["seed"]))
            for policy in policies
        }
        yield Cell(matrix.group, f"{matrix.name}, {title}", of_policy)


def interval(logs: list[float]) -> tuple[float, float]:
    """Return the mean of the logarithms, and half the width of its 95 % confidence interval."""
    mean = fmean(logs)
    if len(logs) < 2:
        return mean, 0.0
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    return mean, STUDENT.get(len(logs), 2.26) * deviation / math.sqrt(len(logs))


def percent(log: float) -> str:
    """Format a ratio, given by its logarithm, as a change in percent."""
    return f"{100 * math.expm1(log):+.1f} %"


def verdict(logs: list[float]) -> str:
    """Return win or loss if the interval of the ratio excludes 1 and the change exceeds 0.5 %, else tie."""
    if not logs:
        return "tie"
    mean, half = interval(logs)
    if mean + half < 0 and mean < -0.005:
        return "win"
    return "loss" if mean - half > 0 and mean > 0.005 else "tie"


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def report(all_cells: list[Cell], policies: list[str]) -> None:
    """Print all tables."""
    limited = [cell for cell in all_cells if cell.group == LIMITED]
    all_cells = [cell for cell in all_cells if cell.group != LIMITED]
    print(f"{len(all_cells)} cells\n")
    others = [policy for policy in policies if policy != "coop"]

    def counted(other: str, figure: str) -> str:
        verdicts = [verdict(cell.logs("coop", other, figure)) for cell in all_cells]
        return " / ".join(str(verdicts.count(word)) for word in ("win", "tie", "loss"))

    print("Wins / ties / losses of COOP:\n")
    table(["against", *FIGURES.values()], [[o, *(counted(o, f) for f in FIGURES)] for o in others])

    def change(cells: list[Cell], policy: str, figure: str) -> str:
        logs = [fmean(logs) for cell in cells if (logs := cell.logs(policy, "lru", figure))]
        return percent(fmean(logs)) if logs else "-"

    groups = list(dict.fromkeys(cell.group for cell in all_cells))

    def of_group(name: str) -> list[Cell]:
        return [cell for cell in all_cells if cell.group == name]

    for figure, title in FIGURES.items():
        print(f"Change of {title} relative to LRU, mean over the cells of a group:\n")
        rows = [
            [p, *(change(of_group(g), p, figure) for g in groups), change(all_cells, p, figure)]
            for p in policies
            if p != "lru"
        ]
        table(["policy", *groups, "all"], rows)

    print("Cells in which the mean response time under COOP is more than 2 % longer than under LRU:\n")
    worse = []
    for cell in all_cells:
        mean, half = interval(cell.logs("coop", "lru", "all_mean_us"))
        if mean > math.log(1.02):
            best = min(policies, key=lambda p: fmean(cell.logs(p, "lru", "all_mean_us")))
            worse.append(
                [cell.title, f"{percent(mean)} ({percent(mean - half)} to {percent(mean + half)})", best]
            )
    table(["cell", "change of the mean", "best policy"], worse)

    print("Change of the mean relative to LRU by cell:\n")
    by_cell(all_cells, policies)
    print(f"The same with at most {LIMITED} under each policy:\n")
    by_cell(limited, policies)


def by_cell(cells: list[Cell], policies: list[str]) -> None:
    """Print the change of the mean response time relative to LRU, for each cell and policy."""
    rows = [
        [c.title, *(percent(fmean(c.logs(p, "lru", "all_mean_us"))) for p in policies if p != "lru")]
        for c in cells
    ]
    table(["cell", *(p for p in policies if p != "lru")], rows)


def main() -> None:
    """Run the matrices and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="directory of the sweeps"
    )
    parser.add_argument("--traces", type=Path, metavar="DIR", help="folder of the traces")
    parser.add_argument("--quick", action="store_true", help="two seeds of LRU: checks that all cells run")
    arguments = parser.parse_args()
    policies, seeds = (["lru"], 2) if arguments.quick else (POLICIES, 10)
    arguments.output.mkdir(parents=True, exist_ok=True)
    all_cells: list[Cell] = []
    for matrix in matrices(arguments.traces):
        all_cells += cells(matrix, arguments.output, policies, seeds)
    if arguments.quick:
        for cell in all_cells:
            print(cell.title, *(f"{row['all_mean_us']:.1f} us" for row in cell.rows["lru"]))
        return
    report(all_cells, policies)


if __name__ == "__main__":
    main()
