"""A plan of writes to a drive, with readings of its counters between them, for `calibrate counters`."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from .. import _core
from .._support.files import write_texts
from ..errors import FlashtwinError
from .counted import MANIFEST
from .plan import RESULTS, Target

SCRIPT = "counters.sh"
_SCRIPT_TEXT = Path(__file__).with_name(SCRIPT)
#: Fractions of the drive that experiments write, the largest first.
SHARES = (1.0, 0.8, 0.65, 0.5)
#: Overwrites before the measurement, and overwrites measured.
_BEFORE, _MEASURED = 3, 1
#: Seconds for which the counters may lag.
WAIT_S = 70
#: Rates of sequential and of random writes from which the duration of the plan is estimated.
_SEQUENTIAL_BYTES_PER_S, _RANDOM_BYTES_PER_S = 1e9, 2e8


@dataclass(frozen=True)
class Experiment:
    """Writes between two readings of the counters.

    Attributes:
        name: name of the experiment.
        share: fraction of the drive that is written.
        pattern: pattern of the writes, as in `identify.Point`.
        fio: lines of fio's job file that describe the pattern.
        before: number of overwrites before the first reading.
        measured: number of overwrites between the two readings.
        discard: whether all data of the drive are discarded first.
    """

    name: str
    share: float
    pattern: str
    fio: str
    before: float
    measured: float
    discard: bool


def experiments() -> list[Experiment]:
    """Return the experiments in order. An experiment starts in the state in which the previous one ended."""
    found = []
    uniform = "rw=randwrite\nbs=4k\niodepth=128\nnorandommap=1"
    for share in SHARES:
        percent = f"{share * 100:.0f}"
        sequential = "rw=write\nbs=512k\niodepth=4"
        found.append(Experiment(f"sequential-{percent}", share, "sequential", sequential, 0, 1, True))
        found.append(Experiment(f"uniform-{percent}", share, "uniform", uniform, _BEFORE, _MEASURED, False))
        if share == 1.0:
            zipf = f"{uniform}\nrandom_distribution=zipf:0.8"
            pattern = "zipf:theta=0.8,write=1,fio=true"
            found.append(Experiment("zipf-100", share, pattern, zipf, _BEFORE, _MEASURED, False))
    return found


def write(folder: str | Path, where: Target) -> float:
    """Write jobs, script and manifest. Return the approximate duration of the script in seconds.

    Raises:
        FlashtwinError: the target is no block device, or a file cannot be written.
    """
    if not where.is_device:
        raise FlashtwinError(f"{where.path}: counters need a block device")
    place = Path(folder)
    (place / RESULTS).mkdir(parents=True, exist_ok=True)
    texts = {}
    takes_s = 0.0
    for each in experiments():
        used = int(where.capacity_bytes * each.share) >> 20 << 20
        rate = _SEQUENTIAL_BYTES_PER_S if each.pattern == "sequential" else _RANDOM_BYTES_PER_S
        takes_s += used * (each.before + each.measured) / rate + 2 * WAIT_S
        for name, times in ((f"{each.name}.before", each.before), (each.name, each.measured)):
            if times:
                texts[place / f"{name}.fio"] = _job(name, each.fio, where, used, times)
    listed = [
        {
            "name": each.name,
            "share": each.share,
            "pattern": each.pattern,
            "overwrites": each.before + each.measured,
        }
        for each in experiments()
    ]
    manifest = {
        "flashtwin_version": _core.__version__,
        "drive": where.model or where.path,
        "capacity_bytes": where.capacity_bytes,
        "experiments": listed,
    }
    texts[place / RESULTS / MANIFEST] = json.dumps(manifest, indent=1) + "\n"
    order = " ".join(f"{each.name}:{'discard' if each.discard else 'keep'}" for each in experiments())
    head = [
        "#!/bin/sh",
        "# Reads a drive's counters around writes; written by `flashtwin calibrate plan --counters`.",
        f"TARGET={shlex.quote(where.path)}",
        f"MINUTES={max(1, round(takes_s / 60))}",
        f"WAIT_S={WAIT_S}",
        f"EXPERIMENTS={shlex.quote(order)}",
        "",
    ]
    texts[place / SCRIPT] = "\n".join(head) + _SCRIPT_TEXT.read_text(encoding="utf-8")
    write_texts(texts, "the plan")
    (place / SCRIPT).chmod(0o755)
    return takes_s


def _job(name: str, fio: str, where: Target, used_bytes: int, times: float) -> str:
    return f"""\
[global]
ioengine=libaio
direct=1
filename={where.path.replace(":", chr(92) + ":")}
size={used_bytes}
randrepeat=0
[{name}]
{fio}
io_size={round(used_bytes * times)}
"""
