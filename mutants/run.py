"""Mutation testing of the model crate: `python mutants/run.py --shard 1/14`.

`cargo mutants --list` names the mutants. All those of a shard are built together: a copy of the crate outside
of the checkout asks at each mutated place whether the mutant of that place is the one in the variable MUTANT,
so one build serves them all (`schemata.py`). Each test runs once without a mutant to find which mutants it
reaches and how much processor time it takes; then each mutant runs the tests that reach it, the shortest
first, until one fails. Mutants are judged in random order and results appended to out/mutants/journal.jsonl,
so an interrupted run has judged a random sample and continues there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from schemata import Mutant, Schemata

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "mutants"
CRATES = ("flashtwin", "flashtwin-sim")
#: Processor time of tests that are left out.
LONG_S = 60.0
#: A test that takes so many times the processor time it takes without a mutant has found one that does not
#: end. Processor time, since other work on the machine must not decide.
PATIENCE = 10.0
#: A test that sleeps for so long has found a mutant that waits for ever.
WALL_S = 300.0
MEMORY_MAX = 6 << 30
#: What the copy of the crate has in addition.
SWITCH = """//! Which mutant runs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const UNKNOWN: usize = usize::MAX;
const TRACED: usize = usize::MAX - 1;
const COUNT: usize = COUNT_OF_MUTANTS;
static MUTANT: AtomicUsize = AtomicUsize::new(UNKNOWN);
static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

#[inline]
pub fn is(number: usize) -> bool {
    match MUTANT.load(Relaxed) {
        TRACED if SEEN[number].load(Relaxed) => false,
        TRACED | UNKNOWN => look(number),
        mutant => mutant == number,
    }
}

#[cold]
fn look(number: usize) -> bool {
    let trace = std::env::var("MUTANT_TRACE");
    let mutant = std::env::var("MUTANT").map_or(COUNT, |text| text.parse().unwrap());
    MUTANT.store(if trace.is_ok() { TRACED } else { mutant }, Relaxed);
    if let Ok(path) = trace {
        if !SEEN[number].swap(true, Relaxed) {
            let file = std::fs::File::options().append(true).create(true).open(path);
            writeln!(file.unwrap(), "{number}").unwrap();
        }
        return false;
    }
    mutant == number
}
"""


class Test(NamedTuple):
    """A test and the directory where Cargo would run it."""

    binary: str
    directory: str
    name: str

    def run(self, variables: dict[str, str], limit_s: float) -> bool | None:
        """Whether it passes; `None` if it takes more processor time than the limit."""
        cpu_s = math.ceil(limit_s)

        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        try:
            done = subprocess.run(
                [self.binary, "--exact", self.name, "--test-threads=1", "-q"],
                cwd=self.directory,
                env=os.environ | variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=WALL_S,
                preexec_fn=bound,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return None
        return done.returncode == 0


def used_s() -> float:
    """Processor time of all tests so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def chosen(shard: str, seed: int) -> list[Mutant]:
    """The mutants of a shard, which is a random sample of all."""
    listed = OUT / "list.json"
    if not listed.exists():
        listed.parent.mkdir(parents=True, exist_ok=True)
        command = ["cargo", "mutants", "--list", "--json", "-p", "flashtwin"]
        text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        listed.write_text(text)
    mutants = [Mutant.of(entry) for entry in json.loads(listed.read_text())]
    random.Random(seed).shuffle(mutants)
    number, of = (int(part) for part in shard.split("/"))
    return mutants[number - 1 :: of]


def copy(work: Path) -> None:
    """Copy what git does not ignore; what is there already keeps its time."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in tracked.stdout.split("\0"):
        source, target = ROOT / name, work / name
        if source.is_symlink() and not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source.readlink())
        elif source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def cargo(work: Path, *command: str) -> list[dict]:
    """The messages of a build."""
    packages = [word for crate in CRATES for word in ("-p", crate)]
    done = subprocess.run(
        ["cargo", *command, *packages, "--lib", "--tests", "--locked", "--message-format=json"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def build(work: Path, mutants: list[Mutant]) -> tuple[Schemata, list[dict]]:
    """Build all mutants but those that do not compile, which are left out step by step."""
    crate = work / "crates" / "flashtwin" / "src"
    library = (ROOT / "crates/flashtwin/src/lib.rs").read_text()
    (crate / "lib.rs").write_text(library + "\n#[doc(hidden)]\npub mod mutant;\n")
    (crate / "mutant.rs").write_text(SWITCH.replace("COUNT_OF_MUTANTS", str(len(mutants))))
    schemata = Schemata(ROOT, mutants)
    for command in (("check",), ("test", "--no-run")):
        while True:
            schemata.write(work)
            messages = cargo(work, *command)
            errors = [m["message"] for m in messages if m["reason"] == "compiler-message"]
            errors = [error for error in errors if error["level"] == "error" and error["spans"]]
            if not errors:
                break
            unviable = schemata.leave_out(errors)
            print(f"{len(errors)} errors: {unviable} mutants left out", flush=True)
            if not unviable:
                sys.exit("\n".join(error["rendered"] for error in errors))
    return schemata, messages


def tests_of(messages: list[dict], work: Path) -> list[Test]:
    """Every test of the programs that were built."""
    found = []
    for message in messages:
        program = message.get("executable")
        if message["reason"] != "compiler-artifact" or not program:
            continue
        directory = str(Path(message["manifest_path"]).parent)
        listing = subprocess.run(
            [program, "--list", "--format", "terse"], cwd=work, capture_output=True, text=True, check=True
        ).stdout
        names = (line.removesuffix(": test") for line in listing.splitlines() if line.endswith(": test"))
        ignored = subprocess.run(
            [program, "--list", "--format", "terse", "--ignored"],
            cwd=work,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found += [Test(program, directory, name) for name in names if f"{name}: test" not in ignored]
    return found


def reached(tests: list[Test]) -> tuple[dict[Test, float], dict[int, list[Test]]]:
    """How long each test takes without a mutant, and the tests that reach each mutant, the shortest first."""
    seconds: dict[Test, float] = {}
    reaching: dict[int, list[Test]] = {}
    trace = OUT / "trace"
    for test in tests:
        trace.unlink(missing_ok=True)
        start = used_s()
        if not test.run({"MUTANT_TRACE": str(trace)}, LONG_S):
            print(f"left out, since it fails or is long: {test.name}", flush=True)
            continue
        seconds[test] = used_s() - start
        if trace.exists():
            for number in set(trace.read_text().split()):
                reaching.setdefault(int(number), []).append(test)
    for of_mutant in reaching.values():
        of_mutant.sort(key=seconds.__getitem__)
    return seconds, reaching


def judge(number: int, tests: list[Test], seconds: dict[Test, float], limit_s: float) -> tuple[str, str]:
    """Whether a test finds a mutant, and which."""
    end = used_s() + limit_s
    for test in tests:
        if used_s() > end:
            return "missed", f"stopped after {limit_s:.0f} s"
        passed = test.run({"MUTANT": str(number)}, 2 + PATIENCE * seconds[test])
        if passed is None:
            return "caught", f"{test.name} (does not end)"
        if not passed:
            return "caught", test.name
    return "missed", "" if tests else "no test reaches it"


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share, in percent."""
    z, share = 1.96, hits / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return tuple(100 * (middle + sign * half) / (1 + z * z / of) for sign in (-1, 1))


def report(journal: Path) -> None:
    """Print the counts and the mutants that no test found."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    names = ("unviable", "untried", "caught", "missed")
    count = {name: sum(line["outcome"] == name for line in lines) for name in names}
    viable = count["caught"] + count["missed"]
    for line in lines:
        if line["outcome"] == "missed":
            print(f"missed: {line['mutant']} ({line['by'] or 'reached'})")
    if viable:
        low, high = interval(count["caught"], viable)
        print(f"{len(lines)} mutants: {', '.join(f'{n} {name}' for name, n in count.items())}")
        print(
            f"caught of {viable} viable: {100 * count['caught'] / viable:.1f} % ({low:.1f} to {high:.1f} %)"
        )


def main() -> None:
    """Run a shard, or what is left of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shard", default="1/14", help="K/N: every Nth of the shuffled mutants (default 1/14)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the shuffling (default 1)")
    parser.add_argument(
        "--limit", type=float, default=120, help="processor time of the tests of a mutant, s (default 120)"
    )
    parser.add_argument("--work", type=Path, default=Path("/tmp/flashtwin-mutants"), help="where the copy is")
    parser.add_argument("--report", action="store_true", help="print the results so far")
    args = parser.parse_args()
    journal = OUT / "journal.jsonl"
    if args.report:
        report(journal)
        return
    mutants = chosen(args.shard, args.seed)
    copy(args.work)
    schemata, messages = build(args.work, mutants)
    seconds, reaching = reached(tests_of(messages, args.work))
    print(f"{len(seconds)} tests, {sum(seconds.values()):.0f} s", flush=True)
    done = set()
    if journal.exists():
        done = {json.loads(line)["mutant"] for line in journal.read_text().splitlines()}
    for number, mutant in enumerate(mutants):
        if mutant.name in done:
            continue
        outcome, by = "untried" if number in schemata.untried else "unviable", ""
        start = used_s()
        if number in schemata.viable:
            outcome, by = judge(number, reaching.get(number, []), seconds, args.limit)
        spent = round(used_s() - start, 2)
        line = {"mutant": mutant.name, "outcome": outcome, "by": by, "seconds": spent}
        with journal.open("a") as file:
            print(json.dumps(line), file=file)
    report(journal)


if __name__ == "__main__":
    main()
