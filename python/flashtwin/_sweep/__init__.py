"""Sweeps: many runs from one description, resumed where they stopped (docs/sweeps.md)."""

from __future__ import annotations

import json
import os
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from .._results import Results, dataset
from .._support.folders import Folder
from ..errors import FlashtwinError, Interrupted
from .cells import cells_of, unique_jobs
from .crews import Crew, Dask, Handed, Threads
from .engine import Engine, OnSweepProgress, SweepProgress
from .experiment import ExperimentLike, read_experiment
from .rows import check_figures, table_of
from .store import Store

__all__ = ["ExperimentLike", "OnSweepProgress", "SweepProgress", "sweep"]


def sweep(
    experiment: ExperimentLike,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    dask: str | Any = None,  # noqa: ANN401 (a distributed.Client)
    progress: OnSweepProgress | None = None,
) -> Results:
    """Run every unfinished cell of an experiment, and write the dataset of all cells.

    Each finished cell is saved in `directory` immediately: after Ctrl-C, a crash or a full disk, the same
    call continues where it stopped. The dataset, `results.parquet`, has the same bytes with any kind and
    number of workers.

    Args:
        experiment: a TOML file, or a mapping of what one would hold (docs/sweeps.md).
        directory: where results are kept: a directory, made if there is none, or a URL that fsspec
            opens.
        threads: runs at a time in this process; as many as there are cores if None.
        executor: run the cells on this instead; it stays open.
        dask: run the cells on Dask instead: an address, "local:WORKERS", "ssh:HOST,HOST",
            "slurm:JOBS", or a `distributed.Client`, which stays open.
        progress: called with a `SweepProgress` whenever a cell ends, and now and then.

    Raises:
        FlashtwinError: the experiment is wrong, or nothing can be kept any more; cells that fail by
            themselves are rows of the results with their error, and are tried again by the next call.
        Interrupted: on Ctrl-C; its `partial` holds the results so far.
    """
    read = read_experiment(experiment)
    check_figures(read)
    if threads is not None and threads < 1:
        raise FlashtwinError(f"threads: {threads}: give 1 or more")
    if executor is not None and dask is not None:
        raise FlashtwinError("executor and dask exclude each other: give one of them")
    cells = cells_of(read)
    folder = Folder(directory)
    folder.make("")
    with folder.alone():
        logs = bool(read.run.get("requests_log"))
        store = Store(folder, logs)
        store.prepare()
        engine = Engine(_crew(threads, executor, dask), store, progress)
        jobs = list(unique_jobs(cells))
        if logs:
            jobs = [(replace(j, log=(folder.anywhere, Store.log_name(j.key))), state) for j, state in jobs]
        try:
            engine.run(jobs)
        except KeyboardInterrupt:
            # It may have come between keeping a cell and knowing of it.
            kept = Store(folder, logs).summaries(job.key for job, _ in jobs)
            if not (kept or engine.errors):
                raise Interrupted(None) from None
            dataset.write(folder, table_of(read, cells, kept, engine.errors))
            raise Interrupted(Results(directory)) from None
        finally:
            times = ({"cell": key, "wall_s": round(s, 3)} for key, s in engine.wall_s.items())
            folder.append("wall_times.jsonl", "".join(json.dumps(row) + "\n" for row in times))
        dataset.write(folder, table_of(read, cells, engine.summaries, engine.errors))
    return Results(directory)


def _crew(threads: int | None, executor: Executor | None, dask: Any) -> Crew:  # noqa: ANN401
    workers = threads or len(os.sched_getaffinity(0))
    if executor is not None:
        return Handed(executor)
    return Threads(workers) if dask is None else Dask(dask, workers)
