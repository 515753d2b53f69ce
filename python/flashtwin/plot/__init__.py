"""Figures for papers: `flashtwin.plot` (docs/figures.md).

Each function returns a Matplotlib figure, which `save` writes as PDF, PNG or SVG:

    >>> import flashtwin
    >>> runs = flashtwin.compare("zipf:write=0.8,requests=20000", ["lru", "gcar-lru"], "demo")
    >>> flashtwin.plot.save(flashtwin.plot.percentiles(runs.results), "percentiles.pdf")

Figures are as wide as one or two columns of a paper. Lines differ in dashes and markers, bars in hatching, so
that figures can be read in grey.
"""

from .maps import heat
from .members import collections
from .placement import placements
from .policies import comparison, curve, hits
from .runs import amplification, breakdown, cdf, gc_map, over_time, percentiles
from .style import save
from .sweeps import bars, lines

__all__ = [
    "amplification",
    "bars",
    "breakdown",
    "cdf",
    "collections",
    "comparison",
    "curve",
    "gc_map",
    "heat",
    "hits",
    "lines",
    "over_time",
    "percentiles",
    "placements",
    "save",
]
