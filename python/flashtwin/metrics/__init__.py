"""The report of a served device, over HTTP on the loopback interface (docs/live.md).

`/` is a live page, `/metrics` is for Prometheus, `/report.json` has the data of these two pages, and
`/history.json` has the plotted values of the last two minutes. The plugin writes a report every second in any
case, so viewing a page does not slow down the device.
"""

from __future__ import annotations

import json
import socket
import socketserver
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from ..errors import FlashtwinError
from ..live_report import LiveReport

_PAGE = Path(__file__).with_name("page.html")
#: Number of reports in the history (one per second), and period in seconds with which new reports are looked
#: for.
_KEPT = 120
_PERIOD_S = 0.5
#: Largest numbers of pending and of open connections, and timeout of a silent client in seconds.
_BACKLOG, _CONNECTIONS, _TIMEOUT_S = 128, 64, 5.0
#: Names that are accepted in Host headers. Any other name may be that of a foreign page (DNS rebinding).
_NAMES = ("127.0.0.1", "localhost", "[::1]", "")
#: Percentiles by their keys in the report.
_QUANTILES = {
    "0.5": "p50_us",
    "0.75": "p75_us",
    "0.9": "p90_us",
    "0.95": "p95_us",
    "0.99": "p99_us",
    "0.995": "p995_us",
    "0.999": "p999_us",
}

#: A sample: suffix of the metric's name, labels, and value.
_Sample = tuple[str, dict[str, str], float]


class MetricsServer:
    """Serves requests until it is closed.

    Attributes:
        url: address of the page.
    """

    def __init__(self, port: int) -> None:
        """Bind the port. 0 means any free port.

        Raises:
            FlashtwinError: the port is not available.
        """
        if not 0 <= port <= 65535:
            raise FlashtwinError(f"metrics {port}: give a port from 1 to 65535, or 0 for any free port")
        try:
            self._http = _Http(("127.0.0.1", port), _Handler)
        except OSError as e:
            raise FlashtwinError(f"metrics {port}: {e.strerror}; give another port") from e
        self.url = self._http.url = f"http://127.0.0.1:{self._http.server_port}/"
        self._threads: list[Thread] = []
        self._closed = Event()

    def start(self, report: Callable[[], LiveReport]) -> None:
        """Start serving the reports that `report` returns."""
        self._http.report = report
        for work in (self._http.serve_forever, self._remember):
            thread = Thread(target=work, name="flashtwin-metrics", daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Stop serving and release the port."""
        self._closed.set()
        if self._threads:
            self._http.shutdown()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._http.server_close()

    def _remember(self) -> None:
        """Record the history of reports, even while no page is open."""
        history = self._http.history
        while not self._closed.wait(_PERIOD_S):
            try:
                report = self._http.report()
            except FlashtwinError:
                continue  # The server has just stopped.
            if not history or history[-1]["elapsed_s"] != report.elapsed_s:
                history.append(
                    {
                        "elapsed_s": report.elapsed_s,
                        "dirty_pages": report.dirty_pages,
                        "recent": report.recent,
                    }
                )


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _BACKLOG
    report: Callable[[], LiveReport]
    url: str

    def __init__(self, address: tuple[str, int], handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(address, handler)
        self.history: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._open: dict[socket.socket, None] = {}
        self._changing = Lock()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as its base has it)
        """Serve a connection on a thread of its own.

        If there are too many connections, the oldest one is closed.
        """
        with self._changing:
            self._open[request] = None
            if len(self._open) > _CONNECTIONS:
                oldest = next(iter(self._open))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
                # The thread of the connection closes it.
                del self._open[oldest]
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system allows no further thread.
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401
        """Close a connection."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as its base has it)
        """Ignore clients that disconnect early."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    #: Time in seconds after which a silent client is disconnected.
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Serve one of the four paths. Only names of the loopback interface are accepted."""
        if _name(self.headers.get("Host", "")) not in _NAMES:
            self._answer(403, "text/plain", f"rejected Host header; open {self.server.url}\n")
            return
        try:
            match self.path.partition("?")[0]:
                case "/":
                    self._answer(200, "text/html; charset=utf-8", _PAGE.read_text(encoding="utf-8"))
                case "/report.json":
                    self._answer(200, "application/json", self.server.report().to_json())
                case "/history.json":
                    self._answer(200, "application/json", json.dumps(list(self.server.history)))
                case "/metrics":
                    text = prometheus(self.server.report())
                    self._answer(200, "text/plain; version=0.0.4; charset=utf-8", text)
                case _:
                    known = "there are /, /metrics, /report.json and /history.json\n"
                    self._answer(404, "text/plain", known)
        except FlashtwinError:
            self._answer(503, "text/plain", "the device has just been stopped\n")

    def do_HEAD(self) -> None:
        """Send the headers of GET without the body."""
        self.do_GET()

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because standard error is for errors of the device."""


def _name(host: str) -> str:
    """Return the host name of a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def prometheus(report: LiveReport) -> str:
    """Return the report in Prometheus's text format, version 0.0.4.

    Counters and sums count from the start of the server. Percentiles are those of about the last second.
    Times are seconds of device time, except lateness and the elapsed time, which are wall-clock times.
    """
    lines = []
    for name, kind, told, samples in _metrics(report):
        lines += [f"# HELP flashtwin_{name} {told}", f"# TYPE flashtwin_{name} {kind}"]
        for suffix, labels, value in samples:
            words = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(
                f"flashtwin_{name}{suffix}{{{words}}} {value!r}"
                if words
                else f"flashtwin_{name}{suffix} {value!r}"
            )
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _metrics(report: LiveReport) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    """Yield name, type, help and samples of each metric."""

    def one(value: float) -> list[_Sample]:
        return [("", {}, value)]

    def by_op(key: str) -> list[_Sample]:
        return [("", {"op": op}, of[key]) for op, of in report.responses.items()]

    flash = report.flash
    yield "info", "gauge", "The device that is served.", [("", {"device": report.device}, 1)]
    yield "size_bytes", "gauge", "What clients see.", one(report.size_bytes)
    yield "dilation", "gauge", "Times that the device's time passes slower.", one(report.dilation)
    yield "elapsed_seconds", "counter", "Time of the wall since the start.", one(report.elapsed_s)
    yield "read_only", "gauge", "1 once the device takes no more writes.", one(int(report.read_only))
    yield "requests_waiting", "gauge", "Requests in flight.", one(report.waiting)
    yield "bytes_total", "counter", "Requested bytes.", by_op("bytes")
    yield "pages_total", "counter", "Pages touched.", by_op("pages")
    yield "refused_total", "counter", "Requests refused at the end of the device's life.", by_op("refused")
    yield "failed_total", "counter", "Requests for lost data.", by_op("failed")
    yield "pages_lost", "gauge", "Pages whose newest contents are lost.", one(report.pages_lost)
    yield "dead_dies", "gauge", "Dies that are dead.", one(len(report.dead_dies))
    yield "buffer_hits_total", "counter", "Pages of them found in the buffer.", by_op("hits")
    samples: list[_Sample] = []
    for op, of in report.responses.items():
        recent = report.recent["responses"][op]
        samples += [
            (
                "",
                {"op": op, "quantile": quantile},
                _seconds(recent[key]) if recent["requests"] else float("nan"),
            )
            for quantile, key in _QUANTILES.items()
        ]
        samples += [("_sum", {"op": op}, of["total_s"]), ("_count", {"op": op}, of["requests"])]
    yield "response_seconds", "summary", "Response times.", samples
    late = report.recent["lateness"]
    yield (
        "lateness_seconds",
        "gauge",
        "Delay between completion in the device and response to the client.",
        [("", {"quantile": quantile}, _seconds(late[key])) for quantile, key in _QUANTILES.items()],
    )
    yield "dirty_pages", "gauge", "Pages in buffers that flash lacks.", one(report.dirty_pages)
    yield "host_pages_total", "counter", "Pages programmed for the host.", one(flash["host_pages"])
    yield "moved_pages_total", "counter", "Pages moved within the flash.", one(flash["moved_pages"])
    yield "erases_total", "counter", "Blocks erased.", one(flash["erases"])
    yield "collections_total", "counter", "Times a chip went into collection.", one(flash["collections"])
    for name in ("device_write_amplification", "gc_write_amplification"):
        if flash[name] is not None:
            yield name, "gauge", "Since the start.", one(flash[name])
    chips = enumerate(flash["chips_gc_s"])
    yield (
        "chip_collecting_seconds_total",
        "counter",
        "How long each chip has been collecting.",
        [("", {"chip": str(chip)}, seconds) for chip, seconds in chips],
    )


def _seconds(us: float) -> float:
    return us / 1e6
