"""The start of a recording: the device, and the state of its flash when the server began to record.

Three files beside the recording FILE describe its start: FILE.toml is the device, FILE.state is the state of
the flash (absent if the flash was never written), and FILE.start.json has the names of these two files. `run`
and `compare` start a replay of FILE from this device and state.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..errors import FlashtwinError
from .files import whole_file, write_text


@dataclass(frozen=True)
class Start:
    """The start of a recording.

    Attributes:
        device: path of the device file.
        state: file with the state of the flash; None if the flash was never written.
    """

    device: Path
    state: Path | None

    @property
    def precondition(self) -> str:
        """Return the value of `precondition` for a replay from this start, with an empty buffer."""
        return "none" if self.state is None else "steady:empty-buffer"


def describe(record: Path, device: str, state: Path | None) -> None:
    """Write the files that describe the start of a recording. If one fails, remove those already written."""
    with ExitStack() as made:

        def beside(ending: str) -> Path:
            path = Path(f"{record}.{ending}")
            if not path.exists():
                made.callback(path.unlink, missing_ok=True)
            return path

        names = {"device": f"{record.name}.toml", "state": None}
        write_text(beside("toml"), device, "the device")
        if state is not None:
            names["state"] = f"{record.name}.state"
            with whole_file(beside("state"), "the state") as out, state.open("rb") as flash:
                shutil.copyfileobj(flash, out, 1 << 20)
        text = json.dumps(names, indent=2)
        write_text(beside("start.json"), f"{text}\n", "the start of a recording")
        made.pop_all()


def is_device_of(workload: str | os.PathLike[str], device: str | Path) -> bool:
    """Whether a device is given as the device file (FILE.toml) of the recording itself."""
    return Path(device).absolute() == Path(f"{os.fspath(workload)}.toml").absolute()


def start_of(workload: str | os.PathLike[str]) -> Start | None:
    """Return the start of a recording; None for any other workload.

    Raises:
        FlashtwinError: the description is damaged, or a file that it names is missing.
    """
    path = Path(f"{os.fspath(workload)}.start.json")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as e:
        # A workload that is not a file has no start. The text of a generated load may be too long for a file
        # name, which also raises an OSError.
        if not Path(workload).exists():
            return None
        raise FlashtwinError(f"{path}: cannot read the start of the recording: {e}") from None
    remedy = f"give another --device, or remove {path}"
    try:
        names = json.loads(text)
        device, state = names["device"], names["state"]
        start = Start(path.with_name(device), None if state is None else path.with_name(state))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise FlashtwinError(f"{path}: is not the start of a recording; {remedy}") from None
    for needed in filter(None, (start.device, start.state)):
        if not needed.is_file():
            raise FlashtwinError(f"{path}: names {needed}, which is missing; {remedy}")
    return start
