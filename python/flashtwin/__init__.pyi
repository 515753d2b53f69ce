"""The public names of flashtwin, for type checkers. `__init__.py` imports each of them on first use."""

from . import plot
from ._core import __version__
from ._devices import Overrides, Spec, device, devices
from ._explain import RequestExplanation, RunExplanation, explain_request, explain_run
from ._ftls import FtlInfo, FtlTrace, ftl_info, ftls, trace_ftl
from ._lifetime import Lifetime, Lifetimes, lifetime
from ._placement import (
    Placement,
    PlacementInfo,
    PlacementTrace,
    Victim,
    Waf,
    Wafs,
    placement_info,
    placement_theory,
    placement_waf,
    placements,
    trace_placement,
)
from ._policies import PolicyInfo, PolicyTrace, policies, policy_info, trace_policy
from ._pts import PtsResults, pts
from ._report import report
from ._results import Results, results
from ._support.reference import CaseReport, validate
from ._support.watch import Progress
from ._sweep import SweepProgress, sweep
from ._theory import Form, Theory, theory
from .comparison import Comparison
from .errors import DeviceError, FlashtwinError, Interrupted, SnapshotError, WorkloadError
from .faults import Fail, Fault, Replace
from .hit_curves import CurveRow, CurveTable, curve
from .hit_ratios import HitRow, HitTable, hits
from .live import PowerCut, Server, serve
from .live_report import LiveReport
from .pacing import AS_FAST_AS_POSSIBLE, ClosedLoop, OpenLoop, Pacing
from .result import OutputError, Result
from .runs import compare, run, save_snapshot
from .timeline import Timeline, Window
from .traces import Converted, TraceInfo, TraceOptions, convert, example_trace, trace_formats, trace_info
from .user_policy import Access, Page, Policy, PolicyDevice

__all__ = [
    "AS_FAST_AS_POSSIBLE",
    "Access",
    "CaseReport",
    "ClosedLoop",
    "Comparison",
    "Converted",
    "CurveRow",
    "CurveTable",
    "DeviceError",
    "Fail",
    "Fault",
    "FlashtwinError",
    "Form",
    "FtlInfo",
    "FtlTrace",
    "HitRow",
    "HitTable",
    "Interrupted",
    "Lifetime",
    "Lifetimes",
    "LiveReport",
    "OpenLoop",
    "OutputError",
    "Overrides",
    "Pacing",
    "Page",
    "Placement",
    "PlacementInfo",
    "PlacementTrace",
    "Policy",
    "PolicyDevice",
    "PolicyInfo",
    "PolicyTrace",
    "PowerCut",
    "Progress",
    "PtsResults",
    "Replace",
    "RequestExplanation",
    "Result",
    "Results",
    "RunExplanation",
    "Server",
    "SnapshotError",
    "Spec",
    "SweepProgress",
    "Theory",
    "Timeline",
    "TraceInfo",
    "TraceOptions",
    "Victim",
    "Waf",
    "Wafs",
    "Window",
    "WorkloadError",
    "__version__",
    "compare",
    "convert",
    "curve",
    "device",
    "devices",
    "example_trace",
    "explain_request",
    "explain_run",
    "ftl_info",
    "ftls",
    "hits",
    "lifetime",
    "placement_info",
    "placement_theory",
    "placement_waf",
    "placements",
    "plot",
    "policies",
    "policy_info",
    "pts",
    "report",
    "results",
    "run",
    "save_snapshot",
    "serve",
    "sweep",
    "theory",
    "trace_formats",
    "trace_ftl",
    "trace_info",
    "trace_placement",
    "trace_policy",
    "validate",
]
