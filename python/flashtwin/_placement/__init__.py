"""Placement: which data share a unit of flash (docs/placement.md).

A placement scheme assigns a class to each page; a victim rule chooses the unit that is collected. `user` has
the base classes for schemes and rules that a user writes. `words` has descriptions and step-by-step runs.
`run` has runs without time, and `waf` has their results. `theory` has closed forms.
"""

from .run import DEVICES, placement_waf
from .theory import FORMS, placement_theory
from .user import Placement, Victim
from .waf import Waf, Wafs
from .words import PlacementInfo, PlacementTrace, placement_info, placements, trace_placement

__all__ = [
    "DEVICES",
    "FORMS",
    "Placement",
    "PlacementInfo",
    "PlacementTrace",
    "Victim",
    "Waf",
    "Wafs",
    "placement_info",
    "placement_theory",
    "placement_waf",
    "placements",
    "trace_placement",
]
