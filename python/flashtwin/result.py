"""Result of a run."""

from __future__ import annotations

import json
import os
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import fio
from ._support import tables, words
from ._support.record import Kind, Record, save_record
from .errors import FlashtwinError
from .hgrm import write_hgrm

if TYPE_CHECKING:
    import pyarrow as pa

    from ._core import Columns, Histogram
    from ._theory import Beside
    from .timeline import Timeline


class Result:
    """The results of one run. Print it, or read `summary`; names end in their units.

    The result is determined by device, workload and seed: the same run gives the same bytes. Times are
    virtual, except `wall_s`.

    Attributes:
        summary: all counters and measures; docs/python.md lists the keys.
        requests: the per-request log as a `pyarrow.Table` (with `log=True`), one row per measured request in
            order of completion. Times are picoseconds; `link_ps` to `buffer_ps` are the parts of
            `response_ps` and sum to it exactly. None if no log was requested.
        gc_intervals: collections of the members of an array as a `pyarrow.Table` (with `gc_timeline=True`):
            `member`, `begin_ns`, `end_ns` from the start of the measurement, `kind` ("forced" by the
            coordinator, or its "own"). One row for each span in which chips of the member were in GC.
        wall_s: seconds of real time that the simulation took: "precondition", "warmup" and "measured". It is
            not in `summary` or in the JSON, because it differs from run to run.
        path: copies of the simulator's code in use at the end of the run, such as "plain front end, msr
            flash" (ARCHITECTURE.md, "Paths"). It is not in the JSON, because results do not depend on it.
        timeline: activity of every part of the device in a window (with `timeline=Window(...)`).
        label: its name beside other runs: its policy, or what differs in a comparison of placements.
        beside: measured values for which a closed form holds, with the form (docs/theory.md): `name`,
            `measured`, `expected`, `difference`. It is not in the JSON.
    """

    def __init__(
        self,
        as_json: str,
        text: str,
        histograms: tuple[Histogram, Histogram, Histogram],
        requests: pa.Table | None,
        *,
        gc_columns: Columns | None = None,
        history: str | None = None,
        timeline: Timeline | None = None,
        wall_s: dict[str, float] | None = None,
        path: str = "",
    ) -> None:
        self._history = history
        self.timeline = timeline
        self.wall_s = wall_s or {}
        self.path = path
        self.beside: list[Beside] = []
        self.summary: dict[str, Any] = json.loads(as_json)
        self.label = self.policy
        self.requests: pa.Table | None = requests
        self.gc_intervals: pa.Table | None = None if gc_columns is None else tables.gc_table(gc_columns)
        self._text = text
        self._histograms = dict[str, "Histogram"](zip(("read", "write", "all"), histograms, strict=True))

    @property
    def policy(self) -> str:
        """The buffer's policy."""
        return str(self.summary["policy"])

    @property
    def latency(self) -> dict[str, Any]:
        """Response times of reads and writes together, in microseconds.

        `mean_us`, `deviation_us`, `variation` (the coefficient of variation: the deviation as a share
        of the mean), `p50_us`, `p75_us`, `p90_us`, `p95_us`, `p99_us`, `p995_us` (99.5 %), `p999_us`,
        `p9999_us` (percentiles exact to three digits, by HdrHistogram), `max_us`, and `parts_us`, the
        parts of the mean. Reads and writes alone: `summary["read"]`, `summary["write"]`.
        """
        return dict(self.summary["all"])

    @property
    def breakdown(self) -> dict[str, float]:
        """Return the parts of the mean response time of reads and writes, in microseconds; they sum to it.

        docs/guide.md lists the parts. Those that begin with `slot_` are the wait for a buffer slot, split by
        what the operation that freed the slot waited for.
        """
        return dict(self.summary["all"]["parts_us"])

    @property
    def hit_ratio(self) -> float:
        """Share of page accesses found in the buffer, from 0 to 1."""
        return float(self.summary["hits"]["ratio"])

    @property
    def device_write_amplification(self) -> float | None:
        """Return bytes programmed per byte that the host wrote, as a drive's health log counts them.

        The value is None if the host wrote nothing.
        """
        amplification: float | None = self.summary["health"]["device_write_amplification"]
        return amplification

    @property
    def gc_write_amplification(self) -> float | None:
        """Return pages programmed per page programmed for the host.

        The value is None if no page of the host was programmed.
        """
        amplification: float | None = self.summary["flash"]["gc_write_amplification"]
        return amplification

    @property
    def health(self) -> dict[str, Any]:
        """Return the drive's health log, in the units of NVMe, and a projected lifetime.

        `lifetime` is None unless the device has `wear.rated_erases` and the host wrote.
        """
        return dict(self.summary["health"])

    @property
    def passes(self) -> dict[str, Any] | None:
        """Return the passes of a repeated workload (`repeat`), else None.

        `device_write_amplification` is that of the last half of the passes, with the half width of its 95 %
        confidence interval; `is_level` is whether it has become level.
        """
        passes: dict[str, Any] | None = self.summary.get("passes")
        return passes

    @property
    def interrupted(self) -> bool:
        """Whether the results cover only a part of the workload."""
        return bool(self.summary["interrupted"])

    @cached_property
    def series(self) -> pa.Table:
        """Return the time series, one row per interval of virtual time; empty unless `series_s` was given."""
        return tables.series_table(self.summary["series"])

    @cached_property
    def history(self) -> pa.Table:
        """Return the history: one row per window of virtual time, at most 256; empty unless requested.

        `gc_share_by_chip` is a list: the share of the window that each chip spent collecting. On devices that
        write by units, `owners` is a list of owners of units with what they hold and moved. A value that
        does not exist for a window (the hit ratio without an access) is null.
        """
        return tables.history_table(self._recorded()["windows"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything except the request log to a file, from which `flashtwin.report` makes a page."""
        save_record(Path(path), self.record())

    def save_hgrm(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the distributions of response times, in us, in HdrHistogram's text format.

        Returns:
            The files: `path` (x.hgrm) for all requests and, if there were any, x.read.hgrm and x.write.hgrm
            for reads and writes alone.
        """
        return write_hgrm(self.record(), Path(path))

    def to_fio(self) -> str:
        """Format the run as fio would print it (docs/fio.md)."""
        return fio.to_text(self.record())

    def to_fio_json(self) -> str:
        """Format the run as fio would print it with `--output-format=json+` (docs/fio.md)."""
        return fio.to_json_plus(self.record())

    def record(self) -> Record:
        """Return what `save` writes."""
        recorded = self._recorded()
        return Record(self.summary, self._histograms, recorded["windows"], recorded["batches"])

    def _recorded(self) -> dict[str, list[dict[str, Any]]]:
        """Return the history of the run, in windows of time and in batches of requests."""
        if self._history is None:
            return {"windows": [], "batches": []}
        recorded: dict[str, list[dict[str, Any]]] = json.loads(self._history)
        return recorded

    def cdf(self, kind: Kind = "all") -> pa.Table:
        """Return the cumulative distribution of response times: `response_us`, and the `share` up to it."""
        return tables.cdf_table(self._histograms[kind])

    def gc_figure(self, path: str | Path, from_s: float = 0, until_s: float | None = None) -> None:
        """Draw the collections of each member of an array into a file (PNG, PDF, SVG ...).

        Args:
            path: the file.
            from_s: beginning, in seconds from the start of the measurement.
            until_s: end; None: the last request.
        """
        from . import plot

        array = self.summary["array"]
        panels = {array["coordination"] if array else "": self}
        plot.save(plot.collections(panels, from_s=from_s, until_s=until_s), path)

    def to_json(self) -> str:
        """Return the summary as JSON; equal runs give the same bytes."""
        return json.dumps(self.summary, indent=2)

    def __repr__(self) -> str:
        lines = [self._text.rstrip("\n")]
        if self.beside:
            lines.append(f"{'closed forms':<15}{'; '.join(map(str, self.beside))}")
            lines += [f"{'warning':<15}{warning}" for each in self.beside if (warning := each.warning())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for label, key in (("reads and writes", "all"), ("reads", "read"), ("writes", "write")):
            latency = self.summary[key]
            cells = [words.count(latency["requests"])]
            cells += [words.time(latency[name]) for name in _SHOWN]
            rows.append(f"<tr><th>{label}</th>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
        head = "".join(f"<th>{h}</th>" for h in ("", "requests", "mean", "p50", "p99", "p99.9", "max"))
        parts = ", ".join(
            f"{name.replace('_', ' ')} {words.time(us)}" for name, us in self.breakdown.items() if us
        )
        flash = self.summary["flash"]
        facts = [
            f"mean went to: {parts}",
            f"hit ratio {words.percent(self.hit_ratio)}, "
            f"device write amplification {words.digits_or_dash(self.device_write_amplification)}, "
            f"GC write amplification {words.digits_or_dash(self.gc_write_amplification)}, "
            f"{words.count(flash['erases'])} erases, {words.count(flash['pages_moved'])} pages moved",
        ]
        if self.interrupted:
            facts.append("<b>interrupted: these are the results so far</b>")
        title = f"{self.summary['device']}, {self.policy}: {self.summary['workload']}"
        return (
            f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table><p>{'<br>'.join(facts)}</p>"
        )


_SHOWN = ["mean_us", "p50_us", "p99_us", "p999_us", "max_us"]


class OutputError(FlashtwinError):
    """A file of a run could not be written. `result` has the complete result of the run."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result
