"""Runs the commands of docs/validation.md and writes their results into its last section.

    python experiments/validate.py [--slow]

The commands are those of the first table of the page. Commands that follow the word "slow" in a row run only
with --slow; their results are in other sections of the page. If a command fails, the program prints the
command's output and ends.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "validation.md"
RESULTS = "\n## All commands\n"
COMMAND = re.compile(r"`((?:flashtwin|cargo|python|make) [^`]+)`")


def commands(text: str) -> tuple[list[str], list[str]]:
    """Return the commands of the page's first table: the quick ones and the slow ones."""
    rows = [line for line in text.partition(RESULTS)[0].splitlines() if line.startswith("| ")]
    cells = [row.rsplit("|", 2)[1].partition("*slow*") for row in rows]
    quick = [command for cell, _, _ in cells for command in COMMAND.findall(cell)]
    slow = [command for _, _, cell in cells for command in COMMAND.findall(cell)]
    return quick, slow


def tests(said: str) -> str:
    """Summarise the output of Rust's test runner."""
    counts = [
        [int(number) for number in found]
        for found in re.findall(r"test result: ok\. (\d+) passed; \d+ failed; (\d+) ignored", said)
    ]
    passed, ignored = (sum(each) for each in zip(*counts, strict=True))
    return f"{passed} passed" + (f", {ignored} ignored" if ignored else "")


def cases(said: str) -> str:
    """Summarise the comparison with the reference."""
    counted = r"(\d+) cases?: (\d+) compared, (\d+) matched; (\d+) cases? not met"
    number, *others = re.findall(counted, re.sub(r"(?<=\d)[ ,](?=\d{3})", "", said))[-1]
    compared, matched, unmet = (f"{int(other):,}".replace(",", " ") for other in others)
    return f"{number} cases: {compared} compared, {matched} matched; {unmet} cases not met"


def claims(said: str) -> str:
    """Summarise the list of studies."""
    counted = re.findall(r"^ ([a-z-]+) .*?((?: +\d+)+) *$", said, re.MULTILINE)
    sums = (f"{name} {sum(map(int, numbers.split()))}" for name, numbers in counted)
    return ", ".join(sums) + " claims with their verdicts"


def instructions(said: str) -> str:
    """Summarise the counts of instructions."""
    counted = re.findall(r"instructions_per_request_(\w+): (\d+)", said)
    return ", ".join(f"{name} {number}" for name, number in sorted(counted)) + " instructions per request"


#: For commands that contain the given words: the function that summarises the output of the command.
CONDENSED = {
    "cargo test": tests,
    "flashtwin validate": cases,
    "study list": claims,
    "bench held": instructions,
}


def run(command: str) -> str:
    """Run a command from the root of the project and return its output."""
    done = subprocess.run(
        command.split(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def main() -> None:
    """Run the commands and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", action="store_true", help="run the slow commands, too")
    args = parser.parse_args()
    text = PAGE.read_text()
    quick, slow = commands(text)
    rows = []
    for command in quick:
        began = time.monotonic()
        condense = next(how for word, how in CONDENSED.items() if word in command)
        rows.append(f"| `{command}` | {condense(run(command))} |")
        print(f"{rows[-1]} {time.monotonic() - began:.0f} s", flush=True)
    for command in slow if args.slow else ():
        print(f"{command}\n{run(command)}", flush=True)
    head = text.partition(RESULTS)[0]
    introduction = f"Written by `make validate` on {time.strftime('%Y-%m-%d')}.\n"
    table = "\n".join(["| command | result |", "|---|---|", *rows])
    PAGE.write_text(f"{head}{RESULTS}\n{introduction}\n{table}\n")


if __name__ == "__main__":
    main()
