"""Runs each cell of a sweep once, after its preconditioned state is created, and saves its result."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from .._results.body import summary_line
from ..errors import FlashtwinError
from .crews import Crew, Future
from .store import Store
from .untimed import run_untimed
from .work import CellJob, StateJob, StoppedError, make_state, run_cell

#: Interval in seconds between two calls of the progress function while no cell ends.
_PERIOD_S = 0.2


def _worker_losses() -> tuple[type[BaseException], ...]:
    """Return the types of exceptions that indicate a failure of the workers, not of a cell."""
    # Imported only here, because importing asyncio would slow down the start of every command.
    from asyncio import CancelledError as DaskCancelled

    return (BrokenExecutor, CancelledError, DaskCancelled, StoppedError)


@dataclass
class SweepProgress:
    """Progress of a sweep.

    Attributes:
        cells: number of cells, including cells that are already finished.
        found: number of cells that an earlier run of the sweep had finished.
        done: number of finished cells, including those found.
        failed: number of cells that ended with an error.
        elapsed_s: wall time so far.
    """

    cells: int
    found: int = 0
    done: int = 0
    failed: int = 0
    elapsed_s: float = 0.0

    @property
    def rate_per_s(self) -> float:
        """Cells computed a second."""
        computed = self.done - self.found + self.failed
        return computed / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def left_s(self) -> float | None:
        """Return the estimated remaining wall-clock time in seconds; None before the first finished cell."""
        left = self.cells - self.done - self.failed
        return left / self.rate_per_s if self.rate_per_s else None


#: Function that is called in the caller's thread whenever a cell ends, and at regular intervals.
OnSweepProgress: TypeAlias = Callable[[SweepProgress], None]


@dataclass
class _Group:
    """Cells that start from the same state."""

    state: StateJob | None
    jobs: deque[CellJob] = field(default_factory=deque)


class Engine:
    """One pass over the unfinished cells."""

    def __init__(self, crew: Crew, store: Store, on_progress: OnSweepProgress | None) -> None:
        self._crew = crew
        self._store = store
        self._on_progress = on_progress
        #: Results by the key of the cell: the summary as a line of JSON, or the error.
        self.summaries: dict[str, bytes] = {}
        self.errors: dict[str, str] = {}
        #: Wall-clock time of each cell since its work was submitted, in seconds.
        self.wall_s: dict[str, float] = {}
        self._waiting: deque[_Group] = deque()
        self._ready: deque[tuple[CellJob, object]] = deque()
        self._flying: dict[int, tuple[Future, _Group | CellJob, float]] = {}
        self._landed: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._next = 0

    def run(self, jobs: list[tuple[CellJob, StateJob | None]]) -> None:
        """Run all cells. Returns when each cell has a result or an error.

        Raises:
            FlashtwinError: results can no longer be saved, or the workers failed; finished cells are kept.
            KeyboardInterrupt: on Ctrl-C; finished cells are kept.
        """
        progress = SweepProgress(len(jobs))
        groups: dict[str | None, _Group] = {}
        self.summaries = self._store.summaries(job.key for job, _ in jobs)
        for job, state in jobs:
            if job.key in self.summaries:
                continue
            group = groups.setdefault(state.key if state else None, _Group(state))
            group.jobs.append(job)
        progress.found = len(self.summaries)
        self._waiting.extend(groups.values())
        began = time.monotonic()
        whole = False
        try:
            while self._launch():
                with suppress(queue.Empty):
                    self._land(self._landed.get(timeout=_PERIOD_S))
                self._tell(progress, began)
            self._tell(progress, began)
            whole = True
        except _worker_losses() as e:
            raise FlashtwinError(
                f"the workers are gone ({e or type(e).__name__}); finished cells are kept: "
                "run the same command again to go on"
            ) from None
        finally:
            self._crew.close(stop=not whole)

    def _tell(self, progress: SweepProgress, began: float) -> None:
        progress.done, progress.failed = len(self.summaries), len(self.errors)
        progress.elapsed_s = time.monotonic() - began
        if self._on_progress:
            self._on_progress(progress)

    def _launch(self) -> bool:
        """Keep all workers busy. Return False if no work is left or in flight."""
        slots = self._crew.slots
        while len(self._flying) < slots:
            making = sum(isinstance(what, _Group) for _, what, _ in self._flying.values())
            # The creation of the next state is submitted before the last cells of the current state, so that
            # no worker is idle during the creation.
            if self._waiting and ((len(self._ready) < slots and not making) or not self._ready):
                group = self._waiting.popleft()
                if group.state is None:
                    self._ready.extend((job, None) for job in group.jobs)
                else:
                    self._fly(self._crew.submit(make_state, group.state), group)
            elif self._ready:
                job, state = self._ready.popleft()
                self._fly(self._submit(job, state), job)
            else:
                break
        return bool(self._flying)

    def _submit(self, job: CellJob, state: object) -> Future:
        if "words" in job.identity:
            return self._crew.submit(run_untimed, job)
        return self._crew.submit(run_cell, job, state)

    def _fly(self, future: Future, what: _Group | CellJob) -> None:
        number = self._next
        self._next += 1
        self._flying[number] = (future, what, time.monotonic())
        # Called in a thread of the crew's.
        future.add_done_callback(lambda _: self._landed.put(number))

    def _land(self, number: int) -> None:
        future, what, began = self._flying.pop(number)
        jobs = list(what.jobs) if isinstance(what, _Group) else [what]
        try:
            # A state itself is not fetched, because only workers need it.
            result = future.result() if isinstance(what, CellJob) else None
            error = None if result is not None else future.exception()
            if error is not None:
                raise error
        except KeyboardInterrupt:
            raise
        except _worker_losses():
            raise
        except FlashtwinError as e:
            self.errors.update((job.key, str(e)) for job in jobs)
            return
        except MemoryError:
            self.errors.update((job.key, "out of memory; run fewer cells at a time") for job in jobs)
            return
        except BaseException as e:  # A panic of the model is no Exception. No cell may stop the other cells.
            self.errors.update((job.key, f"{type(e).__name__}: {e}") for job in jobs)
            return
        if isinstance(what, _Group):
            state = self._crew.share(future)
            self._ready.extend((job, state) for job in jobs)
            return
        assert result is not None
        self._store.write(what.key, result)
        self.summaries[what.key] = summary_line(result)
        self.wall_s[what.key] = time.monotonic() - began
