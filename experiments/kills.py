"""Sends SIGKILL at random instants: to a server, the command that started it, clients, and other commands.

    python experiments/kills.py [KILLS] [SEED]

Clients write numbered pages (tests/python/power.py) to a store in a file. A process is killed at a random
instant, and a server is started again on the same store. Every page must then have its last acknowledged
contents; an unacknowledged write may be present or not.

Commands that write files are killed in the same way. A file must be either complete or missing under its
final name, and repeating the command must write the same bytes. At the end, no folder contains a temporary
file of flashtwin, and files of other programs with similar names are unchanged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))
from power import Checker

SMALL = ["geometry.blocks_per_plane=64", "geometry.chips=4", "geometry.reserve_percent=20"]
DEVICE = ["--device", "demo", *(word for key in SMALL for word in ("--set", key))]
#: Files of other programs, with names similar to those that flashtwin writes.
OTHERS = ("thesis.2024.partial", "disk.img.99999.partial", "disk.img.partial", "new.state.1.partial")
START_S = 60
CLIENT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from raw_nbd import READ, Client
client = Client(sys.argv[2])
for i in range(256):
    client.ask(READ, i * 4096, 65536)
time.sleep(60)
"""


class Served:
    """A server on a store, as a command."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.path = folder / "nbd.sock"
        words = ["serve", *DEVICE, "--store", str(folder / "disk.img"), "--socket", str(self.path), "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flashtwin.cli", *words, "--precondition", "none"],
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def is_gone(self) -> bool:
        """Whether the server process has ended."""
        try:
            return "Z" in Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True

    def end(self, how: int) -> None:
        """Send the command a signal, and wait for the end of the command and its server."""
        self.process.send_signal(how)
        self.process.communicate(timeout=START_S)
        deadline = time.monotonic() + START_S
        while not self.is_gone():
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.01)


def serving(kills: int, rng: random.Random, folder: Path, temporary: Path) -> Counter[str]:
    """Kill servers, their commands and clients under load, and check every page afterwards."""
    counts: Counter[str] = Counter()
    served = Served(folder, temporary)
    check = Checker(None, served.path, may_lose=False)
    for _ in range(kills):
        victim = rng.choice(("server", "command", "both", "client"))
        counts[victim] += 1
        if victim == "client":
            words = [sys.executable, "-c", CLIENT, sys.path[0], str(served.path)]
            with subprocess.Popen(words, stderr=subprocess.DEVNULL) as client:
                time.sleep(rng.uniform(0.0, 0.4))
                client.kill()
            check.look()
            continue
        threads = check.begin()
        time.sleep(rng.uniform(0.0, 0.3))
        if victim in ("server", "both"):
            os.kill(served.pid, signal.SIGKILL)
        served.end(signal.SIGKILL if victim != "server" else signal.SIGTERM)
        check.join(threads)
        served = Served(folder, temporary)
        check.look()
    served.end(signal.SIGTERM)
    counts["writes answered"] = check.answered
    return counts


def writing(kills: int, rng: random.Random, folder: Path, temporary: Path) -> Counter[str]:
    """Kill commands that write files.

    After each kill, check the file that the command left, if any. Then repeat the command and check its file.
    """
    counts: Counter[str] = Counter()
    load = ["--workload", "zipf:requests=30000,write=0.7"]
    commands = {
        "new.csv.zst": ["trace", "convert", str(folder / "load.csv"), "new.csv.zst"],
        "new.state": ["snapshot", "save", "new.state", *DEVICE, "--precondition", "random:1"],
        "new.html": ["run", *load, *DEVICE, "--record", "new.html"],
    }
    trace = "\n".join(f"{100 * i},W,{i * 37 % 5000 * 4096},4096" for i in range(200_000))
    (folder / "load.csv").write_text(f"time_us,op,offset_bytes,size_bytes\n{trace}\n")

    def start(words: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "flashtwin.cli", *words],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    whole: dict[str, bytes] = {}
    seconds: dict[str, float] = {}
    for name, words in commands.items():
        began = time.monotonic()
        _, said = (process := start(words)).communicate(timeout=START_S)
        assert process.returncode == 0, said.decode()
        whole[name], seconds[name] = (folder / name).read_bytes(), time.monotonic() - began
        (folder / name).unlink()
    for _ in range(kills):
        name = rng.choice(list(commands))
        counts[" ".join(commands[name][:2])] += 1
        with start(commands[name]) as process:
            time.sleep(rng.uniform(0, 1.1 * seconds[name]))
            process.kill()
        if (folder / name).exists():
            assert (folder / name).read_bytes() == whole[name], f"{name} is not whole"
        _, said = (again := start(commands[name])).communicate(timeout=START_S)
        assert again.returncode == 0, said.decode()
        assert (folder / name).read_bytes() == whole[name], f"{name} differs"
        (folder / name).unlink()
    (folder / "load.csv").unlink()
    return counts


def main() -> None:
    """Kill processes: in half of the cases processes of a served device, otherwise other commands."""
    kills, seed = (int(word) for word in (*sys.argv[1:], *(("300", "1")[len(sys.argv) - 1 :])))
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder, temporary = Path(place) / "files", Path(place) / "tmp"
        for made in (folder, temporary):
            made.mkdir()
        for name in OTHERS:
            (folder / name).write_text("precious")
        counts = serving(kills // 2, rng, folder, temporary)
        for name in ("disk.img", "disk.img.state"):
            (folder / name).unlink()
        counts += writing(kills - kills // 2, rng, folder, temporary)
        left = sorted(path.name for path in (*folder.iterdir(), *temporary.iterdir()))
        assert left == sorted(OTHERS), left
        assert all((folder / name).read_text() == "precious" for name in OTHERS)
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    print(f"{kills} kills: nothing lost, no file left, no file of others touched")


if __name__ == "__main__":
    main()
