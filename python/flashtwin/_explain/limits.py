"""The limits of a device: causes of its mean response time, and runs on devices with one doubled resource."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from .._devices import Overrides
from .._support import terminal, words
from .._support.estimates import Estimate, ratio_of
from .request import CAUSES

#: Measures that tables of variants show: their names in a summary, and their headings.
MEASURES = {"mean_us": "mean", "p99_us": "p99", "p999_us": "p99.9"}
_CONFIDENCE = 0.95
#: Largest `link.pcie_lanes`.
_PCIE_LANES_MAX = 16


@dataclass(frozen=True)
class Variant:
    """A device with one resource doubled.

    Attributes:
        name: description of the resource.
        set: keys of the device to override.
    """

    name: str
    set: Overrides


@dataclass(frozen=True)
class Effect:
    """The effect of doubling one resource.

    Attributes:
        variant: the device with the doubled resource.
        ratios: by measure (`mean_us`, `p99_us`, `p999_us`), the response time of the variant divided by that
            of the unchanged device, with a 95 % interval. Runs with equal seeds are paired.
        error: reason why the device could not be run; None if it was run.
    """

    variant: Variant
    ratios: dict[str, Estimate]
    error: str | None = None


@dataclass(frozen=True)
class RunExplanation:
    """The limits of a device in a run. Print it for a table.

    Attributes:
        summary: summary of the run with the first seed.
        cause: the largest part of the mean response time, in one line.
        shares: fractions of the mean response time by cause.
        effects: effects of doubling each resource, the largest reduction of the mean response time first.
        seeds: seeds of the runs.
    """

    summary: dict[str, Any]
    cause: str
    shares: dict[str, float]
    effects: list[Effect]
    seeds: list[int]

    def to_json(self) -> str:
        """Return everything as JSON; equal runs give the same bytes."""
        return json.dumps(asdict(self), indent=2)

    def __repr__(self) -> str:
        flash = self.summary["flash"]
        by_cause = sorted(self.shares.items(), key=lambda item: -item[1])
        lines = [
            self.cause,
            "",
            "mean response: " + ", ".join(f"{cause} {words.percent(s)}" for cause, s in by_cause if s > 0),
            f"dies: busy {words.percent(flash['busy_share_mean'])} of the time (busiest "
            f"{words.percent(flash['busy_share_max'])}), in GC {words.percent(flash['gc_share_mean'])} "
            f"(most {words.percent(flash['gc_share_max'])})",
            "",
        ]
        rows = []
        for effect in self.effects:
            cells = [_ratio_text(effect.ratios.get(measure)) for measure in MEASURES]
            rows.append([effect.variant.name, *(cells if effect.error is None else [effect.error, "", ""])])
        table = terminal.as_text(terminal.tables(["", *MEASURES.values()], rows, 1, 200))
        n = len(self.seeds)
        seeds = f"{n} seeds, ?: the interval holds 1" if n > 1 else "one seed: differences may be chance"
        return "\n".join([*lines, table.rstrip("\n"), f"x: ratio to the device as it is; {seeds}"])


def _ratio_text(ratio: Estimate | None) -> str:
    if ratio is None or ratio.value is None:
        return "-"
    unclear = ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high
    return f"{ratio.value:.3f}x{'?' if unclear and ratio.value != 1 else ''}"


def variants(device: dict[str, Any], buffer_bytes: int | None) -> list[Variant]:
    """Return variants of a device, each with one doubled resource. `device` is its parsed TOML text.

    All variants have the exported capacity of the unchanged device. For a doubled reserve, flash is added. If
    the number of dies is doubled, each die has half the blocks.
    """
    found = []
    buffer, geometry = device.get("buffer", {}), device.get("geometry")
    if buffer_bytes:
        found.append(Variant("buffer x 2", {"buffer.capacity": f"{2 * buffer_bytes} B"}))
    if buffer.get("evict") == "background":
        depth = 2 * buffer["background_depth"]
        found.append(Variant("write-backs in flight x 2", {"buffer.background_depth": depth}))
    if geometry:
        blocks, percent = geometry["blocks_per_plane"], geometry["reserve_percent"]
        hidden = math.floor(blocks * percent / 100)
        doubled = math.ceil(200e6 * hidden / (blocks + hidden)) / 1e6
        found.append(
            Variant(
                "reserve x 2",
                {"geometry.blocks_per_plane": blocks + hidden, "geometry.reserve_percent": doubled},
            )
        )
        more: dict[str, Any] = {"geometry.chips": 2 * geometry["chips"]}
        found.append(Variant("dies x 2", {**more, "geometry.blocks_per_plane": math.ceil(blocks / 2)}))
    link = device.get("link", {})
    lanes, bus_ns = link.get("pcie_lanes", 0), link.get("bus_ns_per_sector", 0)
    if link.get("kind") == "pcie" and 2 * lanes <= _PCIE_LANES_MAX:
        found.append(Variant("link x 2", {"link.pcie_lanes": 2 * lanes}))
    elif link.get("kind") == "reference" and bus_ns:
        found.append(Variant("link x 2", {"link.bus_ns_per_sector": bus_ns / 2}))
    return found


def summarised(
    summaries: list[dict[str, Any]],
    of_variants: list[tuple[Variant, list[dict[str, Any]], str | None]],
    seeds: list[int],
) -> RunExplanation:
    """Return the explanation. Runs of a variant and of the device with equal seeds are compared in pairs."""
    first = summaries[0]["all"]
    spent = {cause: sum(first["parts_us"][p] for p in parts) for cause, parts in CAUSES.items()}
    shares = {cause: us / first["mean_us"] if first["mean_us"] else 0.0 for cause, us in spent.items()}
    cause = max(shares, key=lambda each: shares[each])
    effects = []
    for variant, runs, error in of_variants:
        ratios = {
            measure: ratio_of(
                [(b["all"][measure], a["all"][measure]) for a, b in zip(summaries, runs, strict=True)],
                _CONFIDENCE,
            )
            for measure in (MEASURES if runs else ())
        }
        effects.append(Effect(variant, ratios, error))
    effects.sort(key=lambda effect: effect.ratios["mean_us"].value or 1.0 if effect.ratios else math.inf)
    mean = words.time(first["mean_us"])
    text = f"{words.percent(shares[cause])} of the mean response of {mean} is for {cause}"
    shorter = (effect for effect in effects if effect.ratios and _is_shorter(effect.ratios["mean_us"]))
    best = next(shorter, None)
    if best:
        text += f"; most helps: {best.variant.name} ({best.ratios['mean_us'].value:.3f}x)"
    elif any(effect.ratios for effect in effects):
        text += "; none of the changes below helps significantly"
    return RunExplanation(summaries[0], text, shares, effects, seeds)


def _is_shorter(ratio: Estimate) -> bool:
    """Whether a variant's response time is shorter than the device's.

    With several seeds, the upper end of the ratio's interval must be below 1.
    """
    end = ratio.value if ratio.high is None else ratio.high
    return end is not None and end < 1
