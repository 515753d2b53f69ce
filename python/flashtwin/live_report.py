"""The report of a served device, while it serves and at its end."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from ._support import words


@dataclass(frozen=True)
class LiveReport:
    """The report of a server.

    Attributes:
        device: name of the device.
        size_bytes: size of the device that clients can access.
        dilation: factor by which device time is slowed down.
        elapsed_s: wall-clock time since the server's start.
        lateness: wall-clock time from the completion of a call in the modelled device to its return to the
            client: `calls`, `p50_us`, `p75_us`, `p90_us`, `p95_us`, `p99_us`, `p995_us` (99.5 %), `p999_us`
            and
            `max_us`.
        responses: for each of `read`, `write`, `trim` and `flush`: `requests` completed without an error,
            `refused`, `failed`, `bytes`, `pages`, `hits` (pages found in the buffer), `total_s`, and the
            percentiles of `lateness`. Times are in device time.
        flash: activity of the flash: `host_pages`, `moved_pages`, `device_write_amplification`,
            `gc_write_amplification`, `erases`, `collections`, and the time in GC of each chip (`chips_gc_s`,
            in device time).
        waiting: number of requests in flight.
        dirty_pages: number of pages whose newest contents are in buffers and not on flash.
        pages_lost: number of pages whose newest contents had no space on flash or were lost with a die.
        dead_dies: numbers of the dead dies.
        recent: `lateness`, `responses` and `flash` since the previous report, with `elapsed_s`, the
            wall-clock time since that report, and `device_s`, the device time since that report.
        read_only: whether the device is at the end of its life.
        cores_ready: whether the host permits the server to keep idle cores from halting while requests
            arrive.
    """

    device: str
    size_bytes: int
    dilation: float
    elapsed_s: float
    lateness: dict[str, float]
    responses: dict[str, dict[str, float]]
    waiting: int
    flash: dict[str, Any]
    dirty_pages: int
    pages_lost: int
    dead_dies: list[int]
    recent: dict[str, Any]
    read_only: bool
    cores_ready: bool
    _json: str

    @staticmethod
    def read(text: str) -> LiveReport:
        """Read a report that the plugin wrote."""
        said = json.loads(text)
        known = {field.name for field in fields(LiveReport)}
        kept = {key: value for key, value in said.items() if key in known}
        return LiveReport(**kept, size_bytes=said["exported_bytes"], _json=text.strip())

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        return self._json

    def __str__(self) -> str:
        """Return the report as a few lines of text."""
        times = [words.time(self.lateness[f"{q}_us"]) for q in ("p50", "p99", "p999", "max")]
        lines = [f"{self.device}, served for {self.elapsed_s:.1f} s"]
        if self.dilation != 1:
            lines[0] += f", its time {self.dilation:g} times slower"
        for kind, of in self.responses.items():
            if of["requests"] or of["refused"] or of["failed"]:
                spans = [words.time(of[f"{q}_us"]) for q in ("p50", "p99", "p999")]
                took = f"took {spans[0]}, p99 {spans[1]}, p99.9 {spans[2]}"
                took += "".join(f", {words.count(of[end])} {end}" for end in ("refused", "failed") if of[end])
                lines.append(f"{kind:<9}{words.count(of['requests']):>12}  {took}")
        late = f"{times[0]}, p99 {times[1]}, p99.9 {times[2]}, at most {times[3]}"
        lines.append(f"{'late by':<9}{words.count(self.lateness['calls']):>12}  {late}")
        behind = [
            kind
            for kind, of in self.responses.items()
            if of["requests"] and self.lateness["p99_us"] > of["p99_us"] * self.dilation
        ]
        if behind:
            lines.append(
                f"{'':<23}at p99 more than the device took ({', '.join(behind)}): times that clients measure "
                f"are those of this host, not of the drive; use --dilation {10 * self.dilation:g}"
            )
        if not self.cores_ready:
            lines.append(f"{'':<23}the host lets idle cores halt: later than needed (docs/live.md, Lateness)")
        blocks, moved = (words.count(self.flash[key]) for key in ("erases", "moved_pages"))
        of_device, of_gc = (
            words.digits_or_dash(self.flash[f"{of}_write_amplification"]) for of in ("device", "gc")
        )
        erased = f"{blocks} blocks erased, {moved} pages moved"
        lines.append(f"{'flash':<9}{erased}, device write amplification {of_device}, GC {of_gc}")
        if self.dead_dies:
            lines.append(
                f"dead dies {', '.join(map(str, self.dead_dies))}; {words.count(self.pages_lost)} pages lost"
            )
        if self.read_only:
            lines.append("the device reached the end of its life and refused writes")
        return "\n".join(lines)
