"""Runs work in threads, while the caller's thread shows progress and handles Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from .. import _core

T = TypeVar("T")

#: Interval in seconds at which the caller's thread checks the running work.
_PERIOD_S = 0.1


@dataclass
class Progress:
    """Progress of one piece of work.

    Attributes:
        label: description of the work, such as "lru" or "preconditioning".
        done: number of requests or pages of the phase done so far.
        total: number of requests or pages in the phase; None if unknown. For most traces, it is an estimate.
        finished: whether the work has ended.
        rebuilt: rebuilt fraction of those members of the array that are being rebuilt; None if there are
            none.
        phase: phase of the work, such as "filling the buffer"; empty for measured requests.
    """

    label: str
    done: int
    total: int | None
    finished: bool = False
    rebuilt: float | None = None
    phase: str = ""


#: Function that receives the progress of a task. It is called in the caller's thread, about ten times a
#: second for each running task.
OnProgress: TypeAlias = Callable[[Progress], None]


class Task:
    """One piece of work: its label, the function that runs it, and the control that can stop it."""

    def __init__(self, label: str, work: Callable[[_core.Control], T], total: int | None = None) -> None:
        self.label = label
        self.control = _core.Control()
        self._work = work
        self._total = total

    def run(self) -> object:
        """Do the work."""
        return self._work(self.control)

    def progress(self, finished: bool) -> Progress:
        """Return the progress of the work."""
        done, rows = self.control.rebuild
        rebuilt = done / rows if rows else None
        control = self.control
        total = control.total or self._total
        return Progress(self.label, control.done, total, finished, rebuilt, control.phase)


def run_all(tasks: list[Task], threads: int, on_progress: OnProgress | None) -> tuple[list[object], bool]:
    """Run tasks in the order of the list, at most `threads` at the same time.

    Returns the results, and whether Ctrl-C was pressed. After Ctrl-C, running tasks end early with partial
    results, and tasks that have not begun are skipped. If a task raises an error, the others are stopped, and
    the error is raised.
    """
    interrupted = False
    failed: Future[object] | None = None
    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(tasks)))) as pool:
        futures = [pool.submit(task.run) for task in tasks]
        try:
            pending: set[Future[object]] = set(futures)
            while pending:
                try:
                    done, pending = wait(pending, timeout=_PERIOD_S, return_when=FIRST_EXCEPTION)
                    failed = next(
                        (f for f in futures if f in done and not f.cancelled() and f.exception()), None
                    )
                    if failed:
                        break
                    if on_progress:
                        for task, future in zip(tasks, futures, strict=True):
                            if future.running() or future in done:
                                on_progress(task.progress(future.done()))
                except KeyboardInterrupt:
                    interrupted = True
                    _stop(tasks, futures)
        except BaseException:
            _stop(tasks, futures)
            raise
        _stop(tasks, [f for f in futures if not f.done()])
    if failed:
        failed.result()  # before the others: a stopped run may raise an error of its own
    for future in futures:
        if not future.cancelled():
            future.result()
    return [future.result() for future in futures if not future.cancelled()], interrupted


def _stop(tasks: list[Task], futures: list[Future[object]]) -> None:
    for future in futures:
        future.cancel()
    for task in tasks:
        task.control.stop()
