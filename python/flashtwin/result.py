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
    from ._support.scaling import Scaled
    from ._theory import Beside
    from .timeline import Timeline


class Result:
    """Results of one run. Print the object, or read `summary`. Names of figures end in their units.

    Device, workload, options and seed determine the result byte for byte. All times except `wall_s` are
    virtual.

    Attributes:
        summary: all counters and measures; docs/python.md lists the keys.
        requests: the per-request log as a `pyarrow.Table`, with one row per measured request in order of
            completion. Times are in picoseconds. The columns `link_ps` to `buffer_ps` are the parts of
            `response_ps`, and add up to it exactly. None unless the run had `log=True`.
        gc_intervals: collections of the members of an array as a `pyarrow.Table` (with `gc_timeline=True`).
            Each row is a span in which chips of a member were in GC: `member`, `begin_ns` and `end_ns` from
            the start of the measurement, and `kind` ("forced" by the coordinator, or the member's "own").
        wall_s: wall-clock time in seconds that the parts of the simulation took: "precondition", "warmup" and
            "measured". It is not in `summary` or in the JSON, because it differs from run to run.
        path: names of the code paths in use at the end of the run, such as "plain front end, msr flash"
            (ARCHITECTURE.md, "Paths"). It is not in the JSON, because results do not depend on it.
        timeline: activity of every part of the device in a window (with `timeline=Window(...)`).
        label: name of the run beside other runs: its policy or, in a comparison of placements, its rules.
        beside: measured values for which there is a closed form, each beside that form (docs/theory.md):
            `name`, `measured`, `expected`, `difference`. It is not in the JSON.
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

    def set_scale(self, scaled: Scaled) -> None:
        """Record that the run predicts the results of a larger device."""
        full, small = scaled.full.exported_bytes, scaled.spec.exported_bytes
        self.summary["scale"] = {"factor": scaled.factor, "full_bytes": full, "bytes": small}
        size = f"{words.size(small)} in place of {words.size(full)}"
        lines = [self._text.rstrip(), f"{'scale':<15}1/{scaled.factor:.1f}: {size} (docs/scaling.md)"]
        if scaled.doubt:
            self.summary["warnings"].append(f"scale: {scaled.doubt}")
            lines.append(f"{'warning':<15}scale: {scaled.doubt}")
        self._text = "\n".join(lines)

    @property
    def policy(self) -> str:
        """The buffer's policy."""
        return str(self.summary["policy"])

    @property
    def latency(self) -> dict[str, Any]:
        """Response times of reads and writes together, in microseconds.

        The keys are `mean_us`, `deviation_us`, `variation` (coefficient of variation: deviation divided by
        mean), `p50_us`, `p75_us`, `p90_us`, `p95_us`, `p99_us`, `p995_us` (99.5 %), `p999_us`, `p9999_us`,
        `max_us`, and `parts_us`, the parts of the mean. Percentiles are exact to three digits (HdrHistogram).
        `summary["read"]` and `summary["write"]` have the same keys.
        """
        return dict(self.summary["all"])

    @property
    def breakdown(self) -> dict[str, float]:
        """Return the parts of the mean response time of reads and writes, in microseconds.

        The parts add up to the mean; docs/guide.md describes them. Parts that begin with `slot_` add up to
        the wait for a buffer slot. Of these, `slot_order` is the time until the flash operation that freed
        the slot was queued. The others are the parts of this operation's time.
        """
        return dict(self.summary["all"]["parts_us"])

    @property
    def hit_ratio(self) -> float:
        """Fraction of page accesses found in the buffer, from 0 to 1."""
        return float(self.summary["hits"]["ratio"])

    @property
    def device_write_amplification(self) -> float | None:
        """Return device write amplification by the health log: bytes programmed per byte of the host.

        The value is None if the host wrote nothing.
        """
        amplification: float | None = self.summary["health"]["device_write_amplification"]
        return amplification

    @property
    def gc_write_amplification(self) -> float | None:
        """Return GC write amplification: pages programmed per page programmed for the host.

        The value is None if no page was programmed for the host.
        """
        amplification: float | None = self.summary["flash"]["gc_write_amplification"]
        return amplification

    @property
    def health(self) -> dict[str, Any]:
        """Return the drive's health log, in the units of NVMe, and a projected lifetime.

        `lifetime` is None if the device has no `wear.rated_erases` or the host wrote nothing.
        """
        return dict(self.summary["health"])

    @property
    def passes(self) -> dict[str, Any] | None:
        """Return write amplification over the passes of a repeated workload (`repeat`), otherwise None.

        `device_write_amplification` is that of the last half of the passes, with the half-width of its 95 %
        confidence interval. `is_level` shows whether write amplification no longer changes from pass to pass.
        """
        passes: dict[str, Any] | None = self.summary.get("passes")
        return passes

    @property
    def interrupted(self) -> bool:
        """Whether the results cover only a part of the workload."""
        return bool(self.summary["interrupted"])

    @cached_property
    def series(self) -> pa.Table:
        """Return the time series, one row per interval of virtual time.

        The table is empty unless the run had `series_s`.
        """
        return tables.series_table(self.summary["series"])

    @cached_property
    def history(self) -> pa.Table:
        """Return the history: one row per window of virtual time, at most 256; empty without `history=True`.

        `gc_share_by_chip` is a list with the fraction of the window that each chip was in GC. On devices that
        write by units (groups of blocks), `owners` has an entry per owner (a group of pages that fills units
        of its own): the pages that it holds, and its moved pages. A value that does not exist is null, such
        as the hit ratio of a window without an access.
        """
        return tables.history_table(self._recorded()["windows"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all results but the request log to a file, from which `flashtwin.report` creates a page."""
        save_record(Path(path), self.record())

    def save_hgrm(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the distributions of response times, in us, in HdrHistogram's text format.

        Returns:
            The files: `path` (x.hgrm) for all requests; x.read.hgrm if there were reads; x.write.hgrm if
            there were writes.
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
        """Return the cumulative distribution: `response_us`, and the `share` of requests up to this time."""
        return tables.cdf_table(self._histograms[kind])

    def gc_figure(self, path: str | Path, from_s: float = 0, until_s: float | None = None) -> None:
        """Draw the collections of each member of an array into a file (PNG, PDF, SVG ...).

        Args:
            path: the file.
            from_s: beginning, in seconds from the start of the measurement.
            until_s: end, in seconds from the start of the measurement; by default the last request.
        """
        from . import plot

        array = self.summary["array"]
        panels = {array["coordination"] if array else "": self}
        plot.save(plot.collections(panels, from_s=from_s, until_s=until_s), path)

    def to_json(self) -> str:
        """Return the summary as JSON. Equal runs give the same bytes."""
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
