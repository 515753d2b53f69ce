"""A plan of measurements on a drive: a fio job for each experiment, one script, and a manifest."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from .. import _core
from .._support.files import write_texts
from ..errors import FlashtwinError
from . import loads
from .figures import PERCENTILES
from .loads import EMPTY, FILLED, REFILLED, STEADY, TIMES, TRIMMED, Load
from .parameters import PARAMETERS, PROTECTION
from .results import MANIFEST

SCRIPT = "run.sh"
RESULTS = "results"
#: Minimum size of a target in bytes. A smaller target may fit into a drive's cache.
SIZE_MIN = 256 << 20
_NBD = ("nbd:", "nbds:", "nbd+unix:", "nbds+unix:")
_BLOCK_DEVICES = Path("/sys/class/block")
_SCRIPT_TEXT = Path(__file__).with_name("run.sh")
#: Rates that the estimate of the duration assumes, in bytes per second and in requests per second.
_SEQUENTIAL_BYTES_PER_S = 400e6
_RANDOM_PER_S = 10_000
#: For each state in which an experiment may start: fio's options of the job that brings the drive into this
#: state, and the amount that the job writes or trims, as a multiple of the capacity.
_PREPARE = {
    EMPTY: ("rw=trim\nbs=1m", 1.0),
    FILLED: ("rw=write\nbs=128k\niodepth=32", 1.0),
    REFILLED: ("rw=write\nbs=128k\niodepth=32", 1.0),
    STEADY: ("rw=randwrite\nbs=4k\niodepth=32\nnorandommap=1", 2.0),
    TRIMMED: ("rw=trim\nbs=1m", 0.5),
}
#: Order in which experiments run, by the state in which they start. In this order, no experiment destroys
#: data that a later state needs.
_ORDER = (EMPTY, FILLED, REFILLED, STEADY, TRIMMED)


@dataclass(frozen=True)
class Target:
    """The drive that is measured.

    Attributes:
        path: a block device, a file, or the URI of a network block device.
        capacity_bytes: number of bytes of the drive that are used.
        is_device: whether the target is a block device.
        model: model name of the drive, if known.
        scheduler: I/O scheduler of the drive's queue, if known.
    """

    path: str
    capacity_bytes: int
    is_device: bool
    model: str
    scheduler: str

    @property
    def is_network(self) -> bool:
        """Whether it is a network block device."""
        return self.path.startswith(_NBD)

    @property
    def can_trim(self) -> bool:
        """Whether fio can trim the target. It cannot trim files."""
        return self.is_device or self.is_network


def target(path: str | os.PathLike[str], size_bytes: int | None = None) -> Target:
    """Inspect a target.

    Args:
        path: a block device, a file, or an NBD URI. If the size is given, a file need not exist.
        size_bytes: number of bytes to use; by default all. Required for an NBD URI.

    Raises:
        FlashtwinError: the target is none of these, or it is too small.
    """
    if not f"{path}{Path(path).resolve()}".isprintable():
        # A line break in the path would add lines to the job file, and fio runs the job file as root.
        raise FlashtwinError(f"{str(path)!r}: the name of a target cannot have control characters; rename it")
    if str(path).startswith(_NBD):
        if size_bytes is None:
            raise FlashtwinError(f"{path}: a network block device needs --size")
        return Target(str(path), _whole(str(path), size_bytes), False, "", "")
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except OSError:
        if size_bytes is None:
            raise FlashtwinError(f"{place}: target not found; a new file needs --size") from None
        mode = stat.S_IFREG
    is_device = stat.S_ISBLK(mode)
    if not is_device and not stat.S_ISREG(mode):
        raise FlashtwinError(f"{place}: neither a block device nor a file")
    about = _BLOCK_DEVICES / place.resolve().name
    if is_device:
        whole_bytes = int(_first_line(about / "size") or 0) * 512
    else:
        whole_bytes = place.stat().st_size if place.exists() else size_bytes or 0
    capacity = size_bytes or whole_bytes
    if is_device and capacity > whole_bytes:
        raise FlashtwinError(f"{place}: has {whole_bytes} bytes, less than --size")
    capacity = _whole(str(place), capacity)
    scheduler = re.search(r"\[(.+?)\]", _first_line(about / "queue/scheduler"))
    return Target(
        str(place.resolve()),
        capacity,
        is_device,
        _first_line(about / "device/model"),
        scheduler[1] if scheduler else "",
    )


def _whole(place: str, capacity_bytes: int) -> int:
    """Return the capacity in whole MiB, after checking that it is large enough."""
    if capacity_bytes < SIZE_MIN:
        raise FlashtwinError(
            f"{place}: {capacity_bytes} bytes: give a target of {SIZE_MIN >> 20} MiB or more"
        )
    return capacity_bytes - capacity_bytes % (1 << 20)


def experiments(where: Target, *, read_only: bool = False, full: bool = False) -> list[Load]:
    """Return the experiments in the order in which they run.

    Args:
        where: the target.
        read_only: whether to return only experiments that do not change data.
        full: whether experiments have `TIMES` times as many requests. Experiments that fill a part of the
            drive are not changed.
    """
    found = loads.reads() if read_only else loads.every(where.capacity_bytes)
    if not where.can_trim:
        found = [load for load in found if not load.name.startswith("trim-")]
    found.sort(key=lambda load: _ORDER.index(load.state))
    return [load.longer(TIMES) for load in found] if full else found


def identifies(load: Load) -> list[str]:
    """Return the keys of the device file that an experiment isolates."""
    keys = {p.key for p in PARAMETERS if load.name.startswith(p.isolated_by)}
    if load.name.startswith(("fua-", "flush-")):
        keys.add(PROTECTION)
    return sorted(keys)


def write(
    folder: str | os.PathLike[str],
    where: Target,
    *,
    read_only: bool = False,
    full: bool = False,
    dilation: float = 1.0,
) -> float:
    """Write job files, script and manifest. Return the approximate duration of the script in seconds."""
    place = Path(folder)
    (place / RESULTS).mkdir(parents=True, exist_ok=True)
    found = experiments(where, read_only=read_only, full=full)
    texts = {place / f"{load.name}.fio": job(load, where) for load in found}
    for state, (text, times) in _PREPARE.items():
        ends = f"io_size={round(times * where.capacity_bytes)}"
        texts[place / f"{state}.fio"] = f"{_common(where)}[{state}]\n{text}\n{ends}\n"
    takes_s = _takes_s(found, where, read_only=read_only) * dilation
    manifest = {
        "flashtwin_version": _core.__version__,
        "drive": where.model or where.path,
        "target": where.path,
        "capacity_bytes": where.capacity_bytes,
        "kernel": platform.release(),
        "scheduler": where.scheduler,
        "takes_s": round(takes_s),
        "dilation": dilation,
        "experiments": [
            {
                "name": load.name,
                "state": "as it is" if read_only else load.state,
                "identifies": identifies(load),
            }
            for load in found
        ],
    }
    texts[place / RESULTS / MANIFEST] = json.dumps(manifest, indent=1) + "\n"
    texts[place / SCRIPT] = _script(found, where, takes_s, read_only=read_only)
    write_texts(texts, "the plan")
    (place / SCRIPT).chmod(0o755)
    return takes_s


def job(load: Load, where: Target) -> str:
    """Return fio's job file of an experiment. The warm-up is a job of its own, before the measured job."""
    kind, settings = _parsed(load.text)
    bytes_max = max(_sizes(settings["size"]))
    flushes, trims, writes = (float(settings.get(kind, "0")) for kind in ("flush", "trim", "write"))
    names = ("read", "write", "rw", "trim")
    # In fio, a flush follows every N writes. Flushes cannot be a random share of the requests.
    kind_of = 3 if trims else 0 if writes == 0 else 1 if writes == 1 or flushes else 2
    lines = [f"rw={'' if kind == 'sequential' else 'rand'}{names[kind_of]}"]
    if names[kind_of] == "rw":
        lines.append(f"rwmixwrite={round(writes * 100)}")
    if flushes:
        lines.append("fsync=1")
    if "fua" in settings:
        lines.append("sync=dsync")
    if settings["size"].startswith("list("):
        lines.append("bssplit=" + settings["size"][5:-1].replace("*", "/").replace("+", ":"))
    else:
        lines.append(f"bs={settings['size']}")
    if "align" in settings:
        lines.append(f"blockalign={settings['align']}")
    if "range" in settings:
        lines.append(f"size={settings['range']}")
    if kind == "zipf":
        lines.append(f"random_distribution=zipf:{settings['theta']}")
    if kind != "sequential":
        lines.append("norandommap=1")
    lines.append(f"iodepth={load.depth}")
    parts = [_common(where)]
    for name, requests in (("warmup", load.warmup), (load.name, load.requests)):
        if requests:
            seed = f"randseed={crc32(f'{load.name} {name}'.encode())}"
            count = [seed, f"number_ios={requests}", f"io_size={requests * bytes_max}"]
            parts.append("\n".join([f"[{name}]", *lines, *count]) + "\n")
    return "\n".join(parts)


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    kind, _, rest = text.partition(":")
    return kind, dict(pair.split("=", 1) for pair in rest.split(","))


def _sizes(text: str) -> Iterator[int]:
    for amount in re.findall(r"(\d+)k", text):
        yield int(amount) << 10


def _common(where: Target) -> str:
    engine = (
        f"ioengine=nbd\nuri={where.path}"
        if where.is_network
        else "ioengine=libaio\ndirect=1\nfilename=" + where.path.replace(":", r"\:")
    )
    percentiles = ":".join(f"{percent:g}" for percent in PERCENTILES)
    # With `randrepeat=1`, fio would ignore `randseed`, and all jobs would have the same addresses. The
    # drive's buffer would then already have these pages.
    return f"""\
[global]
{engine}
size={where.capacity_bytes}
randrepeat=0
percentile_list={percentiles}
"""


def _takes_s(found: list[Load], where: Target, *, read_only: bool) -> float:
    """Return the approximate duration of the script, computed with the rates of a slow drive."""
    requests = sum(load.requests + load.warmup for load in found)
    random = requests - sum(load.requests for load in found if load.text.startswith("sequential"))
    in_order_bytes = (requests - random) * (128 << 10)
    prepared_s = 0.0
    if not read_only:
        prepared_s = 2 * where.capacity_bytes / _SEQUENTIAL_BYTES_PER_S
        prepared_s += _PREPARE[STEADY][1] * where.capacity_bytes / 4096 / _RANDOM_PER_S
    return prepared_s + in_order_bytes / _SEQUENTIAL_BYTES_PER_S + random / _RANDOM_PER_S + len(found)


def _script(found: list[Load], where: Target, takes_s: float, *, read_only: bool) -> str:
    """Return the script: the settings of this plan, followed by run.sh, which all plans have in common."""
    head = [
        "#!/bin/sh",
        "# Measures a drive for `flashtwin calibrate fit`; written by `flashtwin calibrate plan`.",
        f"TARGET={shlex.quote(where.path)}",
        f"CAPACITY={where.capacity_bytes}",
        f"MINUTES={max(1, round(takes_s / 60))}",
        f"NETWORK={'yes' if where.is_network else 'no'}",
        f"READ_ONLY={'yes' if read_only else 'no'}",
        f"EXPERIMENTS={shlex.quote(' '.join(f'{load.state}:{load.name}' for load in found))}",
        "",
    ]
    return "\n".join(head) + _SCRIPT_TEXT.read_text(encoding="utf-8")


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().partition("\n")[0]
    except OSError:
        return ""
