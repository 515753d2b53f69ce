"""Comparison of devices with published measurements of drives (docs/drives.md).

`tables` reads tables of measurements, `loads` turns a row into the load that it describes, `timed` and
`untimed` run loads, `check` compares, `fits` has the rows that a profile was fitted to.
"""

from .check import Cell, Check, check_device

__all__ = ["Cell", "Check", "check_device"]
