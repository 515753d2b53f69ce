"""Comparison of devices with published measurements of drives (docs/drives.md).

`tables` reads tables of measurements. `loads` converts a row to the load that it describes. `timed` and
`untimed` run loads. `check` compares a device with rows. `fits` lists the rows to which profiles were fitted.
"""

from .check import Cell, Check, check_device

__all__ = ["Cell", "Check", "check_device"]
