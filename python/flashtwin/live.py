"""`serve`: a device as a block device that takes its time (docs/live.md).

nbdkit speaks the protocol; the device and the data are in its plugin, which comes with flashtwin.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from .control import ask
from .devices import Overrides, Spec, as_toml
from .errors import FlashtwinError
from .files import write_text
from .leftovers import free_socket, private_directory, remove_dead_socket, remove_made, wait_for_store
from .live_report import LiveReport
from .memory import need
from .policies import Choice
from .runs import precondition_spec
from .sizing import read as read_size
from .sizing import sized
from .watch import OnProgress

if TYPE_CHECKING:
    from .metrics import MetricsServer

#: Seconds between two looks at a server that starts.
_PERIOD_S = 0.02
#: Timeout of a stop in seconds: the state of a large device takes minutes to write.
_STOP_S = 600
#: Longest name of a Unix socket, of which the control socket's takes a part.
_SOCKET_BYTES = 107 - len(".ctl")
#: Who installs nbdkit, and how.
_INSTALL = {
    "apt-get": "sudo apt-get install nbdkit",
    "dnf": "sudo dnf install nbdkit",
    "zypper": "sudo zypper install nbdkit",
    "pacman": "sudo pacman -S nbdkit",
    "apk": "sudo apk add nbdkit",
}
#: What the plugin says of a stop that left something undone; what clients did wrong is among its words, too.
_STOP_FAILED = "the stop failed: "
_PLUGIN = Path(__file__).with_name("flashtwin_nbdkit.so")


@dataclass(frozen=True)
class PowerCut:
    """The result of a power loss.

    Attributes:
        lost: numbers of the pages that are as they were before, ascending: what was written last is lost.
        unfinished: requests in flight, which have failed.
    """

    lost: list[int]
    unfinished: int


class Server:
    """A device being served. Leaving the `with` block stops it.

    Attributes:
        uri: what clients connect to.
        size_bytes: what they see.
        control: socket on which it takes commands, as `flashtwin ctl` gives them.
        started_from: how the flash came into the state it began with.
        metrics_url: the page that shows it live, if one was asked for.
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
        self._last: LiveReport | None = None
        if metrics is not None:
            metrics.start(self.report)

    @property
    def pid(self) -> int:
        """Process of the server."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still serves."""
        return self._process.poll() is None

    def report(self) -> LiveReport:
        """Return the report so far, at most a second old; after the stop, the final one."""
        if self._last is not None:
            return self._last
        return LiveReport.read((self._place / "report.json").read_text())

    def power_cut(self, *, torn: bool = False) -> PowerCut:
        """Emulate a power loss and restart: docs/live.md lists what is lost.

        Requests in flight fail, and so do later requests on existing connections.

        Args:
            torn: a page whose program is cut short may be new in its first sectors and old in the others.
        """
        said = ask(self.control, "power-cut", torn=torn)
        return PowerCut(lost=said["lost"], unfinished=said["unfinished"])

    def fail_member(self, member: int) -> None:
        """Let a member of an array fail."""
        ask(self.control, "fail", member=member)

    def replace_member(self, member: int) -> None:
        """Put a new member in the place of a failed one, to be rebuilt."""
        ask(self.control, "replace", member=member)

    def slow_member(self, member: int, times: float) -> None:
        """Multiply the response times of a member of an array; 1 is normal speed."""
        ask(self.control, "slow", member=member, times=times)

    def collect(self, *, member: int | None = None, die: int | None = None) -> int:
        """Collect one block on each selected die now; return the number of dies.

        Args:
            member: of an array, that one; all that are there if None.
            die: that one; all if None.
        """
        return int(ask(self.control, "collect", member=member, die=die)["dies"])

    def kill_die(self, die: int) -> int:
        """Let a die be dead from now on; return how many pages are lost.

        Reads of them fail (EIO) until they are written again, which is elsewhere, or trimmed.

        Args:
            die: its number, from 0.
        """
        return int(ask(self.control, "kill-die", die=die)["pages"])

    def set_policy(self, name: str, *, set: Overrides | None = None) -> None:
        """Have another policy govern the buffer from now on; it begins with the pages that are there.

        Args:
            name: the policy.
            set: its own keys, as in `{"buffer.window": 0.1}`; those not given have their defaults.
        """
        settings = {key: as_toml(value) for key, value in (set or {}).items()}
        ask(self.control, "policy", name=name, set=settings)

    def disturb(
        self, *, latency_us: int = 0, latency_share: float = 1.0, read_error_share: float = 0.0
    ) -> None:
        """Let things go wrong from now on, in place of what did before; without arguments nothing does.

        Args:
            latency_us: extra latency per request, in us of device time.
            latency_share: fraction of requests delayed.
            read_error_share: the share of reads that fail, with EIO.
        """
        ask(
            self.control,
            "disturb",
            latency_us=latency_us,
            latency_share=latency_share,
            read_error_share=read_error_share,
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended by itself; false if it has not."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def hurry(self) -> None:
        """Abort the drain of a running stop: requests in flight fail at once."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> LiveReport:
        """Stop it cleanly: the data is on disk, if a file is the store, and the flash's state beside it.

        Requests in flight have 10 s to complete, later ones fail, and all connections are closed.

        Raises:
            FlashtwinError: it ended with an error, and which.
        """
        if self._last is None:
            if self._metrics is not None:
                self._metrics.close()
            if self.running:
                self._process.send_signal(signal.SIGTERM)
            try:
                code = self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            said = _messages(self._place)
            failed = [line for line in said.splitlines() if _STOP_FAILED in line]
            report = self._place / "report.json"
            self._last = LiveReport.read(report.read_text()) if report.exists() else None
            _clear(self._place, self._lock, self._socket, self.control)
            if code or failed or self._last is None:
                raise FlashtwinError(f"the server ended with exit code {code}: {said or 'no message'}")
        return self._last

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(
    device: str | Path = "ecr",
    *,
    size: str | int | None = None,
    policy: str | None = None,
    set: Overrides | None = None,
    precondition: str = "steady",
    seed: int = 1,
    snapshot: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "memory",
    socket: str | os.PathLike[str] | None = None,
    tcp: int | None = None,
    tls_certificates: str | os.PathLike[str] | None = None,
    tls_psk: str | os.PathLike[str] | None = None,
    dilation: float = 1.0,
    record: str | os.PathLike[str] | None = None,
    metrics: int | None = None,
    progress: OnProgress | None = None,
) -> Server:
    """Serve a device as a network block device (NBD), paced by the wall clock.

    Returns once clients can connect to `Server.uri`.

    Args:
        device: one of `flashtwin.devices()`, or the path of a TOML file.
        size: what clients are to see, as in "16G"; the device gets as few blocks as hold it. As large as
            the device if None.
        policy: as for `run`, by name.
        set: as for `run`.
        precondition: as for `run`.
        seed: of preconditioning.
        snapshot: as for `run`.
        store: where the data is kept: "memory", "none" (zeros are read back), or a file, which keeps it,
            and the state of the flash (in FILE.state), for the next time.
        socket: Unix socket to listen on; one in a directory of its own if neither this nor `tcp` is given.
        tcp: port to listen on, on the loopback interface unless there is TLS.
        tls_certificates: directory with certificates, as nbdkit-tls(1) has it; clients must use TLS.
        tls_psk: file with pre-shared keys, as nbdkit-tls(1) has it; clients must use TLS.
        dilation: how many times slower the device's time passes, for hosts too slow for it.
        record: where to record what clients ask, a CSV trace as `run` reads it; the device lies beside it, in
            FILE.toml.
        metrics: port on the loopback interface of a live page and of what Prometheus asks for; 0 is any that
            is free.
        progress: as for `run`, of the preconditioning.

    Raises:
        FlashtwinError: what is missing or wrong, and what would be right.
    """
    nbdkit = _nbdkit()
    choice = Choice.read(policy)
    overrides = dict(set or {})
    size_bytes = None if size is None else read_size(size)
    spec = (
        choice.spec(device, overrides) if size_bytes is None else sized(device, size_bytes, choice, overrides)
    )
    kept = str(store) if store in ("memory", "none") else str(Path(store).absolute())
    if kept not in ("memory", "none"):
        wait_for_store(Path(kept))
    watched = None
    if metrics is not None:
        # An HTTP server takes long to load for commands that have none.
        from .metrics import MetricsServer

        watched = MetricsServer(metrics)
    place, lock = private_directory()
    at = control = None
    try:
        listen, uri, at = _listen(place, socket, tcp, tls_certificates, tls_psk)
        control = Path(f"{at}.ctl") if at is not None else place / "ctl"
        for own in filter(None, (at, control)):
            free_socket(own)
        settings: dict[str, object] = {
            "device": place / "device.toml",
            "store": kept,
            "dilation": dilation,
            "report": place / "report.json",
            "control": control,
            "umask": _umask(),
            "made": place / "made",
        }
        (place / "device.toml").write_text(spec.to_toml())
        if at is not None:
            settings["listen"] = at
        if record is not None:
            if Path(record).exists():
                raise FlashtwinError(f"record {record}: is there already; remove it, or give another name")
            if not Path(record).absolute().parent.is_dir():
                raise FlashtwinError(f"record {record}: its directory is not there; create it first")
            settings["record"] = Path(record).absolute()
        started_from, start = _flash(
            spec,
            kept,
            snapshot=snapshot,
            precondition=precondition,
            seed=seed,
            place=place,
            progress=progress,
        )
        if start is not None:
            settings["snapshot"] = start
        if size_bytes is not None:
            settings["size"] = size_bytes
        command = [nbdkit, "--foreground", "--exit-with-parent", "--pidfile", str(place / "pid"), *listen]
        command += [str(_PLUGIN), *(f"{key}={value}" for key, value in settings.items())]
        process = _start(command, place, lock)
        if record is not None:
            _describe_record(record, spec, process)
    except BaseException:
        if watched is not None:
            watched.close()
        remove_made(place / "made")
        _clear(place, lock, at, control)
        raise
    (place / "start.state").unlink(missing_ok=True)
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
    )


def _flash(
    spec: Spec,
    store: str,
    *,
    snapshot: str | os.PathLike[str] | None,
    precondition: str,
    seed: int,
    place: Path,
    progress: OnProgress | None,
) -> tuple[str, Path | None]:
    """Prepare the initial state of the flash: its description, and its file unless the store has one."""
    state = _kept_state(store)
    _need(spec, loads=bool(state or snapshot or precondition != "none"))
    if state is not None:
        unused = f" (snapshot {snapshot} is not used: the store has a state of its own)"
        return f"as {state} has it{unused if snapshot is not None else ''}", None
    if snapshot is not None:
        return f"as {snapshot} has it", Path(snapshot).absolute()
    if precondition == "none":
        # The plugin creates this state itself, in half the memory.
        return "never written", None
    started_from = f"preconditioned: {precondition}, seed {seed}"
    start = place / "start.state"
    precondition_spec(spec, precondition, seed, progress).save_snapshot(start, started_from)
    return started_from, start


def _describe_record(record: str | os.PathLike[str], spec: Spec, process: subprocess.Popen[bytes]) -> None:
    """Write the device beside its recording; on failure, end the server."""
    try:
        write_text(Path(f"{record}.toml"), spec.to_toml(), "the device")
    except BaseException:
        _end(process)
        raise


def _need(spec: Spec, *, loads: bool) -> None:
    """Refuse a device that does not fit into memory; a state is read beside the one it replaces."""
    if loads:
        need(spec.tables_bytes, devices=2, less="--precondition none takes half")
    else:
        need(spec.tables_bytes)


def _kept_state(store: str) -> Path | None:
    """State of the flash beside a store that is there already."""
    state = Path(f"{store}.state")
    return state if store not in ("memory", "none") and Path(store).exists() and state.exists() else None


def _nbdkit() -> str:
    found = shutil.which("nbdkit")
    if found is None:
        known = next((line for tool, line in _INSTALL.items() if shutil.which(tool)), None)
        raise FlashtwinError(
            f"nbdkit is not installed; install it: {known or 'see https://gitlab.com/nbdkit/nbdkit'}"
        )
    if not _PLUGIN.exists():
        raise FlashtwinError(
            "this installation has no plugin for nbdkit, which needs Linux and cargo when it is built: in a "
            "checkout of flashtwin, run make plugin, then install again"
        )
    return found


def _listen(
    place: Path,
    socket: str | os.PathLike[str] | None,
    tcp: int | None,
    tls_certificates: str | os.PathLike[str] | None,
    tls_psk: str | os.PathLike[str] | None,
) -> tuple[list[str], str, Path | None]:
    """Options of nbdkit for where to listen, the address for clients, and the socket if it is one."""
    if socket is not None and tcp is not None:
        raise FlashtwinError("give either a socket or a port")
    tls = []
    if tls_certificates is not None:
        tls.append(f"--tls-certificates={Path(tls_certificates).absolute()}")
    if tls_psk is not None:
        tls.append(f"--tls-psk={Path(tls_psk).absolute()}")
    if tls:
        tls.append("--tls=require")
    if tcp is not None:
        if not 1 <= tcp <= 65535:
            raise FlashtwinError(f"tcp {tcp}: give a port from 1 to 65535")
        host = [] if tls else ["--ipaddr", "127.0.0.1"]
        scheme = "nbds" if tls else "nbd"
        return [*host, "--port", str(tcp), *tls], f"{scheme}://localhost:{tcp}", None
    path = Path(socket).absolute() if socket is not None else place / "nbd.sock"
    if len(os.fsencode(path)) > _SOCKET_BYTES:
        raise FlashtwinError(f"socket {path}: is longer than {_SOCKET_BYTES} bytes; give a shorter name")
    scheme = "nbds+unix" if tls else "nbd+unix"
    return ["--unix", str(path), *tls], f"{scheme}:///?socket={quote(str(path))}", path


def _start(command: list[str], place: Path, lock: int) -> subprocess.Popen[bytes]:
    """Start nbdkit and wait until it listens. It gets no Ctrl-C of the terminal: the caller stops it."""
    process = _spawn(command, place / "messages", lock)
    try:
        while not ((place / "pid").exists() and (place / "report.json").exists()):
            if process.poll() is not None:
                raise FlashtwinError(_messages(place) or f"nbdkit ended with exit code {process.returncode}")
            time.sleep(_PERIOD_S)
    except BaseException:
        _end(process)
        raise
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _clear(place: Path, lock: int, *sockets: Path | None) -> None:
    """Remove the private directory and the sockets of an ended server; sockets of a newer one are kept."""
    for socket in filter(None, sockets):
        remove_dead_socket(socket)
    shutil.rmtree(place, ignore_errors=True)
    os.close(lock)


def _umask() -> str:
    """Umask of this process in octal; os.umask() would have to change it."""
    status = Path("/proc/self/status").read_text()
    return status.partition("Umask:")[2].split()[0]


def _spawn(command: list[str], messages: Path, lock: int) -> subprocess.Popen[bytes]:
    """Start nbdkit from a thread that lives as long: it ends with that thread, not with the process."""
    started: Future[subprocess.Popen[bytes]] = Future()

    def keep() -> None:
        try:
            with messages.open("wb") as said:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        # Its exit code is left to `process`; if that has taken it already, it has ended.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    threading.Thread(target=keep, name="flashtwin-nbdkit", daemon=True).start()
    return started.result()


def _messages(place: Path) -> str:
    """The messages of nbdkit, without its name before every line."""
    said = (place / "messages").read_text(errors="replace").strip()
    lines = [line.removeprefix("nbdkit: ").removeprefix("error: ") for line in said.splitlines()]
    return "\n".join(lines)
