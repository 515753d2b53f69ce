"""Results of experiments: summaries and logs of fio, and tables."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._support.inputs import RESULTS_MAX, exists, parse_json, read_bytes
from ..errors import FlashtwinError
from .figures import BEYOND_MIN, OTHERS_PERCENT, PERCENTILES, Figures
from .logs import LOG_NAME, of_csv, of_logs

#: Name of the manifest in a folder of results.
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Results:
    """Results of the measurement of a drive.

    Attributes:
        figures: figures of all experiments.
        capacity_bytes: capacity of the drive.
        requests: number of measured requests of each experiment.
        folder: directory of the results.
        planned: experiments that the manifest names.
        seed: seed of the loads if flashtwin generated them; None if fio did, which draws other addresses.
        uncertain: by figure, the known error of its measurement as a fraction of its value.
    """

    figures: Figures
    capacity_bytes: int
    requests: dict[str, int]
    folder: Path = Path()
    planned: tuple[str, ...] = ()
    seed: int | None = None
    uncertain: Figures = field(default_factory=dict)

    @property
    def in_order(self) -> bool:
        """Whether the experiments ran one after the other on one drive, as fio runs them."""
        return self.seed is None

    def require_whole(self) -> None:
        """Reject results in which an experiment of the plan is missing.

        Raises:
            FlashtwinError: results are missing; the message has the names of the files and the command to
                run.
        """
        missing = [name for name in self.planned if name not in self.requests]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise FlashtwinError(
                f"{self.folder / missing[0]}.json: missing{more}; "
                "run the plan's run.sh again: it keeps finished experiments"
            )

    def require_size(self, writes: Mapping[str, int]) -> None:
        """Reject results of a drive whose size differs from that in the manifest.

        Args:
            writes: number of requests of each experiment that writes a share of the drive.

        Raises:
            FlashtwinError: the size differs; the message has the name of the file and the command to run.
        """
        for name, expected in writes.items():
            # Tables have no numbers of requests.
            found = self.requests.get(name, 0)
            if found and found != expected:
                path = self.folder / f"{name}.json"
                raise FlashtwinError(
                    f"{path}: {found} requests, where the drive of {self.capacity_bytes} bytes in {MANIFEST} "
                    f"gives {expected}; {_again(path)}"
                )


def of_job(job: Mapping[str, Any]) -> Figures:
    """Return the figures of a job from fio's `json` or `json+` output, by measure."""
    kinds = [kind for kind in ("read", "write") if job.get(kind, {}).get("total_ios")]
    figures: Figures = {}
    for kind in kinds:
        found = _percentiles(job[kind]["clat_ns"])
        for percent in PERCENTILES:
            if percent in found and job[kind]["total_ios"] * (100 - percent) >= 100 * BEYOND_MIN:
                figures[f"{kind}.p{percent:g}_us"] = found[percent] / 1e3
    others = {"flush": (job.get("sync", {}), "lat_ns"), "trim": (job.get("trim", {}), "clat_ns")}
    others = {kind: each for kind, each in others.items() if each[0].get("total_ios")}
    for kind, (part, times) in others.items():
        found = _percentiles(part[times])
        if OTHERS_PERCENT in found:
            figures[f"{kind}.p{OTHERS_PERCENT}_us"] = found[OTHERS_PERCENT] / 1e3
    if kinds and not others:
        figures["mb_per_s"] = sum(job[kind]["bw_bytes"] for kind in kinds) / 1e6
    return figures


def _uncertain(job: Mapping[str, Any]) -> float:
    """Return the error of a bandwidth as a fraction.

    The cause of the error is that fio rounds run times up to milliseconds.
    """
    run_ms = max(float(job.get(kind, {}).get("runtime", 0)) for kind in ("read", "write"))
    return 1 / run_ms if run_ms > 0 else 0.0


def _percentiles(latency: Mapping[str, Any]) -> dict[float, float]:
    return {float(percent): ns for percent, ns in latency.get("percentile", {}).items()}


def read_results(folder: Path, rates_only: Container[str]) -> Results:
    """Return the results of all experiments in a folder.

    Args:
        folder: directory with manifest.json and the figures: for each experiment either NAME.json, or
            NAME_clat.1.log and NAME_bw.1.log, all from fio; or tables of figures as CSV.
        rates_only: experiments whose latencies are not figures.

    Raises:
        FlashtwinError: a file cannot be read; the message has its name.
    """
    manifest = _read_json(folder / MANIFEST)
    capacity = manifest.get("capacity_bytes")
    if not isinstance(capacity, int) or capacity <= 0:
        raise FlashtwinError(f"{folder / MANIFEST}: capacity_bytes: give the bytes of the drive")
    dilation = manifest.get("dilation", 1)
    if not isinstance(dilation, int | float) or dilation <= 0:
        raise FlashtwinError(f"{folder / MANIFEST}: dilation: give a number above 0")
    seed = manifest.get("seed")
    if seed is not None and (not isinstance(seed, int) or seed < 1):
        raise FlashtwinError(f"{folder / MANIFEST}: seed: give a number of 1 or more")
    planned = manifest.get("experiments", [])
    if not isinstance(planned, list) or not all(isinstance(each, dict) for each in planned):
        raise FlashtwinError(f"{folder / MANIFEST}: experiments: give a list of objects with a name")
    found = _Found(rates_only, capacity)
    for path in sorted(folder.glob("*.json")):
        if path.name != MANIFEST:
            found.add_json(path)
    logs: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.log")):
        match = LOG_NAME.fullmatch(path.name)
        if match:
            logs.setdefault(match["experiment"], []).append(path)
    for experiment, paths in logs.items():
        # If a job wrote both logs and a summary, the summary is used: its percentiles include all requests.
        if not (folder / f"{experiment}.json").exists():
            values, requests = of_logs(paths)
            found.add(experiment, values, requests, paths[0])
    for path in sorted(folder.glob("*.csv")):
        for experiment, values in of_csv(path).items():
            found.add(experiment, values, 0, path)
    in_device_time = {
        name: value * dilation if name.endswith("mb_per_s") else value / dilation
        for name, value in found.figures.items()
    }
    names = tuple(str(each.get("name", "")) for each in planned)
    # Rates in results of flashtwin itself are exact.
    uncertain = found.uncertain if seed is None else {}
    return Results(in_device_time, capacity, found.requests, folder, names, seed, uncertain)


class _Found:
    """Figures that were read so far."""

    def __init__(self, rates_only: Container[str], capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self.figures: Figures = {}
        self.requests: dict[str, int] = {}
        self.uncertain: Figures = {}
        self._rates_only = rates_only
        self._files: dict[str, Path] = {}
        self._drives: dict[str, Path] = {}

    def add_json(self, path: Path) -> None:
        """Add a summary of fio."""
        results = _read_json(path)
        if not results.get("jobs"):
            raise FlashtwinError(f"{path}: no jobs of fio in it; {_again(path)}")
        try:
            job = results["jobs"][0]
            common = results.get("global options", {})
            options = {**common, **job.get("job options", {})}
            drive = str(options.get("filename", options.get("uri", "")))
            # Only the size in the global section is that of the drive: a job with its own size uses a part.
            # Plans of flashtwin give a size in bytes, others may give text such as "1G".
            size = str(common.get("size", ""))
            bytes_ = int(size) if size.isdecimal() else self._capacity_bytes
            requests = sum(int(job.get(kind, {}).get("total_ios", 0)) for kind in ("read", "write"))
            figures = of_job(job)
            uncertain = _uncertain(job)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError):
            raise FlashtwinError(f"{path}: no summary of fio in it; {_again(path)}") from None
        self._drives.setdefault(drive, path)
        if len(self._drives) > 1:
            (first, where), (other, _) = self._drives.items()
            raise FlashtwinError(
                f"{path}: of another drive ({other}) than {where.name} ({first}); {_again(path)}"
            )
        if bytes_ != self._capacity_bytes:
            raise FlashtwinError(
                f"{path}: of {bytes_} bytes, but manifest.json has a drive of {self._capacity_bytes}; "
                f"{_again(path)}"
            )
        self.add(path.stem, figures, requests, path)
        self.uncertain[f"{path.stem}/mb_per_s"] = uncertain

    def add(self, experiment: str, values: Figures, requests: int, path: Path) -> None:
        """Add the figures of an experiment."""
        if experiment in self._files:
            raise FlashtwinError(
                f"{path}: {experiment} is in {self._files[experiment].name}, too: remove one"
            )
        self._files[experiment] = path
        self.requests[experiment] = requests
        for what, value in values.items():
            if what == "mb_per_s" or experiment not in self._rates_only:
                self.figures[f"{experiment}/{what}"] = value


def _again(path: Path) -> str:
    """Return advice on how to replace a file of results that cannot be used."""
    if path.name == MANIFEST:
        return (
            "write the plan again (flashtwin calibrate plan) or measure again (flashtwin calibrate measure)"
        )
    return f"remove it and run {path.stem} again: the plan's run.sh keeps the others"


def _read_json(path: Path) -> dict[str, Any]:
    if not exists(path):
        raise FlashtwinError(f"{path}: file not found; {_again(path)}")
    data = read_bytes(path, "result", RESULTS_MAX)
    try:
        found: object = parse_json(data)
    except ValueError:
        raise FlashtwinError(f"{path}: not whole: no JSON; {_again(path)}") from None
    if not isinstance(found, dict):
        raise FlashtwinError(f"{path}: no object of JSON; {_again(path)}")
    return found
