"""Hit ratios and write-backs by size of the buffer.

LRU needs one pass for all sizes, other policies a run per size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from . import _core
from ._policies import Choice, PolicyLike, read_choices
from ._support import terminal, words
from ._support.watch import OnProgress, Task, run_all
from .errors import FlashtwinError, Interrupted
from .hit_ratios import capacity_in_pages, check_capacities, open_finite
from .traces import TraceOptions
from .workloads import WorkloadLike, source

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

#: Number of sizes of a curve if none is given.
SIZES = 16
#: Smallest size of a curve, as a fraction of the workload's distinct pages.
_SMALLEST = 1 / 1024
#: Number of parts of a sample. The error of an estimate is computed from their differences.
_PARTS = 8
#: Largest number of accesses for which the exact curve is computed in addition to a sampled one. With more
#: accesses, the exact curve would take too long.
_EXACT_MAX = 4_000_000
#: Number of sizes at which a sampled curve is compared with the exact curve.
_COMPARED = 100


class CurveRow(NamedTuple):
    """Counts of one policy in a buffer of one size. Belady's optimum (MIN) has no value for some of them.

    Attributes:
        policy: name of the policy, as given.
        capacity_pages: size of the buffer in pages.
        accesses: number of pages read and written.
        hits: number of accessed pages that were in the buffer.
        reads: number of pages read.
        read_hits: number of read pages that were in the buffer.
        writes: number of pages written.
        write_hits: number of written pages that were in the buffer.
        evicted_clean: number of pages evicted without a write to flash.
        evicted_dirty: number of pages evicted that had to be written to flash (write-backs).
        destages: number of evictions that wrote pages to flash.
        method: method of counting: `one pass` (exact, LRU), `run` (exact), `sample` (LRU, from a sample of
            the pages), or `miniature` (a run at a reduced size with a sample of the pages).
        error: half-width of the 95 % interval of the hit ratio, estimated from disjoint parts of the sample;
            None if the counts are exact.
    """

    policy: str
    capacity_pages: int
    accesses: int
    hits: int
    reads: int | None
    read_hits: int | None
    writes: int | None
    write_hits: int | None
    evicted_clean: int | None
    evicted_dirty: int | None
    destages: int | None
    method: str
    error: float | None

    @property
    def hit_ratio(self) -> float:
        """Fraction of the accesses that hit, from 0 to 1."""
        return self.hits / self.accesses if self.accesses else 0.0

    @property
    def write_hit_ratio(self) -> float | None:
        """Fraction of the writes that hit, from 0 to 1; None without writes."""
        return self.write_hits / self.writes if self.writes and self.write_hits is not None else None

    @property
    def write_backs_per_write(self) -> float | None:
        """Pages written back per page written; None without writes."""
        return self.evicted_dirty / self.writes if self.writes and self.evicted_dirty is not None else None

    @property
    def destage_pages(self) -> float | None:
        """Mean number of pages that one eviction writes back; None without write-backs."""
        return (
            self.evicted_dirty / self.destages if self.destages and self.evicted_dirty is not None else None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return counts and ratios as plain values."""
        ratios = ("hit_ratio", "write_hit_ratio", "write_backs_per_write", "destage_pages")
        return {**self._asdict(), **{name: getattr(self, name) for name in ratios}}


class CurveTable:
    """Hit ratios and write-backs of policies, by size of the buffer: rows that print as tables.

    Attributes:
        rows: one row per policy and size.
        page_bytes: size of a page.
        workload: description of the workload.
        pages: number of distinct pages that the workload accesses; an estimate if pages were sampled.
        sample: fraction of the pages that was sampled, or None.
        pages_followed: number of distinct pages in the sample.
        measured_error: mean and maximum difference, over 100 sizes, between LRU's hit ratio estimated from
            the sample and its exact hit ratio; None if nothing was sampled, or if the workload has too many
            accesses for a second pass.
        interrupted: whether rows are missing because Ctrl-C was pressed.
    """

    def __init__(
        self,
        rows: list[CurveRow],
        page_bytes: int,
        workload: str,
        pages: int,
        *,
        sample: float | None = None,
        pages_followed: int = 0,
        measured_error: tuple[float, float] | None = None,
        interrupted: bool = False,
    ) -> None:
        self.rows = rows
        self.page_bytes = page_bytes
        self.workload = workload
        self.pages = pages
        self.sample = sample
        self.pages_followed = pages_followed
        self.measured_error = measured_error
        self.interrupted = interrupted

    def __iter__(self) -> Iterator[CurveRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def policies(self) -> list[str]:
        """Return the policies, in the given order."""
        return list(dict.fromkeys(row.policy for row in self.rows))

    @property
    def capacities_pages(self) -> list[int]:
        """Return the sizes of the buffer, in ascending order."""
        return sorted({row.capacity_pages for row in self.rows})

    @property
    def table(self) -> pa.Table:
        """Return a table with one row per policy and size."""
        import pyarrow as pa

        return pa.Table.from_pylist([row.to_dict() for row in self.rows])

    def to_json(self) -> str:
        """Return all rows as JSON. Equal workloads give the same bytes."""
        fields = {
            "workload": self.workload,
            "page_bytes": self.page_bytes,
            "pages": self.pages,
            "sample": self.sample,
            "pages_followed": self.pages_followed,
            "measured_error": self.measured_error
            and dict(zip(("mean", "max"), self.measured_error, strict=True)),
            "rows": [row.to_dict() for row in self.rows],
        }
        return json.dumps(fields, indent=2)

    def save(self, path: str | Path) -> None:
        """Write the rows as CSV, or as Parquet if the name ends in .parquet."""
        from ._support.tables import write_table

        write_table(self.table, Path(path), "the curve")

    def figure(self, path: str | Path) -> None:
        """Draw hit ratio and write-backs over the size, one line per policy, into a file (PNG, PDF ...)."""
        from . import plot

        plot.save(plot.curve(self), path)

    def summary(self) -> list[str]:
        """Return lines about the workload and about the error of a sample."""
        lines = [f"{words.count(self.pages)} different pages ({words.size(self.pages * self.page_bytes)})"]
        if self.sample is None:
            return lines
        lines[0] += (
            f", estimated from {words.count(self.pages_followed)} sampled at a rate of {self.sample:g}"
        )
        lines.append(
            "+-: half-width of the 95 % interval of the hit ratio, from 8 disjoint parts of the sample"
        )
        if self.measured_error is not None:
            mean, largest = (words.percent(error) for error in self.measured_error)
            lines.append(f"measured against the exact curve of lru: mean error {mean}, maximum {largest}")
        return lines

    def rich_tables(self, columns: int) -> list[Table]:
        """Build tables for a terminal of the given width, one for each policy."""
        found: list[Table] = []
        for policy in self.policies:
            rows = [row for row in self.rows if row.policy == policy]
            heads = [policy, "hit ratio", "write hits", "write-backs", "per write", "destage pages"]
            sampled = any(row.error is not None for row in rows)
            if sampled:
                heads.insert(2, "+-")
            cells = []
            for row in rows:
                cell = [
                    words.size(row.capacity_pages * self.page_bytes),
                    words.percent(row.hit_ratio),
                    _or_dash(words.percent, row.write_hit_ratio),
                    _or_dash(words.count, row.evicted_dirty),
                    _or_dash(words.digits, row.write_backs_per_write),
                    _or_dash(words.digits, row.destage_pages),
                ]
                if sampled:
                    cell.insert(2, _or_dash(words.percent, row.error))
                cells.append(cell)
            found += terminal.tables(heads, cells, 1, columns)
        return found

    def __repr__(self) -> str:
        return "\n".join([terminal.as_text(self.rich_tables(200)), *self.summary()])


def _or_dash(form: Callable[[float], str], value: float | None) -> str:
    return "-" if value is None else form(value)


def curve(
    workload: WorkloadLike,
    policies: Sequence[PolicyLike] = ("lru",),
    sizes: int | Sequence[int | str] | Literal["all"] = SIZES,
    *,
    sample: float | None = None,
    page_bytes: int = 4096,
    seed: int = 1,
    requests_max: int | None = None,
    trace_options: TraceOptions | None = None,
    threads: int | None = None,
    progress: OnProgress | None = None,
) -> CurveTable:
    """Compute hit ratios and write-backs of policies by size of the buffer, without a device.

    The counts of LRU are exact at all sizes after one pass over the workload. Any other policy is run at each
    size. Requests are split and counted as in `hits`.

    Args:
        workload: as for `run`.
        policies: as for `hits`.
        sizes: sizes of the buffer. A number N stands for N sizes in a geometric series up to the number of
            distinct pages of the workload. A list has sizes in pages, or shares of that number such as "10%".
            "all" stands for every size up to that number (LRU only).
        sample: fraction of the pages to follow, chosen by hash; by default all pages. From a sample, LRU is
            estimated by SHARDS, other policies by miniature simulation.
        page_bytes: size of a page in bytes.
        seed: seed of a generated load.
        requests_max: maximum number of requests.
        trace_options: how to read the trace, if the detected form is wrong.
        threads: number of runs at the same time (default: the number of processors). Results do not depend on
            it.
        progress: function to call about ten times a second with a `Progress`.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the remedy.
        Interrupted: on Ctrl-C; its `partial` has the rows so far, or None.
    """
    choices = read_choices(policies)
    _check(choices, sizes, sample)
    if threads is not None and threads < 1:
        raise FlashtwinError(f"threads: {threads}: give 1 or more")
    threads = threads or cpu_count() or 1
    opened = source(workload, trace_options)
    requests = open_finite(opened, seed, requests_max)
    described = requests.describe()
    total = requests.requests_total or opened.estimate_requests()
    accesses = _core.Accesses.read(requests, page_bytes=page_bytes, requests_max=requests_max)

    def run(tasks: list[Task]) -> list[Any]:
        results, interrupted = run_all(tasks, threads, progress)
        if interrupted:
            raise Interrupted(None)
        return results

    work = partial(_core.lru_curve, accesses, rate=sample)
    (lru,) = run([Task("lru, all sizes", work, total)])
    counts = lru.at(1)[0]
    measured = None
    if sample is not None and 0 < counts["accesses"] <= _EXACT_MAX:
        (exact,) = run([Task("lru, exact", partial(_core.lru_curve, accesses), total)])
        measured = _difference(lru, exact)
    capacities = _capacities(sizes, lru.pages)
    tasks: list[Task] = []
    for choice in choices:
        if not _in_one_pass(choice):
            tasks += [
                Task(
                    f"{choice.label} {pages} pages",
                    partial(_count, accesses, (choice, pages, part), sample),
                    total,
                )
                for pages in capacities
                for part in ([None] if sample is None else [None, *range(_PARTS)])
            ]
    results, interrupted = run_all(tasks, threads, progress)
    by_place = dict(filter(None, cast(list[Any], results)))
    rows = []
    for choice in choices:
        for pages in capacities:
            if _in_one_pass(choice):
                counts, error = lru.at(pages)
                method = "one pass" if sample is None else "sample"
            else:
                places = [(choice.label, pages, part) for part in (None, *range(_PARTS))]
                if sample is None:
                    places = places[:1]
                if any(place not in by_place for place in places):
                    continue
                counts, *parts = (by_place[place] for place in places)
                ratios = [part["hits"] / max(part["accesses"], 1) for part in parts]
                error = _core.half_width(ratios) if ratios else None
                method = "run" if sample is None else "miniature"
            rows.append(CurveRow(str(choice.label), pages, **counts, method=method, error=error))
    table = CurveTable(
        rows,
        page_bytes,
        described,
        lru.pages,
        sample=sample,
        pages_followed=lru.pages_followed,
        measured_error=measured,
        interrupted=interrupted,
    )
    if interrupted:
        raise Interrupted(table if rows else None)
    return table


def _in_one_pass(choice: Choice) -> bool:
    """Whether the policy is a stack algorithm, for which one pass gives the counts at all sizes."""
    return choice.name == "lru"


def _check(choices: Sequence[Choice], sizes: int | Sequence[int | str] | str, sample: float | None) -> None:
    if sample is not None and not 0 < sample <= 1:
        raise FlashtwinError(f"sample: {sample}: give a share above 0 and up to 1, as in 0.01")
    if isinstance(sizes, str):
        if sizes != "all":
            raise FlashtwinError(
                f"sizes: {sizes!r}: give a number of sizes, a list of sizes in pages, or all"
            )
        other = next((choice for choice in choices if not _in_one_pass(choice)), None)
        if other is not None:
            raise FlashtwinError(
                f"sizes: all: {other.label} is run at each size; give a number of sizes or a list"
            )
    elif isinstance(sizes, int):
        if not 1 <= sizes <= 1000:
            raise FlashtwinError(f"sizes: {sizes}: give a number of sizes from 1 to 1000, or a list of sizes")
    elif not sizes:
        raise FlashtwinError("sizes: none given; give one or more, as in [256, 8192]")
    else:
        check_capacities("sizes", sizes)


def _capacities(sizes: int | Sequence[int | str] | str, pages: int) -> list[int]:
    """Return the sizes in pages, in ascending order."""
    last = max(pages, 1)
    if isinstance(sizes, str):
        return list(range(1, last + 1))
    if isinstance(sizes, int):
        first = max(1.0, last * _SMALLEST)
        steps = max(sizes - 1, 1)
        return (
            sorted({round(last * (first / last) ** (1 - i / steps)) for i in range(sizes)})
            if sizes > 1
            else [last]
        )
    return sorted({capacity_in_pages(each, pages) for each in sizes})


def _difference(lru: _core.LruHits, exact: _core.LruHits) -> tuple[float, float]:
    """Return mean and maximum difference between sampled and exact hit ratio, over equidistant sizes."""
    pages = exact.pages
    sizes = sorted({max(1, pages * i // _COMPARED) for i in range(1, _COMPARED + 1)})
    errors = []
    for size in sizes:
        (ours, _), (theirs, _) = lru.at(size), exact.at(size)
        errors.append(abs(ours["hits"] - theirs["hits"]) / theirs["accesses"])
    return sum(errors) / len(errors), max(errors)


def _count(
    accesses: _core.Accesses,
    place: tuple[Choice, int, int | None],
    sample: float | None,
    control: _core.Control,
) -> tuple[tuple[str | None, int, int | None], dict[str, Any]] | None:
    """Run a policy at one size, on all pages of the sample or on one part of it.

    Return the policy, size and part to which the counts belong, and the counts; None if `control` stopped the
    run.
    """
    choice, capacity_pages, part = place
    share = (sample or 1.0) / (1 if part is None else _PARTS)
    simulated = max(1, round(capacity_pages * share))
    counted = _core.count_hits(
        accesses,
        choice.name or "lru",
        list(choice.settings.items()),
        choice.instance(simulated),
        control,
        capacity_pages=simulated,
        rate=sample,
        part=part,
    )
    return None if counted is None else ((choice.label, capacity_pages, part), counted)
