"""flashtwin: a deterministic twin of a flash device.

Replay a block trace or a generated load on a model of an SSD, in virtual time, and see what a cache
or garbage-collection policy does to latency, write amplification and wear:

    >>> import flashtwin
    >>> result = flashtwin.run("zipf:write=0.8,requests=20000", "demo", policy="gcar-lru")
    >>> both = flashtwin.compare(flashtwin.example_trace(), ["lru", "gcar-lru"], "demo")

Equal arguments give results that are equal byte for byte on every machine. The name of a figure ends in its
unit, as in `mean_us`.
"""

from importlib import import_module

#: The module that defines each public name. `plot` is itself a module. Type checkers read the names in
#: `__init__.pyi`.
_MODULES = {
    "AS_FAST_AS_POSSIBLE": "pacing",
    "Access": "user_policy",
    "CaseReport": "_support.reference",
    "ClosedLoop": "pacing",
    "Comparison": "comparison",
    "Converted": "traces",
    "CurveRow": "hit_curves",
    "CurveTable": "hit_curves",
    "DeviceError": "errors",
    "Fail": "faults",
    "Fault": "faults",
    "FlashtwinError": "errors",
    "Form": "_theory",
    "FtlInfo": "_ftls",
    "FtlTrace": "_ftls",
    "HitRow": "hit_ratios",
    "HitTable": "hit_ratios",
    "Interrupted": "errors",
    "Lifetime": "_lifetime",
    "Lifetimes": "_lifetime",
    "LiveReport": "live_report",
    "OpenLoop": "pacing",
    "OutputError": "result",
    "Overrides": "_devices",
    "Pacing": "pacing",
    "Page": "user_policy",
    "Placement": "_placement",
    "PlacementInfo": "_placement",
    "PlacementTrace": "_placement",
    "Policy": "user_policy",
    "PolicyDevice": "user_policy",
    "PolicyInfo": "_policies",
    "PolicyTrace": "_policies",
    "PowerCut": "live",
    "Progress": "_support.watch",
    "PtsResults": "_pts",
    "Replace": "faults",
    "RequestExplanation": "_explain",
    "Result": "result",
    "Results": "_results",
    "RunExplanation": "_explain",
    "Server": "live",
    "SnapshotError": "errors",
    "Spec": "_devices",
    "SweepProgress": "_sweep",
    "Theory": "_theory",
    "Timeline": "timeline",
    "TraceInfo": "traces",
    "TraceOptions": "traces",
    "Victim": "_placement",
    "Waf": "_placement",
    "Wafs": "_placement",
    "Window": "timeline",
    "WorkloadError": "errors",
    "__version__": "_core",
    "compare": "runs",
    "convert": "traces",
    "curve": "hit_curves",
    "device": "_devices",
    "devices": "_devices",
    "example_trace": "traces",
    "explain_request": "_explain",
    "explain_run": "_explain",
    "ftl_info": "_ftls",
    "ftls": "_ftls",
    "hits": "hit_ratios",
    "lifetime": "_lifetime",
    "placement_info": "_placement",
    "placement_theory": "_placement",
    "placement_waf": "_placement",
    "placements": "_placement",
    "plot": "plot",
    "policies": "_policies",
    "policy_info": "_policies",
    "pts": "_pts",
    "report": "_report",
    "results": "_results",
    "run": "runs",
    "save_snapshot": "runs",
    "serve": "live",
    "sweep": "_sweep",
    "theory": "_theory",
    "trace_formats": "traces",
    "trace_ftl": "_ftls",
    "trace_info": "traces",
    "trace_placement": "_placement",
    "trace_policy": "_policies",
    "validate": "_support.reference",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that a command loads only the modules it needs."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULES[name]}", __name__)
    value: object = module if name == _MODULES[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
