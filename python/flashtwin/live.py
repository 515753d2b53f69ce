"""`serve`: a modelled device that clients use as a block device, with realistic timing (docs/live.md).

nbdkit handles the protocol. The device and the data are in its plugin, which comes with flashtwin.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import nbdkit
from ._devices import DEFAULT_DEVICE, Overrides, Spec, as_toml
from ._placement.rules import Rules, SchemeLike, VictimLike
from ._placement.served import ServedRules
from ._policies import Choice
from ._support.files import write_text
from ._support.leftovers import free_socket, private_directory, remove_made, wait_for_store
from ._support.memory import need
from ._support.partials import remove_dead_partials
from ._support.prerequisites import PLUGIN
from ._support.recording import describe
from ._support.sizing import read as read_size
from ._support.sizing import sized
from .control import ask
from .errors import FlashtwinError
from .live_report import LiveReport
from .options import StateOptions, takes
from .runs import Made, precondition_spec

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .metrics import MetricsServer

#: Largest number of requests that a client may have in flight. nbdkit needs a thread for each of them. With
#: its default of 16 threads, a client could have only 16 requests in flight.
_IN_FLIGHT = 256
#: Timeout of a stop in seconds. Writing the state of a large device takes minutes.
_STOP_S = 600
#: Prefix of the plugin's messages about a stop that was not clean. Messages about clients have another
#: prefix.
_STOP_FAILED = "the stop failed: "


@dataclass(frozen=True)
class PowerCut:
    """The result of a power loss.

    Attributes:
        lost: numbers of the pages that lost their newest contents and now have older contents, in ascending
            order.
        unfinished: number of requests in flight, which have failed.
    """

    lost: list[int]
    unfinished: int


class Server:
    """A served device. As a context manager, it is stopped at the end of the `with` block.

    Attributes:
        uri: address to which clients connect.
        size_bytes: size of the device that clients can access.
        control: socket that accepts the commands of `flashtwin ctl`.
        started_from: origin of the initial state of the flash.
        metrics_url: address of the live page, if one was requested.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        place: Path,
        lock: int,
        *,
        uri: str,
        socket: Path | None,
        control: Path,
        size_bytes: int,
        started_from: str,
        metrics: MetricsServer | None,
        outputs: nbdkit.Outputs,
        rules: ServedRules | None,
    ) -> None:
        self.uri = uri
        self.size_bytes = size_bytes
        self.control = control
        self.started_from = started_from
        self.metrics_url = None if metrics is None else metrics.url
        self._metrics = metrics
        self._process = process
        self._place = place
        self._lock = lock
        self._socket = socket
        self._outputs = outputs
        self._rules = rules
        self._stopping = threading.Lock()
        self._is_stopping = False
        self._last: LiveReport | None = None
        #: Reason why the stop failed; None if it has not failed.
        self._failure: str | None = None
        if metrics is not None:
            metrics.start(self.report)

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server is running."""
        return self._process.poll() is None

    def report(self) -> LiveReport:
        """Return the current report, which is at most a second old; after the server's stop, the last one."""
        text = self._outputs.read_report()
        return LiveReport.read(text) if text is not None else self._final()

    def power_cut(self, *, torn: bool = False) -> PowerCut:
        """Emulate a power loss and a restart. docs/live.md lists the data that are lost.

        Requests in flight fail, and so do later requests on existing connections.

        Args:
            torn: whether a page whose program is interrupted may have new contents in its first sectors and
                old contents in the others.
        """
        said = ask(self.control, "power-cut", torn=torn)
        return PowerCut(lost=said["lost"], unfinished=said["unfinished"])

    def fail_member(self, member: int) -> None:
        """Make a member of an array fail."""
        ask(self.control, "fail", member=member)

    def replace_member(self, member: int) -> None:
        """Replace a failed member by a new one, which is then rebuilt."""
        ask(self.control, "replace", member=member)

    def slow_member(self, member: int, times: float) -> None:
        """Multiply the response times of a member of an array by a factor. 1 is normal speed."""
        ask(self.control, "slow", member=member, times=times)

    def collect(self, *, member: int | None = None, die: int | None = None) -> int:
        """Order each selected die to garbage-collect one block now. Return the number of selected dies.

        Args:
            member: member of an array; None for all members that have not failed.
            die: number of the die; None for all dies.
        """
        return int(ask(self.control, "collect", member=member, die=die)["dies"])

    def kill_die(self, die: int) -> int:
        """Make a die fail permanently. Return the number of lost pages.

        Reads of lost pages fail (EIO) until the pages are trimmed or written again, to another die.

        Args:
            die: number of the die, from 0.
        """
        return int(ask(self.control, "kill-die", die=die)["pages"])

    def set_policy(self, name: str, *, set: Overrides | None = None) -> None:
        """Replace the policy of the buffer. The new policy starts with the pages that are in the buffer.

        Args:
            name: name of the policy.
            set: keys of the policy, such as `{"buffer.window": 0.1}`. Other keys have their defaults.
        """
        settings = {key: as_toml(value) for key, value in (set or {}).items()}
        ask(self.control, "policy", name=name, set=settings)

    def set_keys(self, keys: Overrides) -> dict[str, str]:
        """Change keys of the buffer's policy and of garbage collection; other keys keep their values.

        Args:
            keys: new values of keys of the policy, `gc.low_percent`, `gc.idle_percent` or `gc.preemptible`,
                as in `{"buffer.window": 0.1}`.

        Returns:
            All keys that can change, with their values in TOML.
        """
        settings = {key: as_toml(value) for key, value in keys.items()}
        return ask(self.control, "set", keys=settings)

    def placement_status(self) -> list[dict[str, int]]:
        """Return the placement handles of a device that writes by units.

        Each placement handle has an id (`pid`), a reclaim unit handle (`ruhid`), and the number of bytes left
        to write in the unit of this reclaim unit handle (`ruamw`).
        """
        return list(ask(self.control, "placement-status")["handles"])

    def placement_log(self) -> list[dict[str, Any]]:
        """Return log pages 20h to 23h of flexible data placement (docs/placement.md)."""
        return list(ask(self.control, "placement-log")["logs"])

    def placement_update(self, *ids: int) -> list[dict[str, int]]:
        """Close the units to which the handles of the given placement ids write. Return the new status.

        Args:
            ids: placement ids, at most 128. If one is not valid, no unit is closed.
        """
        return list(ask(self.control, "placement-update", ids=list(ids))["handles"])

    def disturb(
        self, *, latency_us: int = 0, latency_share: float = 1.0, read_error_share: float = 0.0
    ) -> None:
        """Delay requests and fail reads from now on.

        The arguments replace those of an earlier call. Without arguments, delays and failures end.

        Args:
            latency_us: additional latency per request, in us of device time.
            latency_share: fraction of requests delayed.
            read_error_share: fraction of reads that fail with EIO.
        """
        ask(
            self.control,
            "disturb",
            latency_us=latency_us,
            latency_share=latency_share,
            read_error_share=read_error_share,
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait for the server to end by itself. Return False if it still runs after `timeout_s`."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def hurry(self) -> None:
        """If a stop waits for requests in flight, end the wait: these requests fail immediately."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def begin_stop(self) -> None:
        """Begin a stop without waiting for its end. The server accepts no further requests."""
        if self.running and not self._is_stopping:
            self._is_stopping = True
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> LiveReport:
        """Stop cleanly. If the store is a file, its data and the state of the flash are then on disk.

        Requests in flight have 10 s to complete. Later requests fail, and all connections are closed. Any
        thread may call this method, and it may be called several times. If the stop fails, the first call
        raises the error. All other calls return the last report.

        Raises:
            FlashtwinError: the server ended with an error, which the message contains. If a placement rule of
                the user raised an exception, that exception is raised instead.
        """
        with self._stopping:
            if self._last is None and self._failure is None:
                self._stop()
                self._outputs.close()
                if self._rules is not None and self._rules.error is not None:
                    raise self._rules.error
                if self._failure is not None:
                    raise FlashtwinError(self._failure)
        return self._final()

    def _final(self) -> LiveReport:
        if self._last is None:
            raise FlashtwinError(self._failure or "the server has been stopped")
        return self._last

    def _stop(self) -> None:
        self.begin_stop()
        if self._metrics is not None:
            self._metrics.close()
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        said = self._outputs.messages()
        report = self._outputs.read_report()
        nbdkit.clear(self._place, self._lock, self._socket, self.control)
        if self._rules is not None:
            self._rules.close()
        if code or report is None or any(_STOP_FAILED in line for line in said.splitlines()):
            self._failure = f"the server ended with exit code {code}: {said or 'no message'}"
        self._last = None if report is None else LiveReport.read(report)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@takes(StateOptions)
def serve(
    device: str | Path = DEFAULT_DEVICE,
    *,
    size: str | int | None = None,
    policy: str | None = None,
    placement: SchemeLike | None = None,
    victim: VictimLike | None = None,
    store: str | os.PathLike[str] = "memory",
    socket: str | os.PathLike[str] | None = None,
    tcp: int | None = None,
    tls_certificates: str | os.PathLike[str] | None = None,
    tls_psk: str | os.PathLike[str] | None = None,
    dilation: float = 1.0,
    record: str | os.PathLike[str] | None = None,
    metrics: int | None = None,
    **options: Unpack[StateOptions],
) -> Server:
    """Serve a device as a network block device (NBD), paced by the wall clock.

    Returns when clients can connect to `Server.uri`.

    Args:
        device: one of `flashtwin.devices()`, or the path of a TOML file.
        size: size that clients can access, such as "16G". The device gets the smallest number of blocks that
            provides it. None: the size of the device.
        policy: as for `run`, by name.
        placement: as for `run`. A scheme of the user runs in this process; the server calls it for every page
            (docs/live.md).
        victim: as for `run`.
        store: where the data are stored: "memory", "none" (reads return zeros), or a file. A file keeps the
            data for the next start, with the state of the flash in FILE.state.
        socket: Unix socket to listen on; by default, if `tcp` is not given either, one in a private
            directory.
        tcp: port to listen on. Without TLS, only the loopback interface is used.
        tls_certificates: directory with certificates, in the form of nbdkit-tls(1); clients must then use
            TLS.
        tls_psk: file with pre-shared keys, in the form of nbdkit-tls(1); clients must then use TLS.
        dilation: factor by which device time is slowed down, for hosts that are too slow.
        record: file for a recording of the clients' requests, as a CSV trace that `run` can replay. The
            replay starts from the device and the state of its flash, which are written to files beside the
            recording.
        metrics: port on the loopback interface for a live page and for Prometheus; 0 for any free port.
        {options}

    Raises:
        FlashtwinError: something is missing or wrong; the message has the remedy.
    """
    program = nbdkit.find()
    choice = Choice.read(policy)
    if choice.user is not None:
        raise FlashtwinError(
            f"{choice.label}: a served device cannot have a policy of your own; "
            "`flashtwin policy list` prints the policies that it can have"
        )
    rules = Rules.read(placement, victim)
    overrides = {**(options["set"] or {}), **rules.settings}
    size_bytes = None if size is None else read_size(size)
    spec = (
        choice.spec(device, overrides) if size_bytes is None else sized(device, size_bytes, choice, overrides)
    )
    kept = str(store) if store in ("memory", "none") else str(Path(store).absolute())
    if kept not in ("memory", "none"):
        wait_for_store(Path(kept))
        remove_dead_partials(_state(kept))
    watched = None
    if metrics is not None:
        # Imported only here, because importing an HTTP server takes long and few servers need it.
        from .metrics import MetricsServer

        watched = MetricsServer(metrics)
    place, lock = private_directory()
    outputs = nbdkit.Outputs()
    at = control = served = None
    try:
        listen, uri, at = nbdkit.listen_options(place, socket, tcp, tls_certificates, tls_psk)
        control = Path(f"{at}.ctl") if at is not None else place / "ctl"
        for own in filter(None, (at, control)):
            free_socket(own)
        recording = _recording(record)
        write_text(place / "device.toml", spec.to_toml(), "the device")
        made = rules.make()
        started_from, start = _flash(spec, kept, options, place, made)
        if rules.are_own:
            served = ServedRules(place, made)
        settings = {
            "device": place / "device.toml",
            "store": kept,
            "dilation": dilation,
            "report": outputs.report,
            "control": control,
            "umask": nbdkit.umask(),
            "made": place / "made",
            "listen": at,
            "record": recording,
            "rules": served and served.path,
            "snapshot": start,
            "size": size_bytes,
        }
        command = [program, "--foreground", "--exit-with-parent", "--pidfile", str(place / "pid")]
        command += ["--threads", str(_IN_FLIGHT), *listen]
        given = (f"{key}={value}" for key, value in settings.items() if value is not None)
        command += [str(PLUGIN), *given]
        process = nbdkit.start(command, place, lock, outputs)
        if recording is not None:
            flash = start or _kept_state(kept)
            _describe_record(recording, spec, flash, process)
    except BaseException:
        if watched is not None:
            watched.close()
        if served is not None:
            served.close()
        remove_made(place / "made")
        nbdkit.clear(place, lock, at, control)
        outputs.close()
        raise
    for name in ("start.state", "made"):
        (place / name).unlink(missing_ok=True)
    return Server(
        process,
        place,
        lock,
        uri=uri,
        socket=at,
        control=control,
        size_bytes=size_bytes or spec.exported_bytes,
        started_from=started_from,
        metrics=watched,
        outputs=outputs,
        rules=served,
    )


def _flash(spec: Spec, store: str, options: StateOptions, place: Path, made: Made) -> tuple[str, Path | None]:
    """Prepare the initial state of the flash. Return its description, and its file or None."""
    state = _kept_state(store)
    snapshot, precondition, seed = options["snapshot"], options["precondition"], options["seed"]
    _need(spec, loads=bool(state or snapshot or precondition != "none"))
    if state is not None:
        unused = f" (snapshot {snapshot} is not used: the store has its own state)"
        return f"as {state} has it{unused if snapshot is not None else ''}", None
    if snapshot is not None:
        return f"as {snapshot} has it", Path(snapshot).absolute()
    if precondition == "none":
        # The plugin creates this state itself, which takes half as much memory as loading it from a file.
        return "never written", None
    started_from = f"preconditioned: {precondition}, seed {seed}"
    start = place / "start.state"
    base = precondition_spec(spec, precondition, seed, options["progress"], made=made)
    base.save_snapshot(start, started_from)
    return started_from, start


def _recording(record: str | os.PathLike[str] | None) -> Path | None:
    """Return the path of the recording.

    A recording that exists already, or whose directory does not exist, is rejected.
    """
    if record is None:
        return None
    if Path(record).exists():
        raise FlashtwinError(f"record {record}: already exists; remove it, or give another name")
    if not Path(record).absolute().parent.is_dir():
        raise FlashtwinError(f"record {record}: its directory is not there; create it first")
    return Path(record).absolute()


def _describe_record(record: Path, spec: Spec, flash: Path | None, process: subprocess.Popen[bytes]) -> None:
    """Write the files that describe the start of a recording. If this fails, stop the server."""
    try:
        describe(record, spec.to_toml(), flash)
    except BaseException:
        nbdkit.end(process)
        raise


def _need(spec: Spec, *, loads: bool) -> None:
    """Reject a device that does not fit into memory.

    While a state is loaded, the device needs twice the memory.
    """
    if loads:
        need(spec.tables_bytes, devices=2, less="--precondition none takes half")
    else:
        need(spec.tables_bytes)


def _state(store: str) -> Path:
    """Return the path of the file beside a store that has the state of the flash."""
    return Path(f"{store}.state")


def _kept_state(store: str) -> Path | None:
    """Return the existing file with the flash state of a store; None if store or state is not a file."""
    state = _state(store)
    return state if store not in ("memory", "none") and Path(store).exists() and state.exists() else None
