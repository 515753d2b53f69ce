"""Write amplification in closed form."""

from __future__ import annotations

from .. import _core
from ..errors import FlashtwinError

#: Closed forms in words.
FORMS: dict[str, str] = {
    "uniform_greedy": "uniform writes, greedy",
    "uniform_fifo": "uniform writes, first in first out",
    "permuted_fifo": "each page once a pass, first in first out",
    "best_split": "separate classes, best split",
    "first_class_units": "  units of the first class, share",
}


def placement_theory(
    fill: float, unit_pages: int = 4096, split: tuple[float, float] | None = None
) -> dict[str, float]:
    """Compute write amplification in closed form (docs/placement.md).

    Args:
        fill: fraction of the pages in used units that is live.
        unit_pages: pages per unit.
        split: for two classes that are each written uniformly, the first class's share of the pages and its
            share of the writes.

    Returns:
        Write amplification by the names of `FORMS`. With `split`, the dict also has the value for the best
        division of the flash between the two classes.

    Raises:
        FlashtwinError: `fill` is negative, or 1 or more; or a unit has no page.
    """
    if not 0 <= fill < 1:
        raise FlashtwinError(f"fill: found {fill}; must be from 0 to below 1")
    if not 1 <= unit_pages < 1 << 24:
        raise FlashtwinError(f"unit_pages: found {unit_pages}; must be from 1 to {(1 << 24) - 1}")
    found: dict[str, float] = _core.placement_theory(fill, unit_pages)
    found = {name: found[name] for name in FORMS if name in found}
    if split is not None:
        pages, writes = split
        best = _core.placement_split([fill * pages, fill * (1 - pages)], [writes, 1 - writes], 1.0)
        if best is not None:
            found["best_split"], found["first_class_units"] = best[1], best[0][0]
    return found
