"""Results in the form of fio's `json+` output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bins import bins_of, distribution_of, least_of, percentiles_of

if TYPE_CHECKING:
    from .._core import Histogram
    from .._support.record import Record

#: For each direction of fio, the names of the latencies and of the counts in a summary.
_DIRECTIONS = {"read": ("read", "reads"), "write": ("write", "writes"), "trim": ("trim", "trims")}
_NO_TIMES: dict[str, Any] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
_SAMPLES = ("min", "max", "agg", "mean", "dev"), ("min", "max", "mean", "stddev")


def to_json_plus(record: Record) -> str:
    """Return a run in fio's `json+` format. docs/fio.md describes the fields, and lists missing ones."""
    return (
        json.dumps(
            {
                "fio version": f"flashtwin-{record.summary['flashtwin_version']}",
                "timestamp": 0,
                "timestamp_ms": 0,
                "time": "",
                "jobs": [job_of(record)],
            },
            indent=2,
        )
        + "\n"
    )


def job_of(record: Record) -> dict[str, Any]:
    """Return the only job of a run."""
    summary = record.summary
    options = options_of(summary)
    job: dict[str, Any] = {
        "jobname": options["name"],
        "groupid": 0,
        "error": 0,
        "eta": 0,
        "elapsed": max(1, round(summary["span_s"])),
        "job options": options,
    }
    for name, (kind, counted) in _DIRECTIONS.items():
        job[name] = _direction(summary, kind, counted, record.histograms.get(kind, []))
    flushes = summary["flush"]
    job["sync"] = {"total_ios": flushes["requests"], "lat_ns": _times(flushes, [])}
    job["job_runtime"] = runtime_ms(summary)
    for unit, shares in distribution_of(record.histograms["all"]).items():
        job[f"latency_{unit}"] = {name: round(share, 6) for name, share in shares.items()}
    if "iodepth" in options:
        job["latency_depth"] = int(options["iodepth"])
    return job


def runtime_ms(summary: dict[str, Any]) -> int:
    """Return the length of a run in whole milliseconds, as fio rounds it."""
    return max(1, round(float(summary["span_s"]) * 1e3))


def options_of(summary: dict[str, Any]) -> dict[str, str]:
    """Return those options of a fio job that follow from the run."""
    workload = str(summary["workload"])
    options = {"name": workload, "ioengine": "flashtwin", "filename": summary["device"]}
    generated = re.match(r"generated ([a-z-]+):(\S*)", workload)
    if generated:
        given = dict(part.split("=", 1) for part in generated[2].split(",") if "=" in part)
        reads, writes = (summary[kind]["requests"] for kind in ("read", "write"))
        way = "rw" if reads and writes else "write" if writes else "read"
        sequential = generated[1] == "sequential" or given.get("seq") == "1"
        options["name"] = generated[1]
        options["rw"] = way if sequential else f"rand{way}"
        if reads and writes:
            options["rwmixread"] = str(round(100 * reads / (reads + writes)))
        if given.get("size", "").isdigit():
            options["bs"] = given["size"]
    else:
        path = workload.split(": ", maxsplit=1)[0]
        options |= {"name": Path(path).name, "read_iolog": path}
    depth = re.search(r"closed loop at queue depth (\d+)", summary["pacing"])
    if depth:
        options["iodepth"] = depth[1]
    return options


def _direction(summary: dict[str, Any], kind: str, counted: str, histogram: Histogram) -> dict[str, Any]:
    counts, span_s = summary["counts"][counted], summary["span_s"]
    a_second = 1 / span_s if span_s else 0.0
    times = _times(summary[kind], histogram)
    clat = dict(times)
    if histogram:
        bins = bins_of(histogram)
        clat["percentile"] = {f"{percent:.6f}": ns for percent, ns in percentiles_of(bins)}
        clat["bins"] = {str(ns): count for ns, count in bins.items()}
    direction: dict[str, Any] = {
        "io_bytes": counts["bytes"],
        "io_kbytes": counts["bytes"] // 1024,
        "bw_bytes": round(counts["bytes"] * a_second),
        "bw": round(counts["bytes"] * a_second / 1024),
        "iops": round(counts["requests"] * a_second, 6),
        "runtime": runtime_ms(summary) if counts["requests"] else 0,
        "total_ios": counts["requests"],
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": dict(_NO_TIMES),
        "clat_ns": clat,
        "lat_ns": times,
    }
    for what, names in zip(("bw", "iops"), _SAMPLES, strict=True):
        direction |= {f"{what}_{name}": 0 for name in names} | {f"{what}_samples": 0}
    return direction


def _times(latency: dict[str, Any], histogram: Histogram) -> dict[str, Any]:
    """Return fio's latency figures in ns. Without a histogram, the shortest latency is not known."""
    if not latency["requests"]:
        return dict(_NO_TIMES)
    times = {
        "max": round(latency["max_us"] * 1e3),
        "mean": round(latency["mean_us"] * 1e3, 6),
        "stddev": round(latency["deviation_us"] * 1e3, 6),
        "N": latency["requests"],
    }
    return {"min": least_of(histogram), **times} if histogram else times
