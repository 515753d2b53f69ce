"""Packages and tools that flashtwin uses, their purpose, and the command that installs each."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from .. import _core

_PACKAGE = Path(__file__).parents[1]
PLUGIN = _PACKAGE / "flashtwin_nbdkit.so"
PYTHON_OLDEST = (3, 10)


@dataclass(frozen=True)
class Package:
    """A Python package. `extra` is the extra of flashtwin that installs it; None if it is always required."""

    name: str
    purpose: str
    extra: str | None = None

    @property
    def install(self) -> str:
        """Return the line that installs the package."""
        return f"pip install {self.name}" if self.extra is None else f"pip install 'flashtwin[{self.extra}]'"


PACKAGES = (
    Package("pyarrow", "tables, Parquet files"),
    Package("rich", "tables and progress on a terminal"),
    Package("matplotlib", "figures", "plot"),
    Package("duckdb", "flashtwin results query", "query"),
    Package("distributed", "sweeps on Dask clusters", "dask"),
    Package("dask-jobqueue", "sweeps on Slurm", "dask"),
    Package("fsspec", "traces and results at URLs", "dask"),
    Package("argcomplete", "completion in the shell", "completion"),
    Package("cma", "flashtwin calibrate fit", "calibrate"),
    Package("numpy", "flashtwin calibrate fit", "calibrate"),
)


@dataclass(frozen=True)
class Tool:
    """A tool: the names that its command may have, and its package in Debian and in other distributions."""

    commands: tuple[str, ...]
    purpose: str
    debian: str
    elsewhere: str | None = None

    def find(self) -> str | None:
        """Return the path of the program; None if it is not installed."""
        return next(filter(None, map(shutil.which, self.commands)), None)

    @property
    def install(self) -> str:
        """Return the line that installs the tool on this system."""
        for manager, line in _MANAGERS.items():
            if shutil.which(manager):
                name = self.debian if manager == "apt-get" else self.elsewhere or self.debian
                return f"sudo {line} {name}"
        return f"install the package {self.debian}"


#: Package managers, each with the command by which it installs a package.
_MANAGERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
    "apk": "apk add",
}
NBDKIT = Tool(("nbdkit",), "flashtwin serve", "nbdkit")
TOOLS = (
    NBDKIT,
    Tool(("nbdinfo",), "clients of a served device: nbdinfo, nbdcopy, nbdfuse", "libnbd-bin", "libnbd"),
    Tool(("nbdsh",), "client of a served device in Python", "python3-libnbd", "libnbd"),
    Tool(("nbd-client",), "a served device as /dev/nbd0", "nbd-client", "nbd"),
    Tool(("fio",), "load on a served device", "fio"),
    Tool(("qemu-nbd",), "clients of a served device: qemu-nbd, qemu-img, qemu-io", "qemu-utils", "qemu-img"),
    Tool(("fusermount3",), "a served device mounted without root", "fuse3"),
    Tool(("mkfs.xfs",), "examples/live: XFS on a served device", "xfsprogs"),
    Tool(("openssl",), "certificates of a device served with TLS", "openssl"),
    Tool(("chromium", "chromium-browser", "google-chrome"), "tests of report pages", "chromium"),
    Tool(("valgrind",), "make bench: instructions per request", "valgrind"),
    Tool(("qemu-x86_64",), "tests of the wheel on a processor without AVX", "qemu-user"),
    Tool(("cargo",), "building flashtwin, policies in Rust", "cargo"),
)


def install_line(package: str) -> str:
    """Return the line that installs one of `PACKAGES`."""
    return next(each.install for each in PACKAGES if each.name == package)


@dataclass(frozen=True)
class Check:
    """A prerequisite; `found` is its version or path, None if it is missing."""

    name: str
    required: bool
    purpose: str
    found: str | None
    install: str


def checks() -> Iterator[Check]:
    """Check every prerequisite, the required ones first."""
    oldest = ".".join(map(str, PYTHON_OLDEST))
    python = platform.python_version() if sys.version_info >= PYTHON_OLDEST else None
    yield Check("python", True, f"{oldest} or newer", python, f"install Python {oldest} or newer")
    wheel = f"{_core.__version__} in {_PACKAGE}"
    yield Check("flashtwin", True, "this package", wheel, "pip install flashtwin")
    for package in PACKAGES:
        required = package.extra is None
        yield Check(package.name, required, package.purpose, _version(package.name), package.install)
    plugin = "with this package" if PLUGIN.exists() else None
    again = "run make plugin in a checkout, then install again (Linux only)"
    yield Check("nbdkit plugin", False, NBDKIT.purpose, plugin, again)
    for tool in TOOLS:
        yield Check(tool.commands[0], False, tool.purpose, tool.find(), tool.install)
    yield Check(
        "kernel module nbd", False, "a served device as /dev/nbd0", _kernel_module(), "sudo modprobe nbd"
    )


def _version(package: str) -> str | None:
    """Return the version of a package; None if the package cannot be imported."""
    if util.find_spec(package.replace("-", "_")) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "without a version"


def _kernel_module() -> str | None:
    return "loaded" if Path("/sys/module/nbd").exists() else None
