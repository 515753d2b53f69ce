"""Fuzzed inputs of the package, with coverage: `python targets.py TARGET [OPTIONS of libFuzzer]`.

Any input is either accepted, or rejected with an exception of flashtwin. Any other exception is a bug.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NoReturn

import atheris

with atheris.instrument_imports(include=["flashtwin"]):
    import flashtwin
    from flashtwin import metrics
    from flashtwin._policies import Choice
    from flashtwin._sweep.experiment import read_experiment
    from flashtwin.calibrate.results import read_results
    from flashtwin.importing import import_file
    from flashtwin.study import definition

#: Directory of the files that are read.
PLACE = Path(tempfile.mkdtemp(prefix="flashtwin_fuzz_"))


def _file(name: str, data: bytes) -> Path:
    path = PLACE / name
    path.write_bytes(data)
    return path


def an_experiment(data: bytes) -> None:
    """Read the file of a sweep."""
    read_experiment(_file("sweep.toml", data))


def a_study(data: bytes) -> None:
    """Read the file of a study."""
    definition.read(str(_file("study.toml", data)))


def a_policy(data: bytes) -> None:
    """Read the short form of a policy with its parameters."""
    Choice.read(data.decode(errors="replace")).spec("demo", {})


def an_import(data: bytes) -> None:
    """Read a parameter file of another simulator."""
    import_file(_file("parameters", data))


def a_measurement(data: bytes) -> None:
    """Read a result file of a measurement plan, in the form that the first byte of the input selects."""
    _file("manifest.json", b'{"capacity_bytes": 1073741824}')
    names = ("read-size-4k.json", "read-size-4k.csv", "read-size-4k_clat.1.log", "read-size-4k_bw.1.log")
    path = _file(names[data[0] % len(names)] if data else names[0], data[1:])
    try:
        read_results(PLACE, ())
    finally:
        path.unlink()


def a_request_of_metrics(data: bytes) -> None:
    """Send a request to the port of the metrics page."""
    with socket.create_connection(("127.0.0.1", _metrics_port()), timeout=5) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
    if FAILED:
        raise FAILED[0]


#: Exceptions raised in threads of the metrics server.
FAILED: list[BaseException] = []


def _no_report() -> NoReturn:
    raise flashtwin.FlashtwinError  # Raised, for instance, when the device has just been stopped.


@cache
def _metrics_port() -> int:
    def fail(*_: object) -> None:
        error = sys.exc_info()[1]
        if error and not isinstance(error, ConnectionError):
            FAILED.append(error)

    metrics._Http.handle_error = fail  # type: ignore[method-assign]
    server = metrics.MetricsServer(0)
    server.start(_no_report)
    return int(server.url.rstrip("/").rpartition(":")[2])


#: Each target by its name.
TARGETS: dict[str, Callable[[bytes], None]] = {
    f"fuzz_{target.__name__.split('_', 1)[1]}": target
    for target in (an_experiment, a_study, a_policy, an_import, a_measurement, a_request_of_metrics)
}


def main() -> None:
    """Run the target that the first argument names."""
    target = TARGETS[sys.argv.pop(1)]

    def run(data: bytes) -> None:
        try:
            target(data)
        except flashtwin.FlashtwinError as e:
            assert str(e), "an error says what is wrong"

    # Threads of libraries may outlive the interpreter; that is no bug.
    atexit.register(os._exit, 0)
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
