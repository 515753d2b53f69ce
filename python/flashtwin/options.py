"""The options of a run, each defined once: type, default, meaning, and form on the command line.

Signatures, docstrings, the command line, `[run]` of an experiment, and the table in docs/python.md are
derived from these classes.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    ParamSpec,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

from .errors import FlashtwinError

if TYPE_CHECKING:
    import inspect

    from typing_extensions import Unpack

    from ._devices import Overrides
    from ._placement.rules import SchemeLike, VictimLike
    from ._policies import PolicyLike
    from ._support.watch import OnProgress
    from .faults import Fault
    from .pacing import Pacing
    from .timeline import Window
    from .traces import TraceOptions

P = ParamSpec("P")
T = TypeVar("T")

#: Modules that define the types of options. They are imported only when a signature needs them, so that the
#: command line starts faster.
_TYPES = {
    "Fault": "faults",
    "OnProgress": "_support.watch",
    "Overrides": "_devices",
    "Pacing": "pacing",
    "PolicyLike": "_policies",
    "SchemeLike": "_placement.rules",
    "TraceOptions": "traces",
    "VictimLike": "_placement.rules",
    "Window": "timeline",
}

#: Maximum of options that are whole numbers and have no smaller maximum.
_MOST = (1 << 64) - 1

#: Headings of the help.
STATE = "state before the first request"
PACING = "pacing (default: the trace's own times; closed loop at depth 32 if it has none)"
FAULTS = "faults of array members (virtual time since the start of the measurement)"


class Option(NamedTuple):
    """Description of an option, in addition to its name and type.

    Attributes:
        default: default value of the option.
        text: meaning of the option as a noun phrase, for help and docstrings, which also show the default
            unless it is None.
        details: further sentences for docstrings.
        metavar: placeholder of the value on the command line; None if the option has `choices` or no flag of
            its own.
        flag: flag on the command line; None if it follows from the name.
        group: heading of the option in the help.
        choices: all permitted values.
        least: smallest permitted whole number.
        most: largest permitted whole number.
        in_experiment: whether `[run]` of an experiment has it.
    """

    default: Any
    text: str
    details: str = ""
    metavar: str | None = None
    flag: str | None = None
    group: str | None = None
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = _MOST
    in_experiment: bool = False

    @property
    def help(self) -> str:
        """Return the meaning of the option, with its default."""
        shown = isinstance(self.default, (str, int, float)) and not isinstance(self.default, bool)
        return f"{self.text} (default: {self.default})" if shown else self.text

    @property
    def bounds(self) -> str:
        """Return the range of a whole number as text."""
        return f"from {self.least}" + (f" to {self.most}" if self.most < _MOST else "")


class PreconditionOptions(TypedDict, total=False):
    """The device and the state of its flash."""

    set: Annotated[
        Overrides | None,
        Option(None, 'keys of the device to override, such as {"buffer.capacity": "8 MiB"}', group="device"),
    ]
    precondition: Annotated[
        str,
        Option(
            "steady",
            "initial state: none, sequential, random, random:TIMES, steady, load or load:TIMES; in runs, "
            "random and steady also fill the buffer unless :empty-buffer is added, as in steady:empty-buffer",
            '"none" is never written; "random:2" writes twice the capacity; "steady" is the state that '
            'random writing converges to; "load", on devices that write by units, is sequential writes and '
            "then the load of the run with its placement ids, TIMES the capacity or until the amplification "
            "is level. A full buffer holds dirty random pages; that of a served device starts empty.",
            metavar="HOW",
            group=STATE,
            in_experiment=True,
        ),
    ]
    seed: Annotated[int, Option(1, "seed of preconditioning and generator", metavar="N", group=STATE)]
    progress: Annotated[
        OnProgress | None, Option(None, "function to call about ten times a second with a `Progress`")
    ]


class StateOptions(PreconditionOptions, total=False):
    """The device and its state before the first request."""

    snapshot: Annotated[
        str | os.PathLike[str] | None,
        Option(
            None,
            "file with a saved state to start from instead of preconditioning",
            "`save_snapshot` writes it. `precondition` then only decides whether the buffer starts full.",
            metavar="FILE",
            group=STATE,
        ),
    ]


class WorkloadOptions(StateOptions, total=False):
    """Options that several runs of one workload share."""

    size: Annotated[
        str | int | None,
        Option(
            None,
            "exported size of the device, such as 1T (binary) or 1 TB: blocks are added or left out",
            metavar="SIZE",
            group="device",
        ),
    ]
    scale: Annotated[
        int,
        Option(
            1,
            "reciprocal of the scale: the run uses a device with about 1/N of the blocks and the same ratios "
            "(docs/scaling.md)",
            "The results predict those of the device, with less time and memory.",
            metavar="N",
            group="device",
            least=1,
            most=1 << 20,
        ),
    ]
    pacing: Annotated[
        Pacing | None,
        Option(
            None,
            "`OpenLoop(speed)`, `ClosedLoop(queue_depth)` or `AS_FAST_AS_POSSIBLE`",
            "None: the workload's own times, or a closed loop at queue depth 32 if it has none.",
            group=PACING,
        ),
    ]
    warmup_requests: Annotated[
        int,
        Option(
            0,
            "number of requests at the start to exclude from the results",
            "Must be smaller than the number of requests of the run.",
            metavar="N",
            flag="--warmup",
            group=PACING,
            in_experiment=True,
        ),
    ]
    warmup_requests_max: Annotated[
        int | None,
        Option(
            None,
            "maximum number of requests to exclude, if the warm-up is to last until the run is steady",
            "The run is checked after `warmup_requests` and each time that this number has doubled.",
            metavar="N",
            flag="--warmup-max",
            group=PACING,
            least=10,
            in_experiment=True,
        ),
    ]
    requests_max: Annotated[
        int | None,
        Option(
            None,
            "maximum number of requests, including a warm-up of `warmup_requests`",
            metavar="N",
            group=PACING,
            least=1,
            in_experiment=True,
        ),
    ]
    repeat: Annotated[
        str | int | None,
        Option(
            None,
            "number of passes over the workload, or until-steady: until its write amplification is level, "
            "for 1 to 10 drive writes",
            "A pass begins one mean interval after the last request of the one before. `Result.passes` has "
            "write amplification over the last half of the passes, by purpose, with its confidence interval.",
            metavar="N",
            group=PACING,
        ),
    ]
    repeat_shift: Annotated[
        str | int | None,
        Option(
            None,
            "distance from the addresses of one pass to those of the next, modulo the size of the device, "
            "such as 1G; default: the same addresses",
            metavar="SIZE",
            group=PACING,
        ),
    ]
    beyond: Annotated[
        str,
        Option(
            "error",
            "how to handle out-of-range requests",
            '"error" stops the run, "wrap" takes the address modulo the size, "drop" skips the request.',
            group=PACING,
            choices=("error", "wrap", "drop"),
            in_experiment=True,
        ),
    ]
    series_s: Annotated[
        float | None,
        Option(None, "interval of the time series, in seconds of virtual time", in_experiment=True),
    ]
    faults: Annotated[
        Sequence[Fault],
        Option(
            (),
            "failures and replacements of array members, such as [Fail(3, at_s=10), Replace(3, at_s=20)]",
            group=FAULTS,
        ),
    ]
    trace_options: Annotated[
        TraceOptions | None, Option(None, "how to read the trace, where it should not be guessed")
    ]


class RunOptions(WorkloadOptions, total=False):
    """All arguments of `run` except workload and device."""

    policy: Annotated[
        PolicyLike | None,
        Option(
            None,
            "buffer policy, such as cflru, cflru:window=0.5 (see flashtwin policy list) or FILE.py:CLASS",
            "Or your subclass of `flashtwin.Policy` (docs/policies.md). None: the policy of the device.",
            metavar="NAME",
        ),
    ]
    placement: Annotated[
        SchemeLike | None,
        Option(
            None,
            "placement scheme of a device that writes by units, such as handle, sepbit:sample=8 "
            "(see flashtwin placement list) or FILE.py:CLASS",
            "Or your subclass of `flashtwin.Placement` (docs/placement.md). None: the scheme of the device.",
            metavar="NAME",
        ),
    ]
    victim: Annotated[
        VictimLike | None,
        Option(
            None,
            "victim rule and scope of a device that writes by units, such as greedy@noisy or FILE.py:CLASS",
            "Or your subclass of `flashtwin.Victim`. None: the rule of the device.",
            metavar="NAME",
        ),
    ]
    threads: Annotated[
        int,
        Option(
            1,
            "threads for independent array members; results do not change",
            metavar="N",
            least=1,
            most=1024,
        ),
    ]
    log: Annotated[
        bool | str | os.PathLike[str],
        Option(
            False,
            "whether to keep every request in `Result.requests`, or a Parquet file for them",
            "A file needs bounded memory.",
        ),
    ]
    history: Annotated[
        bool, Option(False, "whether to keep at most 256 windows of the run in `Result.history`, for reports")
    ]
    gc_timeline: Annotated[
        bool, Option(False, "whether to keep `Result.gc_intervals`: when which array member collects")
    ]
    timeline: Annotated[
        Window | None,
        Option(
            None,
            "window in which to record every device operation in `Result.timeline`, for Perfetto",
        ),
    ]
    check_requests: Annotated[
        int | None,
        Option(
            None,
            "interval in requests at which the model checks itself, as it does at the end of every run",
            "It checks that each request completes once, that the parts of each response time sum to it, "
            "that programmed and erased pages explain the free pages, and that the map agrees with the "
            "flash.",
            metavar="N",
            flag="--check",
            least=1,
        ),
    ]


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """Return the options of one of the classes of options in this module."""
    return {name: get_args(hint)[1] for name, hint in _hints(kind).items()}


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """Return the annotation of each option. Types that this package defines are replaced by Any."""
    return get_type_hints(kind, localns=dict.fromkeys(_TYPES, Any), include_extras=True)


@cache
def _types_of(kind: type) -> Mapping[str, Any]:
    """Return the type of each option."""
    named = {name: getattr(import_module(f".{at}", __package__), name) for name, at in _TYPES.items()}
    return get_type_hints(kind, localns=named)


@cache
def experiment_options() -> Mapping[str, Option]:
    """Return the options that can be keys in the section `[run]` of an experiment."""
    return {name: option for name, option in options_of(WorkloadOptions).items() if option.in_experiment}


def scalar_type(name: str) -> type:
    """Return the type of an option that can be a key of an experiment; None is removed from a union."""
    kind: type = get_args(_hints(WorkloadOptions)[name])[0]
    return next((each for each in get_args(kind) if each is not type(None)), kind)


def run_options(**given: Unpack[RunOptions]) -> RunOptions:
    """Complete the options of a run with defaults."""
    defaults = {name: option.default for name, option in options_of(RunOptions).items()}
    return cast(RunOptions, {**defaults, **given})


@cache
def is_whole_number(name: str) -> bool:
    """Whether an option of `run` accepts only whole numbers, and no text such as a size."""
    kind = get_args(_hints(RunOptions)[name])[0]
    among = (kind, *get_args(kind))
    return int in among and str not in among


def check(options: Mapping[str, object]) -> None:
    """Check the options that require whole numbers. Reject other values, and values out of range."""
    for name, option in options_of(RunOptions).items():
        value = options.get(name)
        if value is None or not is_whole_number(name):
            continue
        if not isinstance(value, int) or not option.least <= value <= option.most:
            raise FlashtwinError(f"{name}: {value!r}: give a whole number {option.bounds}")


def takes(kind: type) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Replace `**options` of a function by the options of `kind`: in signature, defaults and docstring.

    `{options}` in the docstring is replaced by explanations of the options.
    """
    # Imported only here, because help needs no signature.
    import inspect

    def give(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function)
        named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=_types_of(kind)[name],
            )
            for name, option in options_of(kind).items()
        ]
        signature = own.replace(parameters=[*named, *keywords])

        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            try:
                bound = signature.bind(*args, **given)
            except TypeError as e:
                unknown = next((name for name in given if name not in signature.parameters), "")
                raise TypeError(f"{function.__name__}() {e}{_hint(unknown, signature)}") from None
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("    {options}", _explained(kind))
        return call

    return give


#: Names that users of the command line may try as arguments, each with the argument to give in Python.
_IN_PYTHON = {
    "queue_depth": "pacing=ClosedLoop(8)",
    "speed": "pacing=OpenLoop(2)",
    "as_fast_as_possible": "pacing=AS_FAST_AS_POSSIBLE",
    "overrides": 'set={"buffer.capacity": "8 MiB"}',
    "fail": "faults=[Fail(0, at_s=10)]",
    "replace": "faults=[Replace(0, at_s=20)]",
    "format": 'trace_options=TraceOptions(format="msr")',
    "columns": 'trace_options=TraceOptions(columns="time=1:us,offset=2")',
    "warmup": "warmup_requests=1000",
    "requests": "log=True, or log=FILE",
    "series": "series_s=1.0",
}


def _hint(name: str, signature: inspect.Signature) -> str:
    """Return a hint that is appended to the message about an unknown argument."""
    meant = _IN_PYTHON.get(name, "")
    if meant.partition("=")[0] in signature.parameters:
        return f"; give {meant}"
    near = get_close_matches(name, signature.parameters, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _explained(kind: type) -> str:
    lines = []
    for name, option in options_of(kind).items():
        end = "" if option.help.endswith(".") else "."
        text = f"{name}: {option.help}{end} {option.details}".strip()
        lines += textwrap.wrap(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return "\n".join(lines)
