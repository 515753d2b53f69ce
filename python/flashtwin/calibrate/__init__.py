"""Calibration: derives a profile of a drive from measurements of the drive (docs/calibrate-fit.md)."""
