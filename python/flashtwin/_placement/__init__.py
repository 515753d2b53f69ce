"""Placement: which data share a unit of flash (docs/placement.md).

`user` has the classes that user-defined schemes and rules extend, `words` the descriptions and the stepping,
`run` the runs without time, `waf` their results, `logs` the log pages, `theory` the closed forms.
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
