"""Run fuzz targets and print their results: `python fuzz/run.py [--seconds N] [TARGET ...]`.

Rust targets are built with the coverage instrumentation that libFuzzer needs, which the stable compiler
provides. Python targets need Atheris. Inputs that reached new code are kept in out/fuzz. The next run starts
with them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = ROOT / "out" / "fuzz"
TRACES = ROOT / "tests" / "data" / "traces"
#: Directories with valid inputs, for targets that do not read traces.
SEEDS = {
    "fuzz_device_toml": ROOT / "devices",
    "fuzz_study": ROOT / "python" / "flashtwin" / "studies",
}
TRIPLE = "x86_64-unknown-linux-gnu"
COVERAGE = (
    "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1"
    " -Cllvm-args=-sanitizer-coverage-level=4"
    " -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
    " -Cllvm-args=-sanitizer-coverage-pc-table"
    " -Cllvm-args=-sanitizer-coverage-trace-compares"
)
#: Options of individual targets, in addition to the common ones. A case of the model needs several bytes per
#: request.
OPTIONS = {"fuzz_model": ["-max_len=3000", "-len_control=0"]}


class Done(NamedTuple):
    """Result of a target."""

    cpu_s: float
    executions: int
    edges: int
    inputs: int
    finding: str


def targets() -> dict[str, list[str]]:
    """Return the command of each target."""
    found = {
        path.stem: [str(HERE / "target" / TRIPLE / "release" / path.stem)]
        for path in sorted((HERE / "fuzz_targets").glob("fuzz_*.rs"))
    }
    script = HERE / "python" / "targets.py"
    for name in re.findall(r"def an?_(\w+)\(data: bytes\)", script.read_text()):
        found[f"fuzz_{name}"] = [sys.executable, str(script), f"fuzz_{name}"]
    return found


def build() -> None:
    """Build the targets in Rust."""
    manifest = str(HERE / "Cargo.toml")
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--target", TRIPLE, "--manifest-path", manifest],
        env=os.environ | {"RUSTFLAGS": COVERAGE},
        check=True,
    )


def used_s() -> float:
    """Return the processor time of all targets so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fuzz(name: str, command: list[str], seconds: int) -> Done:
    """Run one target and return its result."""
    before = used_s()
    corpus = OUT / name
    corpus.mkdir(parents=True, exist_ok=True)
    # libFuzzer ends its process without cleaning up after the target.
    with tempfile.TemporaryDirectory(prefix="flashtwin_fuzz_") as place:
        done = subprocess.run(
            [
                *command,
                f"-max_total_time={seconds}",
                f"-artifact_prefix={OUT}/{name}-",
                *OPTIONS.get(name, []),
                str(corpus),
                str(SEEDS.get(name, TRACES)),
            ],
            env=os.environ | {"TMPDIR": place},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    (OUT / f"{name}.log").write_text(done.stdout + done.stderr)
    runs = re.search(r"Done (\d+) runs", done.stderr)
    counts = re.findall(r"^#(\d+)\s.*cov: (\d+) .*corp: (\d+)", done.stderr, re.MULTILINE)
    executions, edges, inputs = (int(n) for n in counts[-1]) if counts else (0, 0, 0)
    finding = "" if done.returncode == 0 else f"see {OUT.relative_to(ROOT)}/{name}.log"
    return Done(used_s() - before, int(runs[1]) if runs else executions, edges, inputs, finding)


def main() -> int:
    """Run the targets that the command line names, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="of each target (default 60)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="as in the table (default: all)")
    args = parser.parse_args()
    known = targets()
    if wrong := set(args.targets) - set(known):
        parser.error(f"unknown: {', '.join(sorted(wrong))}; known: {', '.join(known)}")
    if importlib.util.find_spec("atheris") is None:
        print(
            "targets in Python are left out, since Atheris is not installed: pip install atheris",
            file=sys.stderr,
        )
        known = {name: command for name, command in known.items() if command[0] != sys.executable}
    build()
    print("| target | CPU s | executions | edges | inputs kept | findings |\n|---|---:|---:|---:|---:|---|")
    results = []
    for name in args.targets or known:
        done = fuzz(name, known[name], args.seconds)
        results.append(done)
        cells = (done.executions, done.edges, done.inputs, done.finding or "none")
        print(f"| `{name}` | {done.cpu_s:.0f} | {' | '.join(map(str, cells))} |", flush=True)
    findings = sum(bool(done.finding) for done in results)
    cpu_h, executions = sum(done.cpu_s for done in results) / 3600, sum(done.executions for done in results)
    print(f"\n{cpu_h:.2f} CPU-hours, {executions:,} executions, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
