"""The options of `flashtwin.options` on the command line: adds them to a parser, and reads them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import flashtwin

from ..errors import FlashtwinError
from ..options import Option, RunOptions, is_whole_number, options_of

#: A span of time, such as 10s: a number and a unit.
TIME = r"(\d+(?:\.\d*)?|\.\d+)(s|ms|us)"
#: A member and an instant, as in 3@10s.
_FAULT = re.compile(rf"(\d+)@{TIME}")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def add(p: argparse.ArgumentParser, kind: type, groups: Mapping[str, argparse._ActionsContainer]) -> None:
    """Add the options of `kind` under their headings. `groups` has the headings that already exist."""
    containers = dict(groups)
    for name, option in options_of(kind).items():
        form = _FORMS.get(name)
        if form is None and not _has_flag(option):
            continue
        at: argparse._ActionsContainer = p
        if option.group is not None:
            if option.group not in containers:
                containers[option.group] = p.add_argument_group(option.group)
            at = containers[option.group]
        if form is None:
            add_one(at, name)
        else:
            form.add(at)


def add_one(p: argparse._ActionsContainer, name: str) -> None:
    """Add one option of `run`."""
    option = options_of(RunOptions)[name]
    form: dict[str, Any] = {"choices": option.choices} if option.choices else {"metavar": option.metavar}
    if is_whole_number(name):
        form["type"] = int
    p.add_argument(flag_of(name), dest=name, default=option.default, help=option.help, **form)


def read(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """Return the values of the options of `kind` from the parsed command line."""
    found = {}
    for name, option in options_of(kind).items():
        if name in _FORMS:
            found[name] = _FORMS[name].read(args)
        elif _has_flag(option):
            found[name] = getattr(args, name)
    return found


def flag_of(name: str) -> str:
    """Return the flag of an option of `run`."""
    return options_of(RunOptions)[name].flag or "--" + name.replace("_", "-")


def forms() -> dict[str, str]:
    """Return the command-line flags of the options of `run`, for the documentation."""
    written = {}
    for name, option in options_of(RunOptions).items():
        if name in _FORMS:
            written[name] = _FORMS[name].flags
        elif _has_flag(option):
            written[name] = f"{flag_of(name)} {option.metavar or '|'.join(option.choices)}"
    return written


def _has_flag(option: Option) -> bool:
    return option.metavar is not None or bool(option.choices)


class _Form(NamedTuple):
    """An option that has several flags, or one flag that may be repeated."""

    flags: str
    add: Callable[[argparse._ActionsContainer], None]
    read: Callable[[argparse.Namespace], Any]


def add_set(p: argparse._ActionsContainer) -> None:
    """Add `--set`."""
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the device, such as buffer.capacity=8MiB; may be repeated",
    )


def overrides(args: argparse.Namespace) -> dict[str, str]:
    """Read `--set KEY=VALUE`."""
    return pairs("--set", "KEY=VALUE, as in buffer.capacity=8MiB", args.set)


def pairs(option: str, form: str, settings: Sequence[str]) -> dict[str, str]:
    """Read the KEY=VALUE arguments of an option that may be repeated. A key may be given only once."""
    found: dict[str, str] = {}
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not (key and equals):
            raise FlashtwinError(f"{option} {setting}: give {form}")
        if key in found:
            raise FlashtwinError(f"{option} {setting}: {key} is given twice; leave one out")
        found[key] = value
    return found


def _add_pacing(p: argparse._ActionsContainer) -> None:
    only = p.add_mutually_exclusive_group()
    only.add_argument("--speed", type=float, metavar="X", help="open loop, X times as fast as recorded")
    only.add_argument(
        "--queue-depth", type=int, metavar="N", help="closed loop: always N requests in the device"
    )
    only.add_argument("--as-fast-as-possible", action="store_true", help="closed loop at queue depth 256")


def _pacing(args: argparse.Namespace) -> flashtwin.Pacing | None:
    """Read the pacing of the requests. None stands for the default pacing of the workload."""
    if args.as_fast_as_possible:
        return flashtwin.AS_FAST_AS_POSSIBLE
    if args.queue_depth is not None:
        if not 1 <= args.queue_depth < 1 << 32:
            raise FlashtwinError(f"--queue-depth {args.queue_depth}: give a whole number from 1")
        return flashtwin.ClosedLoop(args.queue_depth)
    return None if args.speed is None else flashtwin.OpenLoop(args.speed)


def _add_faults(p: argparse._ActionsContainer) -> None:
    for flag, what in (("--fail", "fail a member"), ("--replace", "replace a member and rebuild it")):
        p.add_argument(
            flag,
            action="append",
            default=[],
            metavar="MEMBER@TIME",
            help=f"{what}, such as 3@10s; may be repeated",
        )


def _faults(args: argparse.Namespace) -> list[flashtwin.Fail | flashtwin.Replace]:
    """Read `--fail` and `--replace`."""
    found: list[flashtwin.Fail | flashtwin.Replace] = []
    kinds: list[tuple[str, type[flashtwin.Fail] | type[flashtwin.Replace]]] = [
        ("fail", flashtwin.Fail),
        ("replace", flashtwin.Replace),
    ]
    for option, kind in kinds:
        for given in getattr(args, option):
            parts = _FAULT.fullmatch(given.replace(" ", ""))
            if parts is None:
                raise FlashtwinError(f"--{option} {given}: give MEMBER@TIME, as in 3@10s or 0@250ms")
            found.append(kind(int(parts[1]), seconds(parts[2], parts[3])))
    return found


def seconds(number: str, unit: str) -> float:
    """Return the seconds of a time that the pattern `TIME` matched."""
    return float(number) * _SECONDS[unit]


def trace_options(args: argparse.Namespace) -> flashtwin.TraceOptions:
    """Read the options that determine how a trace is read."""
    given = vars(args)
    names = flashtwin.TraceOptions.__dataclass_fields__
    return flashtwin.TraceOptions(**{name: given.get(name) for name in names})


_FORMS = {
    "set": _Form("--set KEY=VALUE", add_set, overrides),
    "pacing": _Form("--speed X, --queue-depth N, --as-fast-as-possible", _add_pacing, _pacing),
    "faults": _Form("--fail MEMBER@TIME, --replace MEMBER@TIME", _add_faults, _faults),
}
