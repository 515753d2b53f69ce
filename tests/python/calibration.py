"""Parameters of the device from which the tests of calibration start."""

SMALL = {
    "channels": 2,
    "dies": 1,
    "planes": 1,
    "reserve": 15.0,
    "read_low": 40.0,
    "read_mid": 50.0,
    "read_high": 65.0,
    "program": 500.0,
    "program_spread": 1.3,
    "erase": 4000.0,
    "transfer": 1.2,
    "overhead": 6.0,
    "request": 1.5,
}
