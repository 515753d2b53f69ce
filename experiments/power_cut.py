"""Power losses at random moments, checked by numbered pages and by PostgreSQL.

    python experiments/power_cut.py checker [LOSSES]
    python experiments/power_cut.py policies [LOSSES]
    sudo python experiments/power_cut.py postgresql [LOSSES]

The checker writes numbered pages with flushes and forced writes (tests/python/power.py). The devices have a
volatile buffer under one of several policies, a protected buffer, or no buffer.

With `policies`, the policy of a volatile buffer is replaced under the same load before each power loss.

PostgreSQL runs on ext4 on a loop device on nbdfuse. Drive and host lose power while eight pgbench clients
run, and while other clients record each acknowledged commit. All layers between drive and database are then
removed and set up again, and recover by themselves. After that, all acknowledged commits must be present, and
the tables must agree. Needs nbdkit, nbdfuse, e2fsprogs and PostgreSQL. The loop device and the mount need
root.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import flashtwin

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))
from power import Checker

#: Devices of the checker.
DEVICES: dict[str, dict[str, object]] = {
    "volatile, lru": {"set": {"buffer.power_loss_protection": "false"}},
    "volatile, gcar-lru, 512 KiB": {
        "set": {"buffer.power_loss_protection": "false", "buffer.capacity": "512KiB"},
        "policy": "gcar-lru",
    },
    "volatile, bplru, 512 KiB": {
        "set": {"buffer.power_loss_protection": "false", "buffer.capacity": "512KiB"},
        "policy": "bplru",
    },
    "no buffer": {"set": {"buffer": "none"}},
    "protected": {"set": {"buffer.power_loss_protection": "true"}},
}
SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
#: Settings for PostgreSQL: the drive, its size, and the number of clients that record commits.
DRIVE, SIZE, NOTING = "demo", "1536M", 4
VOLATILE = {"buffer.power_loss_protection": "false", "buffer.capacity": "32MiB"}
WAIT_S = 60


def checker(cuts: int) -> bool:
    """Simulate `cuts` power losses on the devices in turn. A lost page raises an AssertionError."""
    each = -(-cuts // len(DEVICES))
    for name, options in DEVICES.items():
        settings = {**SMALL, **options["set"]}
        given = {**options, "set": settings, "precondition": "sequential"}
        with flashtwin.serve("demo", **given) as server:
            may_lose = name.startswith("volatile")
            check = Checker(server, unquote(server.uri.partition("?socket=")[2]), may_lose=may_lose)
            for _ in range(each):
                check.cut(longest_s=0.2)
        print(
            f"{name:<30} {each:4} losses {check.answered:8} writes completed  {check.unfinished:5} aborted"
            f"  {check.lost:7} pages lost, all of them allowed",
            flush=True,
        )
        if name == "protected":
            assert check.lost == 0, "a protected buffer has lost something"
    return True


def policies(cuts: int) -> bool:
    """Replace the policy under load before each power loss. A lost page raises an AssertionError."""
    rng = random.Random(1)
    # Policies that need separate blocks for hot pages are excluded.
    names = [name for name in flashtwin.policies() if not name.startswith("cda-gc")]
    settings = {**SMALL, "buffer.power_loss_protection": "false", "buffer.capacity": "512KiB"}
    with flashtwin.serve("demo", set=settings, precondition="sequential") as server:
        check = Checker(server, unquote(server.uri.partition("?socket=")[2]))
        for _ in range(cuts):
            check.cut(longest_s=0.1, meanwhile=lambda: server.set_policy(rng.choice(names)))
    done = f"{check.answered} writes completed  {check.unfinished} aborted  {check.lost} pages lost"
    print(
        f"{cuts} changes between {len(names)} policies, each before a power loss  {done}, all of them allowed"
    )
    return True


def run(*words: object, quietly: bool = False) -> str:
    """Run a command to its end and return its output."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode and not quietly:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


class Database:
    """PostgreSQL on a served device, with all layers between them."""

    def __init__(self, server: flashtwin.Server, place: Path) -> None:
        self.server, self.place = server, place
        self.fuse, self.mount, self.sockets = place / "fuse", place / "mnt", place / "run"
        for directory in (self.fuse, self.mount, self.sockets):
            directory.mkdir()
        shutil.chown(self.sockets, "postgres")
        place.chmod(0o755)
        self.bin = Path(run("pg_config", "--bindir"))
        self.port = "54399"
        self.data = self.mount / "data"
        self.loop = ""
        self.nbdfuse: subprocess.Popen[bytes] | None = None
        self.postgres: subprocess.Popen[bytes] | None = None
        self.postmaster = ""

    def attach(self, *, new: bool = False) -> None:
        """Set up device and file system."""
        disk = self.fuse / "disk"
        # After the power loss, nbdfuse reports an error for every request. These messages are not shown.
        self.nbdfuse = subprocess.Popen(["nbdfuse", str(disk), self.server.uri], stderr=subprocess.DEVNULL)
        until(disk.exists)
        self.loop = run("losetup", "--find", "--show", disk)
        if new:
            run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", self.loop)
        run("mount", self.loop, self.mount)
        if new:
            self.data.mkdir()
            shutil.chown(self.data, "postgres")

    def detach(self) -> None:
        """Tear down device and file system without unmounting cleanly."""
        run("umount", "-l", self.mount, quietly=True)
        run("losetup", "--detach", self.loop, quietly=True)
        assert self.nbdfuse is not None
        self.nbdfuse.kill()
        self.nbdfuse.wait()
        run("fusermount3", "-u", "-z", self.fuse, quietly=True)
        run("umount", "-l", self.fuse, quietly=True)

    def words(self, tool: str, *more: object) -> list[str]:
        """Return the command line that runs a PostgreSQL tool as the user `postgres`."""
        return ["runuser", "-u", "postgres", "--", str(self.bin / tool), *map(str, more)]

    def client(self, tool: str, *more: object) -> list[str]:
        """Return the command line of a PostgreSQL client."""
        return self.words(tool, "-h", self.sockets, "-p", self.port, *more)

    def start(self) -> None:
        """Start the database, and wait until it has recovered."""
        options = ["-k", str(self.sockets), "-p", self.port, "-c", "listen_addresses="]
        options += ["-c", "synchronous_commit=on", "-c", "fsync=on", "-c", "shared_buffers=32MB"]
        with (self.place / "postgres.log").open("ab") as log:
            self.postgres = subprocess.Popen(
                self.words("postgres", "-D", self.data, *options), stdout=log, stderr=log
            )
        until(lambda: bool(self.ask("select 1", quietly=True)))
        self.postmaster = (self.data / "postmaster.pid").read_text().split()[0]

    def ask(self, query: str, *, quietly: bool = False) -> str:
        """Run a query and return its output."""
        return run(*self.client("psql", "-XtAqc", query, "postgres"), quietly=quietly)

    def kill(self) -> None:
        """Kill all processes of the database at the same time, as a power loss of the host does."""
        assert self.postgres is not None
        pids = [self.postmaster, *run("pgrep", "-P", self.postmaster, quietly=True).split()]
        for pid in pids:
            run("kill", "-KILL", pid, quietly=True)
        self.postgres.wait(WAIT_S)
        # A process that waits for the drive can end only after the kernel reports that the drive is gone.
        until(lambda: not any(alive(pid) for pid in pids))


def alive(pid: str) -> bool:
    """Return whether a process is running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(what: object) -> None:
    """Wait until a condition holds."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > WAIT_S:
            raise RuntimeError("waited too long")
        time.sleep(0.05)


class Notes:
    """A client that records the commits that the server acknowledged."""

    def __init__(self, database: Database, number: int, first: int) -> None:
        self.number, self.first, self.committed, self.asked = number, first, first - 1, first - 1
        self.psql = subprocess.Popen(
            database.client("psql", "-XtAq", "postgres"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.thread = threading.Thread(target=self._go)
        self.thread.start()

    def _go(self) -> None:
        assert self.psql.stdin is not None
        assert self.psql.stdout is not None
        try:
            while True:
                self.asked += 1
                self.psql.stdin.write(
                    f"insert into noted values ({self.number}, {self.asked}) returning n;\n"
                )
                self.psql.stdin.flush()
                if self.psql.stdout.readline().strip() != str(self.asked):
                    return
                self.committed = self.asked
        except OSError:
            return

    def end(self) -> None:
        """Wait for the end of the client, after its server has ended."""
        self.psql.kill()
        self.psql.wait()
        self.thread.join(WAIT_S)


def postgresql(cuts: int) -> bool:
    """Simulate `cuts` power losses of drive and host."""
    rng = random.Random(7)
    place = Path(tempfile.mkdtemp(prefix="flashtwin-power-"))
    counts: Counter[str] = Counter()
    with flashtwin.serve(DRIVE, size=SIZE, set=VOLATILE) as server:
        database = Database(server, place)
        try:
            database.attach(new=True)
            run(*database.words("initdb", "-D", database.data, "-A", "trust"))
            database.start()
            run(*database.client("pgbench", "-i", "-q", "-s", "3", "postgres"))
            database.ask("create table noted (client int, n bigint, primary key (client, n))")
            database.ask("checkpoint")
            for cut in range(1, cuts + 1):
                one(database, rng, counts)
                if cut % 10 == 0 or cut == cuts:
                    said = ", ".join(f"{count} {what}" for what, count in counts.items())
                    print(f"{cut} cuts: {said}", flush=True)
        finally:
            database.kill()
            database.detach()
    shutil.rmtree(place, ignore_errors=True)
    return True


def one(database: Database, rng: random.Random, counts: Counter[str]) -> None:
    """Simulate one power loss, and check the database."""
    first = 1 + int(database.ask("select coalesce(max(n), 0) from noted"))
    load = subprocess.Popen(
        database.client("pgbench", "-n", "-c", "8", "-j", "2", "-T", "600", "postgres"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    noting = [Notes(database, number, first) for number in range(NOTING)]
    time.sleep(rng.uniform(0.3, 2.5))
    cut = database.server.power_cut()
    database.kill()
    for notes in noting:
        notes.end()
    load.kill()
    load.wait()
    database.detach()
    database.attach()
    database.start()
    for notes in noting:
        there = database.ask(
            f"select count(*), coalesce(max(n), 0) from noted where client = {notes.number} and n >= {first}"
        )
        count, last = map(int, there.split("|"))
        last = max(last, first - 1)
        assert count == last - first + 1, f"client {notes.number}: a gap before {last}"
        assert notes.committed <= last <= notes.asked, (
            f"client {notes.number}: told {notes.committed}, found {last}"
        )
        counts["commits noted, all there"] += notes.committed - first + 1
        counts["commits found of which nobody had been told"] += last - notes.committed
    sums = database.ask(
        "select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches), "
        "(select sum(tbalance) from pgbench_tellers), (select coalesce(sum(delta), 0) from pgbench_history)"
    )
    assert len(set(sums.split("|"))) == 1, f"the tables disagree: {sums}"
    counts["pages lost"] += len(cut.lost)
    counts["requests aborted"] += cut.unfinished


def main() -> None:
    """Run the part that the command line names."""
    kinds = {"checker": checker, "policies": policies, "postgresql": postgresql}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in kinds:
        sys.exit((__doc__ or "").strip())
    if sys.argv[1] == "postgresql" and os.geteuid() != 0:
        sys.exit("loop device and mount need root")
    kinds[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 200)


if __name__ == "__main__":
    main()
