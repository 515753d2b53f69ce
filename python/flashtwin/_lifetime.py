"""`lifetime`: how long a drive lasts under a workload, for one or several amounts of over-provisioning."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._devices import DEFAULT_DEVICE, Overrides
from ._devices import device as read_device
from ._policies import PolicyLike
from ._support import words
from ._support.repeating import UNTIL_STEADY
from .errors import FlashtwinError
from .options import WorkloadOptions, takes
from .runs import run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .result import Result

_KEY = "geometry.over_provisioning"
_RESERVE = "geometry.reserve_percent"


@dataclass(frozen=True)
class Lifetime:
    """Lifetime of a drive with one reserve.

    Attributes:
        over_provisioning_percent: hidden capacity in percent of the exported capacity; None for an array,
            whose reserve is not changed.
        result: the run in which the lifetime was measured.
    """

    over_provisioning_percent: float | None
    result: Result

    @property
    def projection(self) -> Mapping[str, Any]:
        """Return the projection: `host_tb_written`, `drive_writes_per_day` and `years_at_this_rate`."""
        projection: Mapping[str, Any] = self.result.health["lifetime"]
        return projection

    @property
    def passes(self) -> Mapping[str, Any]:
        """Return write amplification over the last half of the passes of the workload, and related values.

        The keys are `device_write_amplification`, the half-width of its 95 % interval, its parts, and whether
        it was level (no longer changing from pass to pass).
        """
        passes = self.result.passes
        if passes is None or passes["device_write_amplification"] is None:
            raise FlashtwinError("lifetime: no pass of the workload was completed, or the host wrote nothing")
        return passes

    @property
    def half_width_share(self) -> float | None:
        """Return the relative half-width of the 95 % interval of write amplification.

        The result is None if there is no interval.
        """
        half: float | None = self.passes["device_write_amplification_half_width"]
        share: float | None = half and half / self.passes["device_write_amplification"]
        return share


@dataclass(frozen=True)
class Lifetimes:
    """Lifetimes of a drive, one per reserve."""

    rows: Sequence[Lifetime]

    def to_json(self) -> str:
        """Return the rows as JSON: reserve, passes, projection, warnings and conditions."""
        conditions = ("device", "exported_bytes", "policy", "workload", "precondition", "pacing", "seed")
        rows = [
            {
                "over_provisioning_percent": row.over_provisioning_percent,
                **{name: row.result.summary[name] for name in conditions},
                "passes": row.passes,
                "lifetime": row.projection,
                "warnings": row.result.summary["warnings"],
            }
            for row in self.rows
        ]
        return json.dumps({"lifetimes": rows}, indent=2)

    def __str__(self) -> str:
        """Return a table with one column per reserve."""
        first = self.rows[0].result.summary
        purposes = {part["name"]: None for row in self.rows for part in row.passes["programs_by_purpose"]}
        lines: list[tuple[str, list[str]]] = [
            ("over-provisioning", [_percent(row.over_provisioning_percent) for row in self.rows]),
            ("write amplification", [_amplification(row) for row in self.rows]),
            *((f"  {name}", [_part(row, name) for row in self.rows]) for name in purposes),
            ("TB written", self._projected("host_tb_written")),
            ("drive writes a day", self._projected("drive_writes_per_day")),
            ("life at this rate", [_life(row.projection["years_at_this_rate"]) for row in self.rows]),
            ("drive writes measured", [words.digits(row.passes["drive_writes"]) for row in self.rows]),
        ]
        width = 2 + max(len(cell) for _, cells in lines for cell in cells)
        table = "\n".join(
            f"{name:<22}" + "".join(f"{cell:>{width}}" for cell in cells) for name, cells in lines
        )
        projection = self.rows[0].projection
        return "\n".join(
            [
                f"{first['device']}, exports {words.size(first['exported_bytes'])}, policy {first['policy']}",
                first["workload"],
                f"{first['pacing']}; precondition {first['precondition']}; seed {first['seed']}",
                "",
                table,
                "",
                f"Projected from {projection['rated_erases']} erases a block and a warranty of "
                f"{projection['warranty_years']} years: {projection['assumptions']}.",
                *self._warnings(),
            ]
        )

    def _projected(self, name: str) -> list[str]:
        return [words.digits(row.projection[name]) for row in self.rows]

    def _warnings(self) -> list[str]:
        lines = []
        for row in self.rows:
            warnings = list(row.result.summary["warnings"])
            if row.passes["drive_writes"] < 1:
                warnings.append(
                    "less than one drive write was measured: the initial state may decide write amplification"
                )
            named = f"with {_percent(row.over_provisioning_percent)}: " if len(self.rows) > 1 else ""
            lines += [f"warning: {named}{warning}" for warning in warnings]
        return lines


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g} %"


def _life(years: float) -> str:
    return f"{words.digits(years)} years" if years >= 1 else f"{words.digits(years * 365)} days"


def _amplification(row: Lifetime) -> str:
    share = row.half_width_share
    interval = "" if share is None else f" +-{share * 100:.2g} %"
    return words.digits(row.passes["device_write_amplification"]) + interval


def _part(row: Lifetime, name: str) -> str:
    parts = {part["name"]: part["write_amplification"] for part in row.passes["programs_by_purpose"]}
    return words.digits(parts[name]) if name in parts else "-"


@takes(WorkloadOptions)
def lifetime(
    workload: str | os.PathLike[str],
    device: str | Path | None = None,
    over_provisioning: Sequence[float] = (),
    *,
    policy: PolicyLike | None = None,
    begin: Callable[[str], None] | None = None,
    **options: Unpack[WorkloadOptions],
) -> Lifetimes:
    """Measure how long a drive lasts. The workload is repeated until write amplification is level.

    Args:
        workload: as for `run`.
        device: as for `run`; the device needs `wear.rated_erases`, which most profiles of current drives
            have.
        over_provisioning: reserves to compare, in percent of the exported capacity, such as 7 and 28. If
            empty, only the device's own reserve is measured.
        policy: as for `run`.
        begin: function to call when a measurement begins, with the name of the measurement.
        {options}

    Raises:
        FlashtwinError: an argument is wrong; the message gives the place and the remedy.
        Interrupted: on Ctrl-C; its `partial` has the result of the run so far.
    """
    if options["repeat"] is None:
        options["repeat"] = UNTIL_STEADY
    given = dict(options["set"] or {})
    if over_provisioning and (_KEY in given or _RESERVE in given):
        raise FlashtwinError(f"over_provisioning: {_KEY} or {_RESERVE} is set as well; give one")
    name = device or DEFAULT_DEVICE
    own = _reserve(name, given)
    rows = []
    reserves: Sequence[float | None] = over_provisioning or [None]
    for percent in reserves:
        options["set"] = given if percent is None else {**given, _KEY: percent}
        if begin is not None and percent is not None:
            begin(f"over-provisioning {_percent(percent)}")
        result = run(workload, device, policy=policy, **options)
        if result.health["lifetime"] is None:
            raise FlashtwinError(f"{workload}: the host wrote nothing, so no lifetime can be projected")
        rows.append(Lifetime(own if percent is None else percent, result))
    return Lifetimes(rows)


def _reserve(name: str | Path, overrides: Overrides) -> float | None:
    """Return the over-provisioning of a device in percent of its exported capacity; None for an array.

    The device must have rated erases.
    """
    table = tomllib.loads(read_device(name, overrides).to_toml())
    if "array" in table:
        return None
    if not table.get("wear", {}).get("rated_erases"):
        raise FlashtwinError(
            f"{name}: wear.rated_erases is not set; give the erases a block is rated for (--set "
            "wear.rated_erases=3000)"
        )
    reserve: float = table["geometry"]["reserve_percent"]
    return 100 * reserve / (100 - reserve)
