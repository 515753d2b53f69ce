"""When requests reach the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenLoop:
    """Requests arrive at the times in the workload, whether or not the device keeps up.

    Attributes:
        speed: factor by which requests are faster than in the workload. With 2, every gap is halved.
    """

    speed: float = 1.0


@dataclass(frozen=True)
class ClosedLoop:
    """The device always has `queue_depth` requests in flight: a new one is submitted when one completes.

    Times in the workload are ignored.

    Attributes:
        queue_depth: number of requests in flight.
    """

    queue_depth: int = 32


#: As fast as possible: a closed loop with enough requests in flight to keep every chip of a common device
#: busy.
AS_FAST_AS_POSSIBLE = ClosedLoop(256)

Pacing = OpenLoop | ClosedLoop


def default_for(timed: bool) -> Pacing:
    """Return the default pacing: an open loop or, without times, a closed loop at queue depth 32."""
    return OpenLoop() if timed else ClosedLoop()


def given_pacing(settings: Mapping[str, object]) -> Pacing | None:
    """Read `speed` or `queue_depth`, of which at most one is given. Return None if neither is."""
    depth, speed = settings.get("queue_depth"), settings.get("speed")
    if depth is not None:
        return ClosedLoop(int(str(depth)))
    return None if speed is None else OpenLoop(float(str(speed)))
