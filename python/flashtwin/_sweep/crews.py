"""Workers: threads of this process, an executor of the caller, or a Dask cluster."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures import Future as LocalFuture
from typing import Any, Protocol

from .. import _core
from .._support.prerequisites import install_line
from ..errors import FlashtwinError

#: Interval in seconds between two queries of the number of workers of a cluster.
_ASK_EVERY_S = 2.0
#: Settings of a local cluster. Its scheduler shares the cores with the workers, so profiling is off and
#: periodic tasks are rare. The memory settings let workers keep freed memory for the next cell, instead of
#: returning it and causing page faults again. MMAP_THRESHOLD is the maximum size of blocks in the heap (the
#: largest that glibc permits); TRIM_THRESHOLD is the amount of free memory that a worker keeps.
_LOCAL = {
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 30,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}


class Future(Protocol):
    """A piece of work that was submitted to workers, with the methods that the engine uses."""

    def result(self) -> Any:  # noqa: ANN401
        """Return the result of the work, or raise its error."""

    def exception(self) -> BaseException | None:
        """Return the error of the work; None if the work ended without an error."""

    def cancel(self) -> Any:  # noqa: ANN401
        """Cancel the work if it has not begun."""

    def cancelled(self) -> bool:
        """Whether the work was cancelled."""

    def add_done_callback(self, call: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Call a function when the work has ended."""


class Crew(ABC):
    """Workers that accept work and return futures."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Number of pieces of work to keep in flight so that no worker is idle."""

    @abstractmethod
    def submit(self, work: Callable[..., bytes], *arguments: object) -> Future:
        """Submit `work(*arguments)` to the workers."""

    def share(self, made: Future) -> object:
        """Return a value that stands for the result of `made`.

        If the value is an argument of work that is submitted later, that work receives the result.
        """
        return made.result()

    @abstractmethod
    def close(self, stop: bool) -> None:
        """Release all resources. If `stop` is true, running work ends early."""


class Threads(Crew):
    """Threads of this process. The model runs without the GIL."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="flashtwin")
        self._controls: set[_core.Control] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def slots(self) -> int:
        return 2 * self._threads

    def submit(self, work: Callable[..., bytes], *arguments: object) -> Future:
        return self._pool.submit(self._do, work, *arguments)

    def _do(self, work: Callable[..., bytes], *arguments: object) -> bytes:
        control = _core.Control()
        with self._lock:
            self._controls.add(control)
            if self._stopped:
                control.stop()
        try:
            return work(*arguments, control)
        finally:
            with self._lock:
                self._controls.discard(control)

    def close(self, stop: bool) -> None:
        if stop:
            with self._lock:
                self._stopped = True
                for control in self._controls:
                    control.stop()
        self._pool.shutdown(cancel_futures=stop)


class Handed(Crew):
    """The caller's executor, which stays open."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._futures: set[LocalFuture[bytes]] = set()

    @property
    def slots(self) -> int:
        return 2 * (getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1)

    def submit(self, work: Callable[..., bytes], *arguments: object) -> Future:
        future = self._executor.submit(work, *arguments)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def close(self, stop: bool) -> None:
        if stop:
            for future in list(self._futures):
                future.cancel()


class Dask(Crew):
    """A Dask cluster. Preconditioned states stay on the workers. If a worker is lost, they are recreated."""

    def __init__(self, where: str | Any, workers: int) -> None:  # noqa: ANN401 (a distributed.Client)
        self._own: list[Any] = []
        if isinstance(where, str):
            distributed = _distributed()
            try:
                cluster = _cluster(distributed, where, workers)
                self._client = distributed.Client(cluster)
            except (ImportError, OSError, RuntimeError, ValueError) as e:
                if isinstance(e, FlashtwinError):
                    raise
                raise FlashtwinError(
                    f"--dask {where}: cannot start or reach it: {e}; see that its scheduler runs, or how "
                    "Dask's own documentation sets such a cluster up"
                ) from None
            self._own = [self._client] if isinstance(cluster, str) else [self._client, cluster]
        else:
            self._client = where
        self._futures: set[Any] = set()
        self._threads: dict[str, int] = {}
        self._ask_again = 0.0
        # For each worker, the number of pieces of work that were submitted to it and have not ended.
        self._given: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def slots(self) -> int:
        # The number of workers may change. It is queried only now and then, because a query takes a round
        # trip.
        if time.monotonic() >= self._ask_again:
            self._threads = self._client.nthreads()
            self._ask_again = time.monotonic() + _ASK_EVERY_S
        return max(2, 3 * sum(self._threads.values()))

    def submit(self, work: Callable[..., bytes], *arguments: object) -> Future:
        # By default, the scheduler would run all cells on the worker that has their state, while other
        # workers are idle. Instead, work is submitted to the worker with the least work. If that one is lost,
        # any other may run it.
        with self._lock:
            given = self._given
            worker = min(self._threads, key=lambda w: given[w] / self._threads[w], default=None)
            if worker is not None:
                given[worker] += 1
        at = {"workers": [worker], "allow_other_workers": True} if worker else {}
        future = self._client.submit(work, *arguments, pure=False, **at)
        self._futures.add(future)
        future.add_done_callback(lambda done: self._back(done, worker))
        return future  # type: ignore[no-any-return]

    def _back(self, future: Any, worker: str | None) -> None:  # noqa: ANN401
        with self._lock:
            self._futures.discard(future)
            if worker is not None:
                self._given[worker] -= 1

    def share(self, made: Future) -> object:
        return made

    def close(self, stop: bool) -> None:
        if stop:
            self._client.cancel(list(self._futures))
        for each in self._own:
            each.close()


def _distributed() -> Any:  # noqa: ANN401
    try:
        import distributed
    except ImportError:
        raise FlashtwinError(f"Dask clusters need distributed: {install_line('distributed')}") from None
    return distributed


def _cluster(distributed: Any, where: str, workers: int) -> Any:  # noqa: ANN401
    """Start the cluster that `where` specifies. If `where` is an address, return it unchanged."""
    kind, _, rest = where.partition(":")
    if kind == "local":
        import dask

        with dask.config.set(_LOCAL):
            return distributed.LocalCluster(
                n_workers=_number(rest, where, workers), threads_per_worker=1, dashboard_address=None
            )
    if kind == "ssh":
        hosts = [host for host in rest.split(",") if host]
        if not hosts:
            raise FlashtwinError(f"--dask {where}: name the hosts, as in ssh:node1,node2")
        # The first host of the list runs the scheduler, and a worker as well.
        return distributed.SSHCluster([hosts[0], *hosts])
    if kind == "slurm":
        try:
            import dask_jobqueue
        except ImportError:
            line = install_line("dask-jobqueue")
            raise FlashtwinError(f"--dask slurm needs dask-jobqueue: {line}") from None
        cluster = dask_jobqueue.SLURMCluster()
        cluster.scale(jobs=_number(rest, where, workers))
        return cluster
    if "://" not in where and not rest.isdigit():
        raise FlashtwinError(
            f"--dask {where}: give the scheduler's address (tcp://host:8786), or local, local:WORKERS, "
            "ssh:HOST,HOST or slurm:JOBS"
        )
    return where


def _number(text: str, where: str, default: int) -> int:
    if not text:
        return default
    if not text.isdigit() or not 1 <= int(text) < 1 << 16:
        raise FlashtwinError(f"--dask {where}: give a number from 1 behind the colon")
    return int(text)
