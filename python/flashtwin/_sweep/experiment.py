"""Reads and checks an experiment, which is TOML or a mapping. Each error has a line and a remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeAlias

from .. import _core
from .._devices import Value
from .._devices import device as read_device
from .._placement.run import DEVICES, base_words
from .._policies import Choice
from .._support.folders import is_remote
from .._support.inputs import is_file, parse_toml, read_text
from .._support.schema import shortened
from ..errors import FlashtwinError
from ..options import Option, experiment_options, scalar_type
from ..traces import TraceOptions
from ..workloads import source

#: Axes other than parameters, in the order in which cells are listed: the device changes slowest. Axes of
#: parameters come between workload and seed.
AXES: Final = ("device", "policy", "workload", "seed")
_PLURALS: Final = {"devices": "device", "policies": "policy", "workloads": "workload", "seeds": "seed"}
_TABLES: Final = ("baseline", "parameters", "set", "run", "trace", "untimed")
_KNOWN: Final = ("name", *_PLURALS, "figures", *_TABLES)
#: Keys of `[run]`, with their options: options of `run`, the two kinds of pacing, and the log.
_RUN: Final[dict[str, tuple[type, Option]]] = {
    **{name: (scalar_type(name), option) for name, option in experiment_options().items()},
    "speed": (float, Option(None, "speed of an open loop")),
    "queue_depth": (int, Option(None, "queue depth of a closed loop", least=1)),
    "requests_log": (bool, Option(False, "whether to keep the log of requests")),
}
#: Device name that stands for no device. The words (keys and values) of the setup then describe the device of
#: a run without time.
SETUP: Final = "setup"
#: Keys of `[untimed]`, with the type and the smallest value of each.
UNTIMED: Final[dict[str, tuple[type, float]]] = {
    "scale": (int, 1),
    "warm": (float, 0.0),
    "capacities": (float, 0.1),
}
#: Keys that only experiments with time have.
_TIMED: Final = ("policies", "run", "trace")
#: Prefix of parameters that are settings of the run and not keys of the device.
RUN_PREFIX: Final = "run."
#: Figures that are shown if an experiment does not name any.
_FIGURES: Final = (
    "all_mean_us",
    "all_p99_us",
    "throughput_iops",
    "hits_ratio",
    "health_device_write_amplification",
    "flash_erases",
)
_TYPES: Final = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
#: Largest number of cells. A larger experiment is assumed to be a mistake.
_CELLS_MAX: Final = 1_000_000

#: An experiment as an argument of `sweep`: a TOML file, or a mapping with the same content.
ExperimentLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


class Places:
    """Positions of the keys in a TOML file. Keys of a mapping have no positions."""

    def __init__(self, origin: str | None, text: str) -> None:
        self._origin = origin
        self._lines: dict[str, int] = {}
        section = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
                section = _plain(header[1]) + "."
                self._lines.setdefault(section[:-1], number)
            elif key := re.match(r"""\s*((?:[\w.-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[\w.-]+)*)\s*=""", line):
                self._lines.setdefault(section + _plain(key[1]), number)

    def wrong(self, key: str, message: str) -> FlashtwinError:
        """Create the error for a key, given by its dotted path."""
        at = key
        while at and at not in self._lines:
            at = at.rpartition(".")[0]
        line = f":{self._lines[at]}" if at else ""
        return FlashtwinError(
            f"{self._origin}{line}: {key}: {message}" if self._origin else f"{key}: {message}"
        )


def _plain(key: str) -> str:
    return re.sub(r"""["'\s]""", "", key)


@dataclass(frozen=True)
class Experiment:
    """A checked experiment.

    Attributes:
        name: name of the experiment in reports.
        axes: every axis with its values, slowest first; the seed is the last axis.
        settings: keys of the device that all cells set.
        run: settings of every run, by the names of the arguments of `flashtwin.run`, and `speed` or
            `queue_depth`.
        untimed: settings of runs without time, by the names of the arguments of `placement_waf`; None if the
            runs have time.
        trace: how traces are read.
        baseline: values of axes that identify the cells with which others are compared.
        figures: columns of the results that tables show.
        directory: directory to which paths of files are relative.
        places: position of each key.
    """

    name: str
    axes: dict[str, list[Value]]
    settings: dict[str, Value]
    run: dict[str, Value]
    untimed: dict[str, Value] | None
    trace: TraceOptions
    baseline: dict[str, Value]
    figures: list[str]
    directory: Path
    places: Places

    def device(self, name: str) -> str | None:
        """Return the device of runs without time; None for `SETUP`: the setup alone is then the device."""
        return None if name == SETUP else name if name in DEVICES else self.path(name)

    def path(self, text: str) -> str:
        """Return the path of a file relative to the caller's directory.

        Text that is no path is returned unchanged.
        """
        if is_remote(text) or "\n" in text:
            return text
        path = self.directory / text
        return str(path) if is_file(path) else text


def read_experiment(experiment: ExperimentLike) -> Experiment:
    """Read and check an experiment.

    Raises:
        FlashtwinError: the experiment is wrong; the message gives file, line, key and the remedy.
    """
    if isinstance(experiment, Mapping):
        return _build(dict(experiment), Places(None, ""), Path())
    path = Path(experiment)
    text = read_text(path, "experiment")
    return _build(parse_toml(text, path), Places(str(path), text), path.parent)


def _build(given: dict[str, Any], places: Places, directory: Path) -> Experiment:
    for key in given:
        if key not in _KNOWN:
            raise places.wrong(key, f"unknown; {_nearest(key, _KNOWN)}")
    tables = {name: _table(given, name, places) for name in _TABLES}
    untimed = _untimed(given, tables["untimed"], places)
    axes: dict[str, list[Value]] = {}
    for plural in ("devices", "policies", "workloads"):
        axes[_PLURALS[plural]] = _texts(given, plural, places)
    if given.get("policies") is None:
        axes["policy"] = [None]
    axes |= _parameters(tables["parameters"], places)
    if untimed is not None:
        _check_words(axes, places)
    axes["seed"] = _seeds(given.get("seeds", [1]), places)
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > _CELLS_MAX:
        raise places.wrong("devices", f"{count} cells in all; at most {_CELLS_MAX} are run: leave values out")
    run = {key: _run_setting(key, value, f"run.{key}", places) for key, value in tables["run"].items()}
    if "speed" in run and "queue_depth" in run:
        raise places.wrong("run.speed", "queue_depth is given, too; take one of them")
    name = given.get("name", "")
    if not isinstance(name, str):
        raise places.wrong("name", f"found {shortened(name)}; must be text")
    experiment = Experiment(
        name,
        axes,
        {k: _scalar(v, f"set.{k}", places) for k, v in tables["set"].items()},
        run,
        untimed,
        _trace(tables["trace"], places),
        _baseline(tables["baseline"], axes, places),
        [
            str(f).replace(".", "_")
            for f in _texts(given, "figures", places, _FIGURES if untimed is None else ("waf",))
        ],
        directory,
        places,
    )
    _check_values(experiment, places)
    return experiment


def _nearest(word: str, known: Iterable[str]) -> str:
    known = list(known)
    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"


def _table(given: dict[str, Any], name: str, places: Places) -> dict[str, Any]:
    value = given.get(name, {})
    if not isinstance(value, Mapping):
        raise places.wrong(name, f"found {shortened(value)}; must be a section [{name}] with keys")

    def flat(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
        # In TOML, `buffer.capacity` is a table within a table.
        for key, inner in values.items():
            if isinstance(inner, Mapping):
                yield from flat(inner, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", inner

    return dict(flat(value, ""))


def _parameters(given: dict[str, Any], places: Places) -> dict[str, list[Value]]:
    axes = {}
    for key, values in given.items():
        path = f"parameters.{key}"
        if not isinstance(values, list):
            raise places.wrong(path, f"found {values!r}; must be a list of values, as in [1, 2]")
        axes[key] = _distinct([_scalar(value, path, places) for value in values], path, places)
        if key.startswith(RUN_PREFIX):
            if key == f"{RUN_PREFIX}requests_log":
                raise places.wrong(path, "changes no result; give it once, in [run]")
            for value in values:
                _run_setting(key.removeprefix(RUN_PREFIX), value, path, places)
    return axes


def _scalar(value: object, path: str, places: Places) -> Value:
    if value is not None and not isinstance(value, (str, int, float, bool)):
        hint = "; values to compare are an axis of [parameters]" if isinstance(value, list) else ""
        raise places.wrong(path, f"found {shortened(value)}; must be text, a number, or true or false{hint}")
    if isinstance(value, str):
        _check_text(value, path, places)
    return value


def _check_text(text: str, path: str, places: Places) -> None:
    """Reject text that cannot be encoded as UTF-8. Keys of cells are computed from UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise places.wrong(path, f"found {shortened(text)}; must be text of whole characters") from None


def _distinct(values: list[Any], path: str, places: Places) -> list[Any]:
    if not values:
        raise places.wrong(path, "an empty axis has no cells; give at least one value, or remove the key")
    for i, value in enumerate(values):
        if any(value == other and type(value) is type(other) for other in values[:i]):
            raise places.wrong(path, f"{shortened(value)} is given twice; remove one")
    return values


def _texts(given: dict[str, Any], key: str, places: Places, default: Iterable[str] = ()) -> list[Any]:
    value = given.get(key)
    if value is None:
        if key in ("devices", "workloads"):
            raise places.wrong(key, f'missing; give a list, as in {key} = ["{_EXAMPLE[key]}"]')
        return list(default)
    if isinstance(value, (str, os.PathLike)):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise places.wrong(key, f"found {shortened(value)}; must be a list of texts")
    for each in value:
        if not isinstance(each, (str, os.PathLike)):
            hint = "; your own class has no content hash for the cell key" if callable(each) else ""
            raise places.wrong(key, f"found {shortened(each)}; must be text{hint}")
        _check_text(os.fspath(each), key, places)
    return _distinct([os.fspath(each) for each in value], key, places)


_EXAMPLE: Final = {"devices": "demo", "workloads": "zipf:write=0.8,requests=1e5"}


def _seeds(value: object, places: Places) -> list[Value]:
    if not isinstance(value, (list, tuple, range)):
        raise places.wrong(
            "seeds", f"found {shortened(value)}; must be a list of whole numbers, as in [1, 2, 3]"
        )
    for seed in value:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 63:
            raise places.wrong("seeds", f"found {shortened(seed)}; must be whole numbers from 0")
    return _distinct(list(value), "seeds", places)


def _untimed(given: dict[str, Any], values: dict[str, Any], places: Places) -> dict[str, Value] | None:
    """Return the settings of runs without time; None if the section `[untimed]` is missing."""
    if "untimed" not in given:
        return None
    for key in _TIMED:
        if key in given:
            raise places.wrong(key, "runs without time have none; remove it, or [untimed]")
    for key, value in values.items():
        path = f"untimed.{key}"
        if key not in UNTIMED:
            raise places.wrong(path, f"unknown; {_nearest(key, UNTIMED)}")
        kind, least = UNTIMED[key]
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        if not is_number or not least <= value < 1 << 32:
            raise places.wrong(path, f"found {shortened(value)}; must be {_TYPES[kind]} from {least:g}")
    return values


def _check_words(axes: dict[str, list[Value]], places: Places) -> None:
    for key in axes:
        if "." in key:
            raise places.wrong(
                f"parameters.{key}",
                "runs without time have words of a setup in place of keys of a device file",
            )


def _run_setting(key: str, value: object, path: str, places: Places) -> Value:
    if key not in _RUN:
        raise places.wrong(path, f"unknown; {_nearest(key, _RUN)}")
    kind, option = _RUN[key]
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise places.wrong(path, f"found {shortened(value)}; must be {_TYPES[kind]}")
    if kind is int and not (isinstance(value, int) and option.least <= value < 1 << 32):
        raise places.wrong(path, f"found {shortened(value)}; must be a whole number from {option.least}")
    if option.choices and value not in option.choices:
        raise places.wrong(path, f"found {shortened(value)}; must be one of {', '.join(option.choices)}")
    return value  # type: ignore[return-value]


def _trace(values: dict[str, Any], places: Places) -> TraceOptions:
    known = {field.name: int if "int" in str(field.type) else str for field in fields(TraceOptions)}
    for key, value in values.items():
        if key not in known:
            raise places.wrong(f"trace.{key}", f"unknown; {_nearest(key, known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise places.wrong(f"trace.{key}", f"found {shortened(value)}; must be {_TYPES[known[key]]}")
    return TraceOptions(**values)


def _baseline(values: dict[str, Any], axes: dict[str, list[Value]], places: Places) -> dict[str, Value]:
    comparable = [axis for axis in axes if axis != "seed"]
    for axis, value in values.items():
        path = f"baseline.{axis}"
        if axis not in comparable:
            raise places.wrong(path, f"no axis of this experiment; {_nearest(axis, comparable)}")
        if value not in axes[axis]:
            known = ", ".join(map(str, axes[axis]))
            raise places.wrong(
                path, f"found {shortened(value)}; must be one of the values of that axis: {known}"
            )
    if values:
        return values
    # By default, the baseline is the first policy or, with one policy, the first value of an axis that
    # varies.
    for axis in ("policy", *(a for a in comparable if a not in AXES), "device"):
        if len(axes[axis]) > 1:
            return {axis: axes[axis][0]}
    return {}


def _check_values(experiment: Experiment, places: Places) -> None:
    """Check each value by itself. An invalid combination of valid values is only an error of its cell."""
    for name in experiment.axes["device"]:
        with _at(places, "devices"):
            if experiment.untimed is None:
                read_device(experiment.path(str(name)))
            else:
                base_words(experiment.device(str(name)), {}, 1)
    for policy in experiment.axes["policy"]:
        if policy is None:
            continue
        with _at(places, "policies"):
            choice = Choice.read(str(policy))
            if choice.user:
                raise FlashtwinError(
                    f"{policy}: a class of a file may change while its results stay: use flashtwin compare"
                )
            if not _core.is_policy(str(choice.name)):
                raise FlashtwinError(
                    f"{choice.name} runs on no device; flashtwin policy hits counts its hits"
                )
    for workload in experiment.axes["workload"]:
        if not is_remote(str(workload)):
            with _at(places, "workloads"):
                source(experiment.path(str(workload)))


class _at:  # noqa: N801 (reads as a word where it is used)
    """Prefixes the message of an inner check with the position of the key."""

    def __init__(self, places: Places, key: str) -> None:
        self._places, self._key = places, key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FlashtwinError):
            raise self._places.wrong(self._key, str(error)) from None
