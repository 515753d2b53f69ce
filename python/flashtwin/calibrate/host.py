"""The time that the host adds to requests of a served device.

This time is measured on the device `instant`, which completes requests immediately.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from ..errors import FlashtwinError
from . import loads
from .figures import Figures
from .results import Results

#: Experiments on `instant`: one with a single request in flight, and one with several (with their number).
_ONE = "read-size-4k"
_MORE = ("read-depth-2", 2)
_BYTES = 4 << 10
_MEDIAN = "p50_us"
_SIZE = re.compile(r"size=(\d+)k")


def latency_us(host: Figures, where: str) -> float:
    """Return the latency that the host adds to a request, which a fit subtracts.

    Raises:
        FlashtwinError: the host was not measured.
    """
    name = f"{_ONE}/read.{_MEDIAN}"
    if name not in host:
        raise FlashtwinError(f"{where}: {name} is missing; run {_ONE} on the device `instant`")
    return host[name]


def with_host(results: Results, host: Figures) -> Results:
    """Return the results, with uncertainties that include the effect of the host.

    A fit subtracts the host's median latency, measured on the device `instant`. At other percentiles, or with
    more requests in flight, the host adds more latency. This difference is added to the uncertainty of a
    figure.
    """
    taken_out_us = latency_us(host, "host")
    uncertain = dict(results.uncertain)
    for load in [*loads.reads(), *loads.writes(results.capacity_bytes)]:
        for name in (name for name in results.figures if name.startswith(f"{load.name}/")):
            value = results.figures[name]
            if name.endswith("mb_per_s"):
                us = load.depth * _bytes(load) / value
                host_us = _mean_us(host, load.depth)
            else:
                us = value
                host_us = _percentile_us(host, load.depth, name[name.rindex(".p") + 1 :])
            added = (taken_out_us if host_us is None else host_us) - taken_out_us
            uncertain[name] = math.hypot(uncertain.get(name, 0.0), added / us)
    return replace(results, uncertain=uncertain)


def _mean_us(host: Figures, depth: int) -> float | None:
    experiment, in_flight = (_ONE, 1) if depth == 1 else _MORE
    rate = host.get(f"{experiment}/mb_per_s")
    return in_flight * _BYTES / rate if rate else None


def _percentile_us(host: Figures, depth: int, percentile: str) -> float | None:
    # At depth 1, there may be too few requests for a high percentile. It is then taken from the other
    # experiment.
    names = (_ONE, _MORE[0]) if depth == 1 else (_MORE[0],)
    return next((host[key] for key in (f"{name}/read.{percentile}" for name in names) if key in host), None)


def _bytes(load: loads.Load) -> int:
    found = _SIZE.search(load.text)
    return int(found[1]) << 10 if found else _BYTES
