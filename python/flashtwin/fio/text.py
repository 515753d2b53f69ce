"""Results in the form of fio's output for a job with `group_reporting`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .jsonplus import job_of, runtime_ms

if TYPE_CHECKING:
    from .._support.record import Record

_PER_LINE = 4
_SHARES_PER_LINE = 5
#: Units of latencies: name, nanoseconds.
_UNITS = (("nsec", 1), ("usec", 1000), ("msec", 1_000_000))


def number(value: float, *, digits: int = 4, base: int = 1000) -> str:
    """Format a number as fio does: in full if it is short, otherwise with a prefix such as k or Ki."""
    whole, rest, prefix = int(value), None, 0
    while len(str(whole)) > digits and prefix < len(_PREFIXES) - 1:
        rest = whole % base
        whole //= base
        prefix += 1
    name = _PREFIXES[prefix] + ("i" if base == 1024 and prefix else "")
    name = name.replace("k", "K") if base == 1024 else name
    if rest is None:
        return str(whole)
    places = digits - len(str(whole))
    if places <= 1:
        return f"{whole + (rest * 2 >= base)}{name}"
    fraction = f"{rest / base:.{places - 1}f}"
    # If the decimals are rounded up to 1, the whole part is increased by 1.
    return f"{whole + int(fraction[0])}{fraction[1:]}{name}"


_PREFIXES = ("", "k", "M", "G", "T", "P")


def to_text(record: Record) -> str:
    """Return a run in the form of fio's text. docs/fio.md lists the lines that are absent."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    summary, job = record.summary, job_of(record)
    options = job["job options"]
    given = [f"{key}={options[key]}" for key in ("rw", "bs", "ioengine", "iodepth") if key in options]
    yield f"{job['jobname']}: (g=0): {', '.join(given)}"
    yield f"flashtwin-{summary['flashtwin_version']}"
    yield ""
    yield f"{job['jobname']}: (groupid=0, jobs=1): err= 0: pid=0"
    for name in ("read", "write", "trim"):
        if job[name]["total_ios"]:
            yield from _direction(name, job[name])
    if job["sync"]["total_ios"]:
        yield "  fsync/fdatasync/sync_file_range:"
        yield _times("sync", job["sync"]["lat_ns"])
    for unit, label in (("ns", "nsec"), ("us", "usec"), ("ms", "msec")):
        shares = [f"{name}={share:.2f}%" for name, share in job[f"latency_{unit}"].items() if share >= 0.005]
        for at in range(0, len(shares), _SHARES_PER_LINE):
            yield f"  lat ({label})   : {', '.join(shares[at : at + _SHARES_PER_LINE])}"
    totals = [job[name]["total_ios"] for name in ("read", "write", "trim", "sync")]
    yield f"     issued rwts: total={','.join(map(str, totals))} short=0,0,0,0 dropped=0,0,0,0"
    if "latency_depth" in job:
        yield f"     latency   : target=0, window=0, percentile=100.00%, depth={job['latency_depth']}"
    yield ""
    yield "Run status group 0 (all jobs):"
    run = runtime_ms(summary)
    for name in ("read", "write", "trim"):
        if job[name]["total_ios"]:
            binary, decimal = _rates(job[name])
            size = job[name]["io_bytes"]
            yield (
                f"{name.upper():>7}: bw={binary} ({decimal}), {binary}-{binary} ({decimal}-{decimal}), "
                f"io={_bytes(size, 1024)} ({_bytes(size, 1000)}), run={run}-{run}msec"
            )


def _bytes(size: float, base: int) -> str:
    return f"{number(size, base=base)}B"


def _rates(direction: dict[str, Any]) -> tuple[str, str]:
    rate = direction["bw_bytes"]
    return f"{_bytes(rate, 1024)}/s", f"{_bytes(rate, 1000)}/s"


def _direction(name: str, direction: dict[str, Any]) -> Iterator[str]:
    binary, decimal = _rates(direction)
    done = f"({_bytes(direction['io_bytes'], 1024)}/{direction['runtime']}msec)"
    yield f"  {name}: IOPS={number(direction['iops'])}, BW={binary} ({decimal}){done}"
    clat = direction["clat_ns"]
    yield _times("clat", clat)
    yield _times(" lat", direction["lat_ns"])
    if "percentile" not in clat:
        return
    found = list(clat["percentile"].items())
    unit, length = _unit(found[0][1], found[-1][1], 0)
    yield f"    clat percentiles ({unit}):"
    cells = [f"{float(percent):5.2f}th=[{-(-ns // length):5}]" for percent, ns in found]
    for at in range(0, len(cells), _PER_LINE):
        more = "," if at + _PER_LINE < len(cells) else ""
        yield f"     | {', '.join(cells[at : at + _PER_LINE])}{more}"


def _unit(least: float, most: float, deviation: float | None) -> tuple[str, int]:
    """Return the unit that fio would choose: the largest one in which small values are still visible."""
    chosen = _UNITS[0]
    for longer in _UNITS[1:]:
        of = chosen[1]
        if least / of <= 2000 or most / of <= 99_999 or (deviation and deviation / of <= 1000):
            break
        chosen = longer
    return chosen


def _times(name: str, times: dict[str, Any]) -> str:
    least = times.get("min")
    unit, length = _unit(times["mean"] if least is None else least, times["max"], times["stddev"])
    shortest = "" if least is None else f"min={number(least // length, digits=6)}, "
    longest = number(times["max"] // length, digits=6)
    mean, deviation = times["mean"] / length, times["stddev"] / length
    return f"    {name} ({unit}): {shortest}max={longest}, avg={mean:5.2f}, stdev={deviation:5.2f}"
