"""Comparison of devices with published measurements of drives (docs/drives.md).

`tables` reads tables of measurements, whose rows have a load and measured figures. `loads` has the types of
loads. `timed` runs loads in virtual time, and `untimed` runs writes without time. `check` compares a device
with rows. `fits` lists the rows to which profiles were fitted.
"""

from .check import Cell, Check, check_device

__all__ = ["Cell", "Check", "check_device"]
