"""The process nbdkit, which runs flashtwin's plugin: its path, its addresses, its start and its end."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from urllib.parse import quote

from ._support.inputs import open_regular
from ._support.leftovers import remove_dead_socket
from ._support.prerequisites import NBDKIT, PLUGIN
from .errors import FlashtwinError

#: Interval in seconds between two checks of a starting server.
_PERIOD_S = 0.02
#: Number of bytes of a key file that are read to check that it is not empty.
_KEYS_BYTES = 4096
#: Maximum length in bytes of a Unix socket's path, minus the suffix that the control socket adds to it.
_SOCKET_BYTES = 107 - len(".ctl")


def find() -> str:
    """Return the path of nbdkit. A missing nbdkit or plugin raises an error."""
    found = NBDKIT.find()
    if found is None:
        raise FlashtwinError(f"nbdkit is not installed; install it: {NBDKIT.install}")
    if not PLUGIN.exists():
        raise FlashtwinError(
            "this installation has no plugin for nbdkit, which needs Linux and cargo when it is built: in a "
            "checkout of flashtwin, run make plugin, then install again"
        )
    return found


def listen_options(
    place: Path,
    socket: str | os.PathLike[str] | None,
    tcp: int | None,
    tls_certificates: str | os.PathLike[str] | None,
    tls_psk: str | os.PathLike[str] | None,
) -> tuple[list[str], str, Path | None]:
    """Return nbdkit's options for listening, the address for clients, and the Unix socket or None."""
    if socket is not None and tcp is not None:
        raise FlashtwinError("give either a socket or a port")
    tls = []
    if tls_certificates is not None:
        tls.append(f"--tls-certificates={Path(tls_certificates).absolute()}")
    if tls_psk is not None:
        _check_keys(Path(tls_psk))
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


class Outputs:
    """Reports and messages of a server.

    Reports and messages are in files without a name, which no clean-up of temporary directories can remove.

    Attributes:
        report: path to which the server writes its reports.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._report, self._messages = (
            os.memfd_create(f"flashtwin-{what}") for what in ("report", "messages")
        )
        self.report = f"/proc/self/fd/{self._report}"
        self.inherited: tuple[int, ...] = (self._report, self._messages)

    def read_report(self) -> str | None:
        """Return the newest report; None if there is no report yet or the files have been closed."""
        with self._lock:
            if not self.inherited:
                return None
            while True:
                twice = _whole(self._report)
                text = twice[: len(twice) // 2]
                if text * 2 == twice:
                    return text.decode() or None

    def messages(self) -> str:
        """Return the messages of nbdkit, without the prefix "nbdkit:" of each line."""
        with self._lock:
            said = _whole(self._messages).decode(errors="replace").strip() if self.inherited else ""
        lines = [line.removeprefix("nbdkit: ").removeprefix("error: ") for line in said.splitlines()]
        return "\n".join(lines)

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for file in self.inherited:
                os.close(file)
            self.inherited = ()


def _whole(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _check_keys(path: Path) -> None:
    """Reject a key file that has no keys, or that other users can read."""
    try:
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            is_empty = not file.read(_KEYS_BYTES).strip()
    except OSError as e:
        raise FlashtwinError(f"tls_psk {path}: cannot read the keys: {e.strerror}") from e
    if is_empty:
        raise FlashtwinError(f"tls_psk {path}: holds no key; write one with psktool -u USER -p {path}")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FlashtwinError(f"tls_psk {path}: other users have access to the keys; run chmod 600 {path}")


def start(command: list[str], place: Path, lock: int, outputs: Outputs) -> subprocess.Popen[bytes]:
    """Start nbdkit, and wait until it listens. Return its process.

    nbdkit ignores Ctrl-C of the terminal, so the caller must stop it.
    """
    process = _spawn(command, lock, outputs)
    try:
        while not ((place / "pid").exists() and outputs.read_report() is not None):
            if process.poll() is not None:
                raise FlashtwinError(
                    outputs.messages() or f"nbdkit ended with exit code {process.returncode}"
                )
            time.sleep(_PERIOD_S)
    except BaseException:
        end(process)
        raise
    return process


def _spawn(command: list[str], lock: int, outputs: Outputs) -> subprocess.Popen[bytes]:
    """Start nbdkit on a thread that lives as long as nbdkit, because nbdkit ends when that thread ends."""
    started: Future[subprocess.Popen[bytes]] = Future()

    def keep() -> None:
        # The plugin is preloaded, because it limits the resources that connections use (D-203). It is given
        # as a file descriptor, because the path of a preloaded library must not contain blanks or colons.
        plugin = os.open(PLUGIN, os.O_RDONLY)
        preload = f"/proc/self/fd/{plugin} {os.environ.get('LD_PRELOAD', '')}".strip()
        try:
            report, messages = outputs.inherited
            process = subprocess.Popen(
                command,
                env={**os.environ, "LD_PRELOAD": preload},
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
                pass_fds=(lock, report, plugin),
            )
        except BaseException as error:
            started.set_exception(error)
            return
        finally:
            os.close(plugin)
        started.set_result(process)
        # Wait until nbdkit has ended. The exit code is left for `process` to collect; if `process` has
        # already collected it, this call fails.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    threading.Thread(target=keep, name="flashtwin-nbdkit", daemon=True).start()
    return started.result()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process."""
    process.kill()
    process.wait()


def clear(place: Path, lock: int, *sockets: Path | None) -> None:
    """Remove the private directory and the sockets of a server that has ended.

    Sockets of a newer server are kept.
    """
    for socket in filter(None, sockets):
        remove_dead_socket(socket)
    shutil.rmtree(place, ignore_errors=True)
    os.close(lock)


def umask() -> str:
    """Return the umask of this process in octal. os.umask() is not used, as it also changes the umask."""
    status = Path("/proc/self/status").read_text()
    return status.partition("Umask:")[2].split()[0]
