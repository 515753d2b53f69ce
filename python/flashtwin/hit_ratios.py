"""Hit ratios of policies without a device. Only the order of accesses matters, not time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _core
from ._policies import Choice, PolicyLike, read_choices
from ._support import terminal, words
from ._support.watch import OnProgress, Task, run_all
from .errors import FlashtwinError, Interrupted
from .traces import TraceOptions
from .workloads import Source, WorkloadLike, source

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

#: Size in bytes over which generated loads without a `range` are distributed.
_RANGE_BYTES = 1 << 32
#: Maximum size of a buffer in pages.
PAGES_MAX = 1 << 26


class HitRow(NamedTuple):
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
        evicted_dirty: number of pages evicted that had to be written to flash.
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

    @property
    def hit_ratio(self) -> float:
        """Fraction of the accesses that hit, from 0 to 1."""
        return self.hits / self.accesses if self.accesses else 0.0


class HitTable:
    """Hit ratios of policies in buffers of several sizes: rows that print as a table."""

    def __init__(self, rows: list[HitRow], page_bytes: int, workload: str, interrupted: bool = False) -> None:
        self.rows = rows
        self.page_bytes = page_bytes
        self.workload = workload
        self.interrupted = interrupted

    def __iter__(self) -> Iterator[HitRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: tuple[str, int]) -> HitRow:
        """Return the row of a policy and a capacity in pages."""
        for row in self.rows:
            if (row.policy, row.capacity_pages) == which:
                return row
        raise KeyError(which)

    @property
    def policies(self) -> list[str]:
        """Return the policies, in the given order."""
        return list(dict.fromkeys(row.policy for row in self.rows))

    @property
    def capacities_pages(self) -> list[int]:
        """Return the sizes of the buffer, in the given order."""
        return list(dict.fromkeys(row.capacity_pages for row in self.rows))

    @property
    def table(self) -> pa.Table:
        """Return a table with one row per policy and capacity."""
        import pyarrow as pa

        return pa.Table.from_pylist([{**row._asdict(), "hit_ratio": row.hit_ratio} for row in self.rows])

    def to_json(self) -> str:
        """Return all rows as JSON; equal workloads give the same bytes."""
        rows = [{**row._asdict(), "hit_ratio": row.hit_ratio} for row in self.rows]
        return json.dumps({"workload": self.workload, "page_bytes": self.page_bytes, "rows": rows}, indent=2)

    def figure(self, path: str | Path) -> None:
        """Draw hit ratio over capacity, one line per policy, into a file (PNG, PDF, SVG ...)."""
        from . import plot

        plot.save(plot.hits(self), path)

    def _cells(self) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
        """Yield each policy with its cells, one for each capacity.

        A cell has a text, and whether the policy has the most hits at this capacity, MIN excluded.
        """
        by_place = {(row.policy, row.capacity_pages): row for row in self.rows}
        best = {
            capacity: max(
                (r.hits for r in self.rows if r.capacity_pages == capacity and r.policy != "min"), default=-1
            )
            for capacity in self.capacities_pages
        }
        ranked = self._ranked()
        for policy in self.policies:
            cells = []
            for capacity in self.capacities_pages:
                row = by_place.get((policy, capacity))
                said = words.percent(row.hit_ratio) if row else ""
                cells.append(
                    (said, ranked and row is not None and policy != "min" and row.hits == best[capacity])
                )
            yield policy, cells

    def _ranked(self) -> bool:
        """Whether there are several policies besides MIN, so that the best ones are marked.

        Hits are exact counts without intervals, so every difference counts (D-185).
        """
        return len({*self.policies} - {"min"}) > 1

    def legend(self) -> str | None:
        """Return the explanation of the star; None if no cell has a star."""
        if not self._ranked():
            return None
        return "* most hits" + (" except min" if "min" in self.policies else "")

    def rich_tables(self, columns: int) -> list[Table]:
        """Build tables of policies by capacities for a terminal of the given width.

        Capacities that do not fit beside one another are in additional tables.
        """
        from rich.text import Text

        heads = [words.size(capacity * self.page_bytes) for capacity in self.capacities_pages]
        rows: list[list[str | Text]] = [
            [policy, *(Text(text + (" *" if best else "  "), "bold" if best else "") for text, best in cells)]
            for policy, cells in self._cells()
        ]
        return terminal.tables(["hit ratio", *heads], rows, 1, columns)

    def __repr__(self) -> str:
        return "\n".join(filter(None, [terminal.as_text(self.rich_tables(200)), self.legend()]))

    def _repr_html_(self) -> str:
        sizes = [words.size(capacity * self.page_bytes) for capacity in self.capacities_pages]
        head = "".join(f"<th>{size}</th>" for size in sizes)
        rows = []
        for policy, cells in self._cells():
            row = "".join(f"<td>{f'<b>{text}</b>' if best else text}</td>" for text, best in cells)
            rows.append(f"<tr><th style='text-align:left'>{escape(policy)}</th>{row}</tr>")
        return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def hits(
    workload: WorkloadLike,
    policies: Sequence[PolicyLike],
    capacities_pages: Sequence[int | str],
    *,
    page_bytes: int = 4096,
    seed: int = 1,
    requests_max: int | None = None,
    trace_options: TraceOptions | None = None,
    threads: int = 1,
    progress: OnProgress | None = None,
) -> HitTable:
    """Count the hits of policies in buffers of several sizes, without a device.

    Requests are split into pages, which are accessed in order. Trims remove their pages from the buffer;
    flushes are ignored. The buffer is empty at first. Write-backs take no time, and no chip is ever busy.
    Policies that avoid busy chips therefore evict as they do when all chips are idle.

    Args:
        workload: as for `run`.
        policies: names as for `run`, or classes of the user. "min" is Belady's optimum, the maximum number of
            hits that any policy can have.
        capacities_pages: sizes of the buffer in pages, or as shares of the distinct pages of the workload,
            such as "10%".
        page_bytes: size of a page in bytes.
        seed: seed of a generated load.
        requests_max: maximum number of requests.
        trace_options: how to read the trace, if the detected form is wrong.
        threads: number of policies that run at the same time. Results do not depend on it.
        progress: function to call about ten times a second with a `Progress`.

    Raises:
        FlashtwinError: an argument is wrong; the message gives the remedy.
        Interrupted: on Ctrl-C; its `partial` has the counts so far, or None.
    """
    choices = read_choices(policies)
    check_capacities("capacities_pages", capacities_pages)
    if not capacities_pages:
        raise FlashtwinError("capacities_pages: none given; give one or more, as in [256, 8192]")
    if threads < 1:
        raise FlashtwinError(f"threads: {threads}: give 1 or more")
    opened = source(workload, trace_options)
    requests = open_finite(opened, seed, requests_max)
    described = requests.describe()
    total = requests.requests_total or opened.estimate_requests()
    # The workload is read on a separate thread. The first policies process it while it is being read.
    accesses = _core.Accesses.read(requests, page_bytes=page_bytes, requests_max=requests_max)
    different = 0
    if any(isinstance(each, str) for each in capacities_pages):
        counting = Task("different pages", partial(_core.lru_curve, accesses), total)
        (lru,), interrupted = run_all([counting], threads, progress)
        if lru is None or interrupted:
            raise Interrupted(None)
        different = cast(_core.LruHits, lru).pages
    capacities = [capacity_in_pages(each, different) for each in capacities_pages]
    if len({*capacities}) < len(capacities):
        raise FlashtwinError("capacities_pages: the same one is given twice")
    tasks = [
        Task(f"{choice.label} {pages} pages", partial(_count, accesses, choice, pages), total)
        for choice in choices
        for pages in capacities
    ]
    results, interrupted = run_all(tasks, threads, progress)
    rows = [cast(HitRow, row) for row in results if row is not None]
    table = HitTable(rows, page_bytes, described, interrupted)
    if interrupted:
        raise Interrupted(table if rows else None)
    return table


def check_capacities(name: str, capacities: Sequence[int | str]) -> None:
    """Check sizes of the buffer. Error messages call the argument `name`."""
    for each in capacities:
        share = words.read_percent(each) if isinstance(each, str) else None
        if isinstance(each, str) and not share:
            raise FlashtwinError(f'{name}: {each!r}: give pages, or a share of the pages such as "10%"')
        if not isinstance(each, str) and not 1 <= each <= PAGES_MAX:
            raise FlashtwinError(f"{name}: {each}: give pages from 1 to {PAGES_MAX}")


def capacity_in_pages(capacity: int | str, different: int) -> int:
    """Return the size of a buffer in pages. Shares such as "10%" refer to the number `different` of pages."""
    if isinstance(capacity, int):
        return capacity
    return max(1, round((words.read_percent(capacity) or 0.0) * different))


def open_finite(opened: Source, seed: int, requests_max: int | None) -> _core.Workload:
    """Open a workload that must have an end."""
    requests = opened.open(_RANGE_BYTES, seed)
    if opened.path is None and requests.requests_total is None and requests_max is None:
        raise FlashtwinError(
            f"{opened.text}: the load is endless; add requests=N to it, or give requests_max "
            "(--requests-max N)"
        )
    return requests


def _count(
    accesses: _core.Accesses, choice: Choice, capacity_pages: int, control: _core.Control
) -> HitRow | None:
    user = choice.instance(capacity_pages)
    counted = _core.count_hits(
        accesses,
        choice.name or "lru",
        list(choice.settings.items()),
        user,
        control,
        capacity_pages=capacity_pages,
    )
    if counted is None:
        return None
    counts = {name: counted[name] for name in HitRow._fields if name in counted}
    return HitRow(policy=str(choice.label), capacity_pages=capacity_pages, **cast(dict[str, Any], counts))
