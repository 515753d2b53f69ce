"""The parameters of a calibrated device, with their ranges, device keys and isolating experiments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from .._devices import Spec, Value, as_toml

#: Values of parameters by name. If a parameter is missing, the device lacks the part, such as a buffer.
Values: TypeAlias = "dict[str, float]"

_HERE = Path(__file__).parent
#: Page size that `base.toml` sets.
_PAGE_BYTES = 4 << 10
_FLASH_PAGE_BYTES = 16 << 10
BLOCK_BYTES = 256 * _PAGE_BYTES
#: Number of rows (pages that a die programs at once) per die that may be written back at the same time: one
#: is programmed while the next is filled.
_ROWS_IN_FLIGHT = 2
#: Number of free blocks at which a die collects, chosen so that even small dies have some.
_LOW_BLOCKS = 2
#: Minimum number of spare blocks of a die: the free blocks, two open blocks, and one more.
_SPARE_MIN = _LOW_BLOCKS + 3
#: Minimum number of erase blocks of a die. With fewer, the reserve could not be set finely enough.
_BLOCKS_MIN = 32
#: Fraction of a block up to which a difference counts as a rounding error.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Parameter:
    """A parameter.

    Attributes:
        name: name of the parameter in `Values`.
        key: key of the device file that the parameter determines.
        low: smallest plausible value.
        high: largest plausible value.
        unit: unit of the value.
        step: change of the value's logarithm by which sensitivities are measured.
        isolated_by: prefixes of the names of experiments whose figures depend mainly on this parameter.
        whole: whether the value is a whole number. Whole numbers are estimated in closed form and by trial;
            they are not refined.
    """

    name: str
    key: str
    low: float
    high: float
    unit: str
    step: float
    isolated_by: tuple[str, ...]
    whole: bool = False

    def clip(self, value: float) -> float:
        """Return the plausible value nearest to `value`."""
        return min(max(value, self.low), self.high)


PARAMETERS: tuple[Parameter, ...] = (
    Parameter("channels", "geometry.channels", 1, 32, "", 0, ("read-size", "read-sequential"), whole=True),
    Parameter("dies", "geometry.chips", 1, 512, "per channel", 0, ("read-stride",), whole=True),
    Parameter("planes", "nand.multi_plane", 1, 8, "", 0, ("read-stride",), whole=True),
    Parameter("reserve", "geometry.reserve_percent", 3, 50, "%", 0.06, ("write-random",)),
    Parameter("read_low", "timing.read_us", 3, 400, "us", 0.03, ("read-size",)),
    Parameter("read_mid", "timing.read_us", 3, 400, "us", 0.03, ("read-size",)),
    Parameter("read_high", "timing.read_us", 3, 400, "us", 0.03, ("read-size",)),
    Parameter("program", "timing.program_us", 20, 8000, "us", 0.03, ("write-fill",)),
    Parameter("program_spread", "timing.program_us", 1, 1.95, "", 0.06, ("beside",)),
    Parameter("erase", "timing.erase_us", 300, 30000, "us", 0.12, ("write-random",)),
    Parameter("transfer", "timing.transfer_ns_per_byte", 0.1, 50, "ns/B", 0.03, ("read-size",)),
    Parameter("overhead", "link.command_overhead_us", 0.5, 200, "us", 0.12, ("write-depth1",)),
    Parameter("request", "controller.request_us", 0.05, 50, "us", 0.12, ("write-rate",)),
    Parameter("buffer", "buffer.capacity", 1 << 18, 1 << 30, "B", 0.06, ("read-range", "write-burst")),
    Parameter("suspend", "nand.suspend_us", 1, 300, "us", 0.12, ("beside",)),
    Parameter("slc", "nand.pslc_percent", 1, 60, "%", 0.06, ("write-fill",)),
    Parameter("slc_program", "nand.pslc_program_us", 20, 2000, "us", 0.06, ("write-fill",)),
)
#: Key of the device file that is true if flushes and forced writes do not wait for the flash.
PROTECTION = "buffer.power_loss_protection"
BY_NAME = {each.name: each for each in PARAMETERS}


@cache
def base_text() -> str:
    """Return the device file with the keys that no experiment determines."""
    return (_HERE / "base.toml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Profile:
    """A device, described by the parameters.

    Attributes:
        values: the parameters. If "buffer", "suspend" or "slc" is missing, the device has no such part.
        capacity_bytes: exported capacity of the model.
        protected: whether a flush completes when the data are in the buffer.
    """

    values: Values
    capacity_bytes: int
    protected: bool = True

    def _blocks_of_die(self) -> tuple[int, int]:
        """Return the numbers of blocks per die that are exported to the host, and of spare blocks."""
        chips = round(self.values["channels"]) * round(self.values["dies"])
        exported = max(_BLOCKS_MIN, round(self.capacity_bytes / (chips * BLOCK_BYTES)))
        share = self.values["reserve"] / (100 - self.values["reserve"])
        return exported, max(_SPARE_MIN, round(exported * share))

    def _cached_blocks_of_die(self) -> int:
        """Return the number of blocks per die that may be in SLC mode.

        The parameter "slc" gives it in percent of all blocks of the die. The number of blocks is rounded
        down, but is at least 1.
        """
        return max(1, math.floor(sum(self._blocks_of_die()) * self.values["slc"] / 100 + _ROUNDING))

    def least_steps(self) -> Values:
        """Return, by parameter, the smallest change of its logarithm that affects the device.

        The change corresponds to one block per die or, for the size of the buffer, to one row (the pages that
        a die programs at once).
        """
        exported, spare = self._blocks_of_die()
        steps = {"reserve": math.log((spare + 1) / (exported + spare + 1) * (exported + spare) / spare)}
        if "buffer" in self.values:
            steps["buffer"] = math.log1p(self._row_bytes() / self.values["buffer"])
        if "slc" in self.values:
            steps["slc"] = math.log1p(1 / self._cached_blocks_of_die())
        return steps

    def _row_bytes(self) -> int:
        """Return the number of bytes that a die programs in one operation."""
        return round(self.values["planes"]) * _FLASH_PAGE_BYTES

    def overrides(self) -> dict[str, Value]:
        """Return the keys of the device file that the parameters determine."""
        values = self.values
        chips = round(values["channels"]) * round(values["dies"])
        exported, spare = self._blocks_of_die()
        blocks = exported + spare
        lists = [values["read_low"], values["read_mid"], values["read_high"]]
        spread = values["program_spread"] - 1
        programs = [values["program"] * (1 + spread * k) for k in (-0.5, 0, 0.5)]
        keys: dict[str, Value] = {
            "geometry.chips": chips,
            "geometry.channels": round(values["channels"]),
            "geometry.blocks_per_plane": blocks,
            "geometry.reserve_percent": _percent(spare, blocks),
            "gc.low_percent": _percent(_LOW_BLOCKS, blocks),
            "nand.multi_plane": round(values["planes"]),
            "timing.read_us": _list(lists),
            "timing.program_us": _list(programs),
            "timing.erase_us": _decimal(values["erase"]),
            "timing.transfer_ns_per_byte": _decimal(values["transfer"]),
            "link.command_overhead_us": _decimal(values["overhead"]),
            "controller.request_us": _decimal(values["request"]),
            "nand.suspend": "suspend" in values,
        }
        if "suspend" in values:
            keys["nand.suspend_us"] = _decimal(values["suspend"])
        if "slc" in values:
            keys["nand.pslc_percent"] = _percent(self._cached_blocks_of_die(), blocks)
            keys["nand.pslc_program_us"] = _decimal(values["slc_program"])
        if "buffer" in values:
            row_bytes = self._row_bytes()
            row_pages = row_bytes // _PAGE_BYTES
            # The buffer consists of whole rows (pages that a die programs at once), as in drives. Otherwise,
            # writes of several pages would wait for buffer slots in another way.
            keys["buffer.capacity"] = max(1, round(values["buffer"] / row_bytes)) * row_bytes
            keys["buffer.background_depth"] = min(65535, _ROWS_IN_FLIGHT * row_pages * chips)
            keys[PROTECTION] = self.protected
        else:
            keys["buffer"] = None
        return keys

    def spec(self) -> Spec:
        """Return the device."""
        settings = [(key, as_toml(value)) for key, value in self.overrides().items()]
        return Spec.parse(base_text(), "base.toml", settings)


def _percent(some: int, blocks: int) -> float:
    """Return `some` as a percentage of `blocks`, rounded up: the model rounds down to whole blocks."""
    return math.ceil(some / blocks * 1e6) / 1e4


def _decimal(value: float) -> float:
    """Round to five digits. Finer differences have no meaning, and people read the file."""
    return float(f"{value:.5g}")


def _list(values: list[float]) -> str:
    return f"[{', '.join(format(_decimal(value), 'g') for value in values)}]"
