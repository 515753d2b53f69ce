"""Check that a device fits into memory, before it is created: a failed allocation ends the process."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..errors import DeviceError
from .words import size

#: Memory in bytes that is needed in addition to the tables of a device: processes, buffers, requests in
#: flight.
_BESIDE_BYTES = 256 << 20
#: File with the memory limit of a container. Outside a container it is missing or contains "max".
_CONTAINER = Path("/sys/fs/cgroup/memory.max")
_LIMIT = "Max address space"


def need(tables_bytes: int, *, devices: int = 1, less: str = "") -> None:
    """Reject devices whose tables do not fit into the available memory.

    Args:
        tables_bytes: size of the tables of one device.
        devices: number of devices that exist at the same time. A state that is being loaded or saved counts
            as one.
        less: text for messages that states how less memory can be used.

    Raises:
        DeviceError: the devices do not fit; the message gives needed and available memory, and a remedy.
    """
    needed, there = tables_bytes * devices + _BESIDE_BYTES, _available_bytes()
    if there is not None and needed > there:
        larger = "--set geometry.page_bytes=1MiB --set geometry.flash_page_bytes=1MiB"
        what = f"{devices} times the device" if devices > 1 else "the device"
        raise DeviceError(
            f"{what} takes {size(needed)} of memory, of which {size(there)} can be had: give a "
            f"smaller size, or larger pages ({larger})" + (f"; {less}" if less else "")
        )


def _available_bytes() -> int | None:
    """Return the available bytes: the minimum for machine, container and process limit; None if unknown."""
    found = []
    with contextlib.suppress(OSError):
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(int(told["MemAvailable"].removesuffix("kB")) << 10)
    with contextlib.suppress(OSError, ValueError):
        found.append(int(_CONTAINER.read_text()))
    with contextlib.suppress(OSError, ValueError):
        limits = Path("/proc/self/limits").read_text().splitlines()
        soft = next(line for line in limits if line.startswith(_LIMIT)).removeprefix(_LIMIT).split()[0]
        status = Path("/proc/self/status").read_text().splitlines()
        used = next(line for line in status if line.startswith("VmSize:")).split()[1]
        found.append(max(0, int(soft) - (int(used) << 10)))
    return min(found, default=None)
