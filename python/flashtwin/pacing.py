"""When requests reach the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenLoop:
    """At the workload's own times, whatever the device does.

    Attributes:
        speed: how much faster than recorded; 2 halves every gap.
    """

    speed: float = 1.0


@dataclass(frozen=True)
class ClosedLoop:
    """Always this many requests in the device; the workload's times are ignored.

    Attributes:
        queue_depth: requests in the device at any time.
    """

    queue_depth: int = 32


#: As fast as possible: a closed loop deep enough to keep every chip of a common device busy.
AS_FAST_AS_POSSIBLE = ClosedLoop(256)

Pacing = OpenLoop | ClosedLoop


def default_for(timed: bool) -> Pacing:
    """Recorded times where there are any, else a closed loop at queue depth 32."""
    return OpenLoop() if timed else ClosedLoop()


def given_pacing(settings: Mapping[str, object]) -> Pacing | None:
    """Read `speed` or `queue_depth`, of which at most one is given; None leaves it to the workload."""
    depth, speed = settings.get("queue_depth"), settings.get("speed")
    if depth is not None:
        return ClosedLoop(int(str(depth)))
    return None if speed is None else OpenLoop(float(str(speed)))
