"""Servers stopped by several threads, without their directory, during bursts of clients, or with bad keys."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flashtwin
from clients import need, started, wait_for
from conftest import SMALL
from flashtwin import metrics, nbdkit
from test_metrics import asked, made_up

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]


def open_files():
    """Return the number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_stops_from_several_threads_return_one_report():
    need("nbdkit")
    before = open_files()
    server = flashtwin.serve("demo", set=SMALL)
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda _: server.stop(), range(8)))
    assert all(report is reports[0] for report in reports)
    assert server.report() is server.stop() is reports[0]
    wait_for(lambda: open_files() == before)


def test_reports_are_read_while_another_thread_stops():
    need("nbdkit")
    server = flashtwin.serve("demo", set=SMALL)
    ended = threading.Event()

    def read():
        while not ended.is_set():
            assert server.report().device == "demo"
        return True

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        server.stop()
        ended.set()
        assert all(reader.result(60) for reader in readers)


def test_failed_stop_is_reported_once():
    need("nbdkit")
    server = flashtwin.serve("demo", set=SMALL)
    os.kill(server.pid, 9)
    with pytest.raises(flashtwin.FlashtwinError, match="the server ended with exit code -9"):
        server.stop()
    assert server.stop() is server.stop() is server.report()


def test_removed_private_directory_loses_no_report(tmp_path, short_path):
    need("nbdkit")
    command = [sys.executable, "-m", "flashtwin.cli", "serve", "--device", "demo", *SETTINGS, "--json"]
    command += ["--store", str(tmp_path / "x.img"), "--metrics", "0"]
    with started(
        *command,
        env={**os.environ, "TMPDIR": str(short_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        ready = json.loads(process.stdout.readline())
        for private in short_path.iterdir():
            shutil.rmtree(private)
        # The first report may be from before the removal of the directory. A report one second later is not.
        first = json.loads(asked(ready["metrics"], "/report.json")[1])["elapsed_s"]
        wait_for(lambda: json.loads(asked(ready["metrics"], "/report.json")[1])["elapsed_s"] > first + 1)
        process.terminate()
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(out)["device"] == "demo"
    assert (tmp_path / "x.img.state").exists()
    assert not list(short_path.iterdir())


def test_half_written_report_is_read_again(monkeypatch):
    outputs = nbdkit.Outputs()
    assert outputs.read_report() is None
    states = iter([b"{new}\n{old}\n", b"{new}\n{new", b"{new}\n{new}\n"])
    monkeypatch.setattr(nbdkit, "_whole", lambda _: next(states))
    assert outputs.read_report() == "{new}\n"
    outputs.close()
    outputs.close()
    assert outputs.read_report() is None


@pytest.fixture
def page():
    """Create a metrics page of an invented report."""
    server = metrics.MetricsServer(0)
    server.start(lambda: made_up(1))
    yield server
    server.close()


def port_of(server):
    return int(server.url.rstrip("/").rpartition(":")[2])


def silent(server, n):
    """Return connections that send nothing."""
    return [socket.create_connection(("127.0.0.1", port_of(server)), timeout=30) for _ in range(n)]


def test_burst_of_connections_is_accepted_at_once(page):
    begin = time.monotonic()
    clients = silent(page, 128)
    # If a SYN is dropped, it is sent again only after a second.
    assert time.monotonic() - begin < 0.9
    for client in clients:
        client.close()


def test_burst_is_accepted_while_the_page_is_busy():
    server = metrics.MetricsServer(0)
    # No thread accepts connections yet. Only the backlog holds them.
    begin = time.monotonic()
    clients = silent(server, 128)
    assert time.monotonic() - begin < 0.9
    for client in clients:
        client.close()
    server.close()


def test_silent_connections_are_closed(page, monkeypatch):
    monkeypatch.setattr(metrics._Handler, "timeout", 0.3)
    threads = threading.active_count()
    clients = silent(page, 20)
    clients += [half := silent(page, 1)[0]]
    half.sendall(b"GET / HTTP/1.1\r\nHost: local")
    assert [client.recv(1) for client in clients] == [b""] * 21
    wait_for(lambda: threading.active_count() == threads)
    assert metrics._TIMEOUT_S <= 10


def test_connections_are_bounded_and_newcomers_are_served(page):
    threads = threading.active_count()
    clients = silent(page, 300)
    assert asked(page.url, "/report.json")[0] == 200
    wait_for(lambda: threading.active_count() <= threads + metrics._CONNECTIONS + 1)
    for client in clients:
        client.close()
    wait_for(lambda: threading.active_count() == threads)


def test_refused_thread_closes_the_connection(page, monkeypatch, capfd):
    def refuse(_self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert silent(page, 1)[0].recv(1) == b""
    assert asked(page.url, "/report.json")[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["LOCALHOST", "LocalHost:80", "localhost", "127.0.0.1"])
def test_host_names_are_case_insensitive(page, host):
    assert asked(page.url, "/report.json", host)[0] == 200


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_empty_key_file_is_refused(tmp_path, text):
    need("nbdkit")
    keys = tmp_path / "keys.psk"
    keys.write_text(text)
    keys.chmod(0o600)
    with pytest.raises(flashtwin.FlashtwinError, match=r"keys\.psk: holds no key; write one with psktool"):
        flashtwin.serve("demo", set=SMALL, tls_psk=keys)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_key_file_of_other_users_is_refused(tmp_path, mode):
    need("nbdkit")
    keys = tmp_path / "keys.psk"
    keys.write_text("alice:00")
    keys.chmod(mode)
    with pytest.raises(flashtwin.FlashtwinError, match=rf"run chmod 600 {keys}"):
        flashtwin.serve("demo", set=SMALL, tls_psk=keys)


def test_key_file_that_is_a_pipe_is_refused(tmp_path):
    need("nbdkit")
    os.mkfifo(tmp_path / "keys.psk")
    with pytest.raises(flashtwin.FlashtwinError, match=r"keys\.psk: cannot read the keys: it is a pipe"):
        flashtwin.serve("demo", set=SMALL, tls_psk=tmp_path / "keys.psk")
