"""Sweeps: many runs from one description, which continue after an interruption (docs/sweeps.md)."""

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
    """Run all unfinished cells of an experiment, and write the dataset of all cells.

    Each cell is saved in `directory` as soon as it has finished. After Ctrl-C, a crash or a full disk, the
    same call continues with the unfinished cells. The dataset, `results.parquet`, has the same bytes with any
    kind and number of workers.

    Args:
        experiment: a TOML file, or a mapping with the same content (docs/sweeps.md).
        directory: directory for the results, which is created if it does not exist; or a URL that fsspec
            opens.
        threads: number of runs at the same time in this process; by default the number of cores.
        executor: executor that runs the cells instead of this process. The sweep does not close it.
        dask: Dask cluster that runs the cells instead of this process: an address, "local:WORKERS",
            "ssh:HOST,HOST", "slurm:JOBS", or a `distributed.Client`. The sweep does not close a given client.
        progress: function to call with a `SweepProgress` when a cell ends, and at regular intervals.

    Raises:
        FlashtwinError: the experiment is wrong, or results can no longer be saved. A failed cell raises no
            error: its row of the results has the error, and the next call runs the cell again.
        Interrupted: on Ctrl-C; its `partial` has the results so far.
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
            # If Ctrl-C is pressed just after a cell has been saved, its result is not yet recorded here.
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
