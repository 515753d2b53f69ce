"""Differences between a generated load and the trace that it stands in for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ..hit_ratios import hits
from ..traces import TraceOptions, trace_info
from ..workloads import generated
from . import words

_PAGE_BYTES = 4096
#: Buffer sizes in pages, 1 and 32 MiB. The hit ratios of these buffers characterise the locality.
_CAPACITIES_PAGES = (256, 8192)


def against(
    trace: str | os.PathLike[str], load: str, options: TraceOptions | None = None, *, seed: int = 1
) -> list[tuple[str, str, str]]:
    """Compare a trace with a generated load that has the same number of requests.

    Each row has the name of a property, its value for the trace, and its value for the load.

    Raises:
        FlashtwinError: the trace or the load is wrong.
    """
    real = trace_info(trace, options)
    text = f"{load},requests={real['requests']}"
    info = generated(text).open(real["address_max_bytes"], seed).info()[0]
    return [
        (name, of_trace, of_load)
        for (name, of_trace), of_load in zip(
            [*_of_info(real).items(), *_of_hits(trace, options, seed).items()],
            [*_of_info(json.loads(info)).values(), *_of_hits(text, None, seed).values()],
            strict=True,
        )
    ]


def _of_info(info: Mapping[str, Any]) -> dict[str, str]:
    accessed = info["reads"]["bytes"] + info["writes"]["bytes"]
    footprint = info["footprint_pages"] * _PAGE_BYTES
    return {
        "requests per second": words.digits(info["rate_per_s"]),
        "writes": words.percent(info["write_ratio"]),
        "mean size": words.size(round(info["size_mean_bytes"])),
        "variation of gaps": words.digits(info["gap_cv"]),
        "footprint": words.size(footprint),
        "bytes accessed per byte of footprint": words.digits(accessed / footprint if footprint else 0.0),
        "sequential": words.percent(info["sequential_share"]),
    }


def _of_hits(workload: str | os.PathLike[str], options: TraceOptions | None, seed: int) -> dict[str, str]:
    table = hits(workload, ["lru"], _CAPACITIES_PAGES, seed=seed, trace_options=options)
    return {
        f"hit ratio of LRU with {words.size(row.capacity_pages * _PAGE_BYTES)}": words.percent(row.hit_ratio)
        for row in table
    }
