"""Calibration: a profile of a drive from measurements of it (docs/calibrate-fit.md)."""
