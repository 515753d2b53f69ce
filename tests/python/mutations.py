"""Mutations of values of JSON and TOML, drawn from a seed."""

import copy
import math
import os
import random

import pytest

#: Multiplies the number of random cases of a test.
SEEDS = int(os.environ.get("FLASHTWIN_SEEDS", "1"))


def seeds(n):
    """Run a test with `n` seeds."""
    return pytest.mark.parametrize("seed", range(1, 1 + n * SEEDS))


def deep(n, kind=list):
    """Return a value that is nested n deep."""
    value = kind()
    for _ in range(n):
        value = [value] if kind is list else {"a": value}
    return value


#: Values that replace another value in a mutation.
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.5,
    1e308,
    -1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "0",
    "x" * 100_000,
    "\x1b[31m\n\0",
    "\ud800",
    "</script><script>",
    [],
    {},
    [None],
    [[]],
    [0, 0],
    [1e308] * 3,
    {"": None},
    deep(50),
    deep(50, dict),
]


def paths(value, at=()):
    """Yield the path of each value within `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*at, key)
        yield from paths(each, (*at, key))


def mutated(value, rng, changes=1):
    """Return a copy with random changes: keys that are dropped, renamed or repeated, and other values."""
    value = copy.deepcopy(value)
    for _ in range(changes):
        *way, key = rng.choice(list(paths(value)))
        at = value
        for step in way:
            at = at[step]
        match rng.randrange(6):
            case 0:
                del at[key]
            case 1 if isinstance(at, list):
                at.insert(key, copy.deepcopy(at[key]))
            case 1:
                at[rng.choice(["x", "", key.upper()])] = at.pop(key)
            case 2 if isinstance(at[key], (int, float)):
                at[key] *= rng.choice([-1, 1e-300, 1e18])
            case _:
                at[key] = copy.deepcopy(rng.choice(VALUES))
    return value


def seeded(cases):
    """Yield random number generators, one for each case, always with the same seeds."""
    return (random.Random(seed) for seed in range(cases * SEEDS))


def toml(value):
    """Write a table of TOML, one line per key.

    Keys with the value None are omitted, because TOML has no None.
    """
    return "".join(f"{_toml(str(key))} = {_toml(each)}\n" for key, each in value.items() if each is not None)


def _toml(value):
    match value:
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case str():
            return '"' + "".join(_char(char) for char in value) + '"'
        case list():
            return "[" + ", ".join(_toml(each) for each in value if each is not None) + "]"
        case _:
            inner = ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items() if v is not None)
            return "{" + inner + "}"


def _char(char):
    return f"\\u{ord(char):04x}" if char in '"\\' or ord(char) < 32 or char == "\x7f" else char
