"""The commands by group, in the order in which the help lists them: their modules and descriptions."""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command.

    Attributes:
        module: module of this package that defines its grammar.
        summary: the purpose of the command, in one sentence.
    """

    module: str
    summary: str


GROUPS: Final[dict[str, dict[str, Command]]] = {
    "simulate": {
        "run": Command("run", "Run a workload on a device and print the results."),
        "compare": Command("compare", "Run a workload under several policies, side by side."),
        "lifetime": Command(
            "lifetime", "Project how long a drive lasts under a workload, by over-provisioning."
        ),
        "theory": Command(
            "theory", "Compute closed forms of write amplification, hits, response and lifetime before a run."
        ),
        "explain": Command(
            "explain", "Explain what a request waited for, or what holds a device back in a run."
        ),
        "sweep": Command("sweep", "Run the cells of an experiment that are not finished yet."),
        "policy": Command("policy", "List, explain, step and measure buffer policies."),
        "ftl": Command("ftl", "List, explain and step flash translation layers."),
        "placement": Command(
            "placement", "List, explain, step and measure placement schemes and victim rules."
        ),
        "snapshot": Command("snapshot", "Save the state of a preconditioned device."),
    },
    "results and studies": {
        "results": Command("results", "Show and query the results of a sweep."),
        "report": Command(
            "report", "Write a run, several runs or a sweep as one page that needs no network."
        ),
        "plot": Command("plotting", "Draw a figure for a paper, of recorded runs or of a sweep."),
        "study": Command("study", "Reproduce a paper: run its study and judge its claims."),
        "leaderboard": Command(
            "leaderboard", "Rank all buffer policies under a common set of loads on two devices."
        ),
        "pts": Command(
            "pts", "Test a device as SNIA's Performance Test Specification does, and write a report."
        ),
        "validate": Command("validate", "Replay reference cases and compare every operation."),
    },
    "a live device": {
        "serve": Command(
            "serve",
            "Serve a device as a block device with realistic timing, for fio, file systems, databases.",
        ),
        "ctl": Command(
            "ctl", "Send a command to a served device: statistics, power loss, a dead die, another policy."
        ),
        "calibrate": Command("calibrate", "Fit a device file to measurements of a drive."),
    },
    "inputs": {
        "device": Command("device", "List, show, check and import devices."),
        "trace": Command("trace", "Summarise or convert a trace."),
    },
    "installation": {
        "doctor": Command(
            "installation", "List installed and missing packages and tools, with install commands."
        ),
        "completion": Command("installation", "Print the code that makes a shell complete the command."),
        "man": Command("installation", "Print the manual page."),
    },
}

COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}


def summary_of(name: str) -> str:
    """Return the purpose of a command, a sentence."""
    return COMMANDS[name].summary
