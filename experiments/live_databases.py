"""PostgreSQL and MariaDB on the Cosmos+ board under four policies: transactions, latency, erases, moves.

    sudo env "PATH=$PATH" python experiments/live_databases.py [SECONDS]

Runs `examples/live/postgres.sh` and `mariadb.sh` (see the requirements there), each on one database that is
created once. Every run begins with a copy of this database and with the same flash, which is full and in its
steady state. Placement is dynamic (a round robin of dies, as on the board) or static (a fixed die per page).
Prints the tables of docs/live-claims.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples" / "live"
PLACEMENTS = ("dynamic", "static")
POLICIES = ("lru", "gcar-lru", "ecr", "cda-gc")
SIZE = "8G"
#: The buffer is protected against power loss, so that flushes do not empty it (D-141). As in the firmware of
#: the board, a die collects at one free block. This is 2 % of the few blocks that a die has here.
DEVICE = ["--device", "cosmos", "--set", "buffer.power_loss_protection=true", "--set", "gc.low_percent=2"]
#: Patterns that find transactions per second, and p95 in ms, in the output of the clients.
SAID = {
    "postgres": (r"tps = ([\d.]+)", r"p95 = ([\d.]+) ms"),
    "mariadb": (r"transactions: +\d+ +\(([\d.]+) per sec", r"p95 = ([\d.]+) ms"),
}
COLUMNS = ["policy", "tps", "p95 ms", "buffer hits", "erases", "pages moved"]
COLUMNS += ["erases / 1000 tr.", "moved / 1000 tr.", "WA", "late by p50 / p99 us"]


def run(database: str, store: Path, seconds: float, *options: str) -> str:
    """Run an example on a store and return its output."""
    command = [EXAMPLES / f"{database}.sh", "--size", SIZE, "--store", store, *options]
    environment = {**os.environ, "RUN_S": f"{seconds:g}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{database}.sh: {done.stderr}")
    return done.stdout


def row(said: str, database: str, policy: str, seconds: float) -> str:
    """Return a row of the table."""
    tps, p95_ms = (float(found[1]) if (found := re.search(p, said)) else 0.0 for p in SAID[database])
    report = json.loads(said[said.rindex('{"device"') :])
    flash, thousands = report["flash"], tps * seconds / 1000
    kinds = [report["responses"][kind] for kind in ("read", "write")]
    hits = sum(of["hits"] for of in kinds) / sum(of["pages"] for of in kinds) * 100
    cells = [
        policy,
        f"{tps:.1f}",
        f"{p95_ms:.0f}",
        f"{hits:.1f} %",
        f"{flash['erases']}",
        f"{flash['moved_pages']}",
        f"{flash['erases'] / thousands:.0f}",
        f"{flash['moved_pages'] / thousands:.0f}",
        f"{flash['gc_write_amplification']:.2f}",
        f"{report['lateness']['p50_us']:.0f} / {report['lateness']['p99_us']:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def study(database: str, place: Path, seconds: float) -> None:
    """Print the tables of one database."""
    made, copy = place / "made.img", place / "copy.img"
    # The database is created on the device that takes no time. Its flash is not kept.
    run(database, made, 0, "--device", "instant", "--precondition", "none")
    made.with_name("made.img.state").unlink()
    for placement in PLACEMENTS:
        print(f"\n**{database}, {placement} placement**\n")
        print("| " + " | ".join(COLUMNS) + " |")
        print("|" + "---|" * len(COLUMNS), flush=True)
        for policy in POLICIES:
            subprocess.run(["cp", "--sparse=always", made, copy], check=True)
            options = ["--set", f"ftl.placement={placement}", "--policy", policy, "--json"]
            said = run(database, copy, seconds, *DEVICE, *options)
            print(row(said, database, policy, seconds), flush=True)
            copy.with_name("copy.img.state").unlink()


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for database in SAID:
        with tempfile.TemporaryDirectory(prefix="flashtwin-") as place:
            study(database, Path(place), seconds)
