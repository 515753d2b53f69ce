"""Write amplification of a device, simulated without time (flash operations have no durations).

Simulates the write loads (`loads.Writes`) that the rows of a table of measurements (`tables`) describe.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping

from .. import _core
from .._devices import Spec
from ..errors import FlashtwinError
from ..traces import TraceOptions
from ..workloads import source
from .loads import Rewrite, SequentialPass, Streams, Writes, Zones

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Fraction of a run that is measured: its last quarter.
MEASURED = 0.25
#: Number of overwrites if it cannot be computed because the capacity of the drive is not known.
TIMES = 4.0
#: The writes that precede a load on a new drive: a single page, because a run begins with writes.
_NO_FILL = "sequential:write=1,size=4k,requests=1"
#: Number of pages written to a zone at a time.
CHUNK = 16


class Untimed:
    """A device that writes and erases by units. A unit consists of one block of every die."""

    def __init__(
        self,
        spec: Spec,
        usable_gib: float | None,
        seed: int,
        quick: bool,
        soc_bytes: Mapping[str, float] | None = None,
    ) -> None:
        """Prepare a device for runs.

        Args:
            spec: the device.
            usable_gib: capacity of the measured drive; the share that a load uses is computed from it.
            seed: seed of the loads.
            quick: whether to simulate only a quarter of the capacity. The number of units stays the same, but
                each unit then has a quarter of the pages.
            soc_bytes: by trace that CacheLib replayed, the share of the bytes that belong to small objects;
                for other traces, it is the share that the generator assumes.
        """
        self._words = dict(_core.placement_words_of(spec)[0])
        self._page_bytes = _core.placement_words_of(spec)[1]
        table = tomllib.loads(spec.to_toml())
        self._overhead = 1 + float(table["nand"].get("media_overhead_percent", 0.0)) / 100
        apart = table.get("ftl", {}).get("separation") == "gc"
        self._words["victim"] = table["gc"].get("victim", "greedy")
        placement = table.get("placement", {})
        if placement.get("scheme", "off") != "off":
            self._words |= {key: str(placement[key]) for key in ("scheme", "handles") if key in placement}
        else:
            self._words["scheme"] = "gc" if apart else "none"
        if quick:
            for word in ("unit_pages", "logical_pages"):
                self._words[word] = str(int(self._words[word]) // 4)
        self._usable_gib = usable_gib
        self._seed = seed
        self._soc_bytes = dict(soc_bytes or {})
        self._found: dict[Rewrite | Zones | Streams, float] = {}

    def waf(self, load: Writes, control: _core.Control) -> float:
        """Return the write amplification of a load: bytes written to the flash per byte written by the host.

        A load is run only once, even if several rows have it.
        """
        if isinstance(load, SequentialPass) or (
            isinstance(load, Rewrite) and load.shuffled and load.times == 1.0
        ):
            # No page is moved. A sequential pass invalidates all pages of a unit together. For a shuffled
            # load of one pass, the shuffled fill itself is measured.
            return self._overhead
        if load not in self._found:
            self._found[load] = self._run(load, control)
        return self._found[load]

    def _run(self, load: Rewrite | Zones | Streams, control: _core.Control) -> float:
        words = dict(self._words)
        if isinstance(load, Rewrite) and load.capacity.used_gib is not None and self._usable_gib is not None:
            share = load.capacity.used_gib / self._usable_gib
            words["logical_pages"] = str(round(int(words["logical_pages"]) * share))
        pages = int(words["logical_pages"])
        times = load.times
        if times is None:
            assert not isinstance(load, Streams)
            times = load.written_gib / self._usable_gib if self._usable_gib else TIMES
        range_bytes = pages * self._page_bytes
        if isinstance(load, Zones):
            writes = self._zones(load, pages, times)
        else:
            text = load.pattern if isinstance(load, Rewrite) else self._text(load)
            writes = _core.Workload.generated(text, range_bytes, self._seed)
        raw = _core.run_placement(
            list(words.items()),
            writes,
            self._fill(load, pages),
            page_bytes=self._page_bytes,
            warm=times * (1 - MEASURED),
            capacities=times * MEASURED,
            points=4,
            control=control,
        )
        before, after = raw["before"], raw["after"]
        host = int(after["host_pages"]) - int(before["host_pages"])
        moved = int(after["moves"]) - int(before["moves"])
        return (1 + moved / host) * self._overhead

    def _fill(self, load: Rewrite | Zones | Streams, pages: int) -> _core.Workload:
        """Return the writes that precede a load. On a new drive (`Streams`), they are a single page."""
        range_bytes = pages * self._page_bytes
        if isinstance(load, Streams):
            return _core.Workload.generated(_NO_FILL, range_bytes, self._seed)
        if isinstance(load, Rewrite) and load.shuffled:
            shuffled = f"uniform:write=1,permute=true,requests={pages}"
            return _core.Workload.generated(shuffled, range_bytes, self._seed)
        return _core.Workload.fill(None, range_bytes, self._page_bytes, self._seed)

    def _text(self, load: Streams) -> str:
        """Return the load as text, with the share of small objects of its trace."""
        share = self._soc_bytes.get(load.trace)
        return load.load if share is None else f"{load.load},soc_bytes={share}"

    def _zones(self, load: Zones, pages: int, times: float) -> _core.Workload:
        """Return the writes of a zone load. Zones are scaled by device capacity / drive capacity."""
        import pyarrow as pa

        share = load.zone_gib / (self._usable_gib or 1.0)
        zone_pages = max(CHUNK, round(pages * share) // CHUNK * CHUNK)
        zones = pages // zone_pages
        if zones <= load.open_zones:
            raise FlashtwinError(f"{load.open_zones} open zones: the device has {zones}; use a larger one")
        rng = random.Random(self._seed)
        opened = rng.sample(range(zones), load.open_zones)
        written = [0] * load.open_zones
        ops, offsets, sizes = [], [], []
        left = int(times * pages)
        while left > 0:
            at = rng.randrange(load.open_zones)
            if written[at] == zone_pages:
                drawn = (rng.randrange(zones) for _ in range(64))
                others = [zone for zone in drawn if zone not in opened]
                opened[at], written[at] = others[0], 0
            start = opened[at] * zone_pages
            if written[at] == 0:
                ops.append("T")
                offsets.append(start * self._page_bytes)
                sizes.append(zone_pages * self._page_bytes)
            ops.append("W")
            offsets.append((start + written[at]) * self._page_bytes)
            sizes.append(CHUNK * self._page_bytes)
            written[at] += CHUNK
            left -= CHUNK
        table = pa.table({"op": ops, "offset": offsets, "size": sizes})
        options = TraceOptions(columns="op=op,offset=offset,size=size")
        return source(table, options).open(pages * self._page_bytes, self._seed)
