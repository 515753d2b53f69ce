"""Options `repeat` and `repeat_shift`: number of passes over a workload, and shift of addresses per pass."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FlashtwinError
from .sizing import read as read_size

#: Value of `repeat` that means: repeat the workload until its write amplification is level.
UNTIL_STEADY = "until-steady"
#: Minimum and maximum number of drive writes if `repeat` is `LEVEL`.
DRIVE_WRITES = (1.0, 10.0)


@dataclass(frozen=True)
class Repeat:
    """Passes of a workload.

    Attributes:
        passes: number of passes; None if the workload is repeated until write amplification is level.
        shift_bytes: distance in bytes between the addresses of one pass and of the next.
    """

    passes: int | None
    shift_bytes: int

    @property
    def drive_writes(self) -> tuple[float, float] | None:
        """Return the minimum and maximum number of drive writes; None if the number of passes is given."""
        return DRIVE_WRITES if self.passes is None else None


def read(repeat: str | int | None, shift: str | int | None) -> Repeat | None:
    """Read the options `repeat` and `repeat_shift`. Returns None for a single pass."""
    if repeat is None:
        if shift is not None:
            raise FlashtwinError("repeat_shift: needs repeat (--repeat N or --repeat until-steady)")
        return None
    text = str(repeat).strip()
    passes = int(text) if text.isascii() and text.isdigit() else 0
    if (text != UNTIL_STEADY and not 1 <= passes < 1 << 63) or isinstance(repeat, bool):
        raise FlashtwinError(f"repeat: found {repeat!r}; must be the number of passes, or {UNTIL_STEADY}")
    shift_bytes = 0 if shift is None else read_size(shift)
    if shift_bytes >= 1 << 63:
        raise FlashtwinError(f"repeat_shift: found {shift!r}; must be below 8 EiB")
    return Repeat(passes or None, shift_bytes)
