"""Comparison of devices with published measurements of drives (docs/drives.md).

`tables` reads tables of measurements. Each row of a table has a load and the figures measured under it.
`loads` has the types of loads. `timed` runs loads in virtual time. `untimed` simulates writes without time,
to measure write amplification. `check` compares a device with rows. `fits` lists the rows to which the
profiles were fitted.
"""

from .check import Cell, Check, check_device

__all__ = ["Cell", "Check", "check_device"]
