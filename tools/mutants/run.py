"""Mutation testing of the model crate: `python tools/mutants/run.py --shard 1/14`.

`cargo mutants --list` lists the mutants. All mutants of a shard are built together, in a copy of the crate
outside the checkout: at each mutated place, the code checks whether the variable MUTANT selects one of the
mutants there (`schemata.py`). Thus a single build contains all of them.

First, each test runs once without a mutant, to find which mutants it reaches and how much processor time it
takes. Then each mutant runs the tests that reach it, the shortest first, until one fails. If a mutant
survives, the Python tests that reach it run, too, one file at a time, with a module built from the same
sources. Mutants are judged in random order and results are appended to out/mutants/SHARD.jsonl. Therefore an
interrupted run has judged a random sample and can continue.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from schemata import Mutant, Schemata

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "mutants"
CRATES = ("flashtwin", "flashtwin-sim")
#: Crates that Python tests run. They are built together, so that all have the same dependencies. Without
#: pytest there are none.
MODULE_CRATES = ("flashtwin-nbdkit", "flashtwin-python") if importlib.util.find_spec("pytest") else ()
#: Processor time in seconds of a traced test. A test that takes longer is not used.
LONG_S = 60.0
#: Python tests that are not used. Some wait for the wall clock, so that other load could make them fail; the
#: others never run the model.
TIMED = re.compile(r"live|power_cut|starts|calibrate|fio|site|report|structure|sources|words")
#: Files with fast paths, beside which there is a general path. Half of a sample is from these files.
FAST_PATHS = re.compile(
    r"src/(device/(plain|port|cache/in_order)|array/(jobs/pair|raid/(short|direct)|member/(drive|ahead))"
    r"|nand/msr/(short|serve)|nand/modern/(ahead|collect)|ssd/short)\.rs"
)
#: If a test takes this multiple of its processor time without a mutant, the mutant is endless and counts as
#: detected. Processor time is used, because it does not depend on other load.
PATIENCE = 4.0
#: If a test takes this many seconds of wall-clock time, the mutant waits forever and counts as detected.
WALL_S = 1200.0
MEMORY_MAX = 6 << 30
#: Module that is added to the copy of the crate.
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
    """A test and the directory where it runs."""

    command: tuple[str, ...]
    directory: str
    name: str

    def run(self, variables: dict[str, str], limit_s: float) -> bool | None:
        """Return whether the test passes; `None` if it takes more processor time than the limit."""
        cpu_s = math.ceil(limit_s)

        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        try:
            done = subprocess.run(
                self.command,
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


def chosen(shard: str, seed: int, pattern: str | None) -> list[Mutant]:
    """Return the mutants of a shard, or those whose names match a pattern.

    A shard is a random sample of two strata of equal size: the files of fast paths, and all other files.
    """
    command = ["cargo", "mutants", "--list", "--json", "-p", "flashtwin"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    mutants = [Mutant.of(entry) for entry in json.loads(text)]
    random.Random(seed).shuffle(mutants)
    if pattern:
        return [mutant for mutant in mutants if re.search(pattern, mutant.name)]
    number, of = (int(part) for part in shard.split("/"))
    count = len(mutants) // of // 2
    strata = ([], [])
    for mutant in mutants:
        strata[bool(FAST_PATHS.search(mutant.name))].append(mutant)
    drawn = [stratum[(number - 1) * count : number * count] for stratum in strata]
    # The two strata alternate, so that at any time half of the judged mutants are from each of them.
    return [mutant for pair in zip_longest(*drawn) for mutant in pair if mutant is not None]


def put(file: Path, data: bytes) -> None:
    """Write a file only if its contents differ, so that Cargo does not rebuild unchanged files."""
    if not file.exists() or file.read_bytes() != data:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def copy(work: Path, but: set[str]) -> None:
    """Copy all files that git does not ignore, except files in `but` that the copy already has."""
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
        elif source.is_file() and not (name in but and target.exists()):
            put(target, source.read_bytes())
    # A source that has been renamed would otherwise exist twice.
    for file in work.glob("crates/**/*.rs"):
        if file.name != "mutant.rs" and not (ROOT / file.relative_to(work)).exists():
            file.unlink()


def cargo(work: Path, command: list[str], crates: tuple[str, ...]) -> list[dict]:
    """Run Cargo and return the messages of the build."""
    packages = [word for crate in crates for word in ("-p", crate)]
    done = subprocess.run(
        ["cargo", *command, *packages, "--locked", "--message-format=json"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def build(work: Path, mutants: list[Mutant], left_out: Path) -> tuple[Schemata, list[dict]]:
    """Build all mutants. Those that do not compile are removed step by step, and recorded."""
    schemata = Schemata(ROOT, mutants)
    if left_out.exists():
        names = set(left_out.read_text().splitlines())
        schemata.viable = {n for n in schemata.viable if mutants[n].name not in names}
    crate = "crates/flashtwin/src"
    copy(work, {f"{crate}/lib.rs", *schemata.sources})
    library = (ROOT / crate / "lib.rs").read_bytes()
    if f"{crate}/lib.rs" not in schemata.sources:
        put(work / crate / "lib.rs", library + b"\n#[doc(hidden)]\npub mod mutant;\n")
    put(work / crate / "mutant.rs", SWITCH.replace("COUNT_OF_MUTANTS", str(len(mutants))).encode())
    for command in (["check"], ["test", "--no-run"]):
        while True:
            schemata.write(work)
            messages = cargo(work, [*command, "--lib", "--tests"], CRATES + MODULE_CRATES)
            errors = [m["message"] for m in messages if m["reason"] == "compiler-message"]
            errors = [error for error in errors if error["level"] == "error" and error["spans"]]
            if not errors:
                break
            unviable = schemata.leave_out(errors)
            names = [mutants[n].name for n in range(len(mutants)) if n not in schemata.viable]
            left_out.write_text("\n".join(names))
            print(f"{len(errors)} errors: {unviable} mutants left out", flush=True)
            if not unviable:
                sys.exit("\n".join(error["rendered"] for error in errors))
    return schemata, messages


def rust_tests(messages: list[dict]) -> list[Test]:
    """Return all tests of the programs that were built."""
    found = []
    for message in messages:
        program = message.get("executable")
        if message["reason"] != "compiler-artifact" or not program:
            continue
        directory = Path(message["manifest_path"]).parent
        if directory.name not in CRATES:
            continue

        def names(*more: str, program: str = program) -> list[str]:
            command = [program, "--list", "--format", "terse", *more]
            listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            return [line.removesuffix(": test") for line in listing.splitlines() if line.endswith(": test")]

        ignored = set(names("--ignored"))
        options = ("--test-threads=1", "-q", "--exact")
        found += [
            Test((program, *options, name), str(directory), name) for name in names() if name not in ignored
        ]
    return found


def python_tests(work: Path) -> list[Test]:
    """Return the files of Python tests; none if pytest is not installed."""
    if not MODULE_CRATES:
        print("Python tests are left out, since pytest is not installed: make .venv/.dev", flush=True)
        return []
    libraries: dict[str, str] = {}
    for message in cargo(work, ["build"], MODULE_CRATES):
        if message["reason"] == "compiler-artifact":
            libraries |= {Path(file).name: file for file in message["filenames"]}
    package = work / "tested"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(work / "python", package)
    shutil.copy(libraries["lib_core.so"], package / "flashtwin" / "_core.abi3.so")
    shutil.copy(libraries["libflashtwin_nbdkit.so"], package / "flashtwin" / "flashtwin_nbdkit.so")
    os.environ["PYTHONPATH"] = str(package)
    files = sorted(work.glob("tests/python/test_*.py"))
    command = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    return [
        Test((*command, str(file)), str(work), f"tests/python/{file.name}")
        for file in files
        if not TIMED.search(file.stem)
    ]


def traced(test: Test) -> tuple[float | None, set[int]]:
    """Return a test's processor time without mutants, and the mutants that it reaches.

    The time is `None` if the test fails or takes too long.
    """
    trace = OUT / f"trace-{os.getpid()}"
    trace.unlink(missing_ok=True)
    start = used_s()
    passed = test.run({"MUTANT_TRACE": str(trace)}, LONG_S)
    spent = used_s() - start
    numbers = {int(number) for number in trace.read_text().split()} if trace.exists() else set()
    return (spent if passed and spent < LONG_S else None), numbers


def reached(tests: list[Test], jobs: int) -> tuple[dict[Test, float], dict[int, list[Test]]]:
    """Return the times of the tests without mutants, and the tests that reach each mutant, shortest first."""
    seconds: dict[Test, float] = {}
    reaching: dict[int, list[Test]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for test, (spent, numbers) in zip(tests, pool.map(traced, tests), strict=True):
            if spent is None:
                print(f"left out, since it fails or is long: {test.name}", flush=True)
                continue
            seconds[test] = spent
            for number in numbers:
                reaching.setdefault(number, []).append(test)
    for of_mutant in reaching.values():
        of_mutant.sort(key=seconds.__getitem__)
    return seconds, reaching


def judge(number: int, tests: list[Test], seconds: dict[Test, float], limit_s: float) -> tuple[str, str]:
    """Return whether a test detects a mutant, and the name of that test."""
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


class Judge(NamedTuple):
    """Data that a worker needs to judge its mutants."""

    viable: set[int]
    untried: set[int]
    seconds: dict[Test, float]
    #: For each mutant, the tests in Rust and the tests in Python that reach it.
    reaching: tuple[dict[int, list[Test]], dict[int, list[Test]]]
    limit_s: float

    def line(self, number: int, mutant: Mutant) -> str:
        """Return the line of a mutant for the journal."""
        outcome, by = "untried" if number in self.untried else "unviable", ""
        start = used_s()
        if number in self.viable:
            for reaching in self.reaching:
                tests = reaching.get(number, [])
                if outcome != "caught" and (tests or outcome != "missed"):
                    outcome, by = judge(number, tests, self.seconds, self.limit_s)
        spent = round(used_s() - start, 2)
        return json.dumps({"mutant": mutant.name, "outcome": outcome, "by": by, "seconds": spent})


def interval(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a fraction, in percent."""
    z, share = 1.96, hits / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return tuple(100 * (middle + sign * half) / (1 + z * z / of) for sign in (-1, 1))


def report(journal: Path) -> None:
    """Print the mutants that no test detected, and the counts of the two strata."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        if line["outcome"] == "missed":
            print(f"missed: {line['mutant']} ({line['by'] or 'reached'})")
    strata = {
        "fast paths": [line for line in lines if FAST_PATHS.search(line["mutant"])],
        "other files": [line for line in lines if not FAST_PATHS.search(line["mutant"])],
    }
    for name, stratum in {**strata, "all": lines}.items():
        count = Counter(line["outcome"] for line in stratum)
        viable = count["caught"] + count["missed"]
        print(f"{name}: {len(stratum)} drawn, " + ", ".join(f"{n} {outcome}" for outcome, n in count.items()))
        if viable:
            low, high = interval(count["caught"], viable)
            share = 100 * count["caught"] / viable
            print(f"  caught of {viable} viable: {share:.1f} % ({low:.1f} to {high:.1f} %)")


def main() -> None:
    """Run a shard, or its remaining part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shard", default="1/14", help="K/N: an Nth of all, half of them of fast paths (default 1/14)"
    )
    parser.add_argument("--match", help="a pattern: the mutants with such names, in place of a shard")
    parser.add_argument("--seed", type=int, default=1, help="of the shuffling (default 1)")
    parser.add_argument(
        "--limit",
        type=float,
        default=120,
        help="processor time of a mutant's tests in Rust, and again in Python, s (default 120)",
    )
    parser.add_argument("--jobs", type=int, default=2, help="tests that run side by side (default 2)")
    parser.add_argument("--work", type=Path, default=Path("/tmp/flashtwin-mutants"), help="where the copy is")
    parser.add_argument("--report", action="store_true", help="print the results so far")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    journal = OUT / f"{'matched' if args.match else args.shard.replace('/', '-of-')}.jsonl"
    if args.report:
        report(journal)
        return
    mutants = chosen(args.shard, args.seed, args.match)
    schemata, messages = build(args.work, mutants, journal.with_suffix(".unviable"))
    suites = (rust_tests(messages), python_tests(args.work))
    found = [reached(tests, args.jobs) for tests in suites]
    seconds = {test: spent for timed, _ in found for test, spent in timed.items()}
    print(f"{len(seconds)} tests, {sum(seconds.values()):.0f} s", flush=True)
    judging = Judge(
        schemata.viable, schemata.untried, seconds, tuple(reaching for _, reaching in found), args.limit
    )
    done = set()
    if journal.exists():
        done = {json.loads(line)["mutant"] for line in journal.read_text().splitlines()}
    left = [(number, mutant) for number, mutant in enumerate(mutants) if mutant.name not in done]
    with ProcessPoolExecutor(args.jobs) as pool:
        # Results are in the order of the sample, so that the journal is a random sample at any time.
        for line in pool.map(judging.line, *zip(*left, strict=True)):
            with journal.open("a") as file:
                print(line, file=file)
    report(journal)


if __name__ == "__main__":
    main()
