"""Import of parameter files of other simulators as devices and loads of flashtwin (docs/migration.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .. import _core
from .._support.inputs import read_text
from ..errors import DeviceError, FlashtwinError
from . import disksim, mqsim, mqsim_load
from .draft import Draft, Imported
from .parv import read_parv
from .xml import Node, read_xml

__all__ = ["Imported", "import_file"]

#: Readers of MQSim's XML files, by the name of the outermost element.
_MQSIM: dict[str, Callable[[Node, str], Imported]] = {
    "Execution_Parameter_Set": lambda root, origin: _checked(mqsim.device(root, origin), origin),
    "MQSim_IO_Scenarios": mqsim_load.commands,
}


def import_file(path: str | os.PathLike[str], ssd: str | os.PathLike[str] | None = None) -> Imported:
    """Read a parameter file of DiskSim's SSD extension or of MQSim, detected from the content of the file.

    Args:
        path: the file.
        ssd: for loads of MQSim, the `ssdconfig.xml` of the device. The commands then start from its initial
            state.

    Raises:
        DeviceError: the file is wrong; the message gives file, line and the remedy.
    """
    origin = os.fspath(path)
    text = _read(Path(path))
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        if ssd is not None:
            raise DeviceError(f"{origin}: not a workload of MQSim: remove --ssd")
        return _checked(disksim.device(read_parv(text, origin), origin), origin)
    root = read_xml(text, origin)
    read = _MQSIM.get(root.tag)
    if read is None:
        known = " or ".join(_MQSIM)
        raise DeviceError(f"{origin}:{root.line}: found <{root.tag}>; a file of MQSim begins with {known}")
    if ssd is None:
        return read(root, origin)
    if read is not mqsim_load.commands:
        raise DeviceError(f"{origin}: not a workload of MQSim: remove --ssd")
    configuration = os.fspath(ssd)
    found = read_xml(_read(Path(ssd)), configuration)
    return mqsim_load.commands(root, origin, mqsim.initial(found, configuration))


def _read(path: Path) -> str:
    try:
        return read_text(path, "parameter file")
    except FlashtwinError as e:
        raise DeviceError(str(e)) from e


def _checked(draft: Draft, origin: str) -> Imported:
    """Return the draft as a device file. Raise an error if the model does not support the device."""
    imported = draft.finish()
    try:
        _core.Spec.parse(imported.text, "the imported device", [])
    except DeviceError as e:
        raise DeviceError(
            f"{origin}: these parameters do not describe a device that can be modelled: {e}"
        ) from e
    return imported
