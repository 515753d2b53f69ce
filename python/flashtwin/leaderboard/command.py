"""The command with which a user repeats a row of the leaderboard."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..options import RunOptions, options_of
from ..traces import example_trace

#: Command that prints the path of the example trace, wherever flashtwin is installed.
_EXAMPLE = '"$(python -c "import flashtwin; print(flashtwin.example_trace())")"'


@dataclass(frozen=True)
class Command:
    """A run: device, workload and settings, without policy and seed."""

    device: str
    workload: str
    settings: Mapping[str, Any]
    overrides: Mapping[str, Any]

    def text(self, policy: str) -> str:
        """Return the command for a policy, quoted for a shell.

        The command ends with --seed, after which the user adds a value.
        """
        words = ["flashtwin", "run", *self._load(), "--device", self.device, "--policy", shlex.quote(policy)]
        for key, value in self.overrides.items():
            words += ["--set", shlex.quote(f"{key}={value}")]
        for name, value in self.settings.items():
            option = options_of(RunOptions).get(name)
            flag = option.flag if option else None
            words += [flag or f"--{name.replace('_', '-')}", shlex.quote(str(value))]
        return " ".join([*words, "--seed"])

    def _load(self) -> list[str]:
        if self.workload == str(example_trace()):
            return [_EXAMPLE]
        is_trace = Path(self.workload).is_file()
        return [*([] if is_trace else ["--workload"]), shlex.quote(self.workload)]
