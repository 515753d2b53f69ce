"""The live page and Prometheus's text, for a served device and for reports with known numbers."""

import dataclasses
import http.client
import json
import math
import re
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest

import flashtwin
from browser import visit
from clients import need, qemu_io, wait_for
from flashtwin import metrics
from flashtwin.live_report import LiveReport

SMALL = {"geometry.blocks_per_plane": 64, "geometry.chips": 4, "geometry.reserve_percent": 20}
CHIPS = 6
#: Script that counts the colours of each canvas repeatedly. The last count is that of the final page.
_PROBE = """<pre id="probe"></pre><script>
setInterval(() => {
  const colours = {};
  for (const canvas of document.querySelectorAll("canvas")) {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const image = pen.getImageData(0, 0, copy.width, copy.height);
    colours[canvas.id] = new Set(new Uint32Array(image.data.buffer)).size;
  }
  document.getElementById("probe").textContent = JSON.stringify(colours);
}, 500);
</script></body>"""


#: Script that writes the layout into the page.
_BOXES = """<pre id="probe"></pre><script>
setInterval(() => {
  const box = (e) => {
    const { left, top, right, bottom } = e.getBoundingClientRect();
    return { left, top, right, bottom, cut: e.scrollWidth > e.clientWidth };
  };
  document.getElementById("probe").textContent = JSON.stringify({
    tiles: [...document.querySelectorAll(".tiles > .card")].map(box),
    all: box(document.querySelector(".tiles")),
    dies: box(document.getElementById("collecting")), width: innerWidth, points: points.length,
  });
}, 500);
</script></body>"""


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def counts(requests, p99_us):
    shares = {"p50": 1 / 4, "p75": 1 / 3, "p90": 1 / 2, "p95": 3 / 4, "p99": 1, "p995": 3 / 2, "p999": 2}
    quantiles = {f"{name}_us": p99_us * share for name, share in shares.items()}
    return {
        "requests": requests,
        "bytes": requests * 8192,
        "pages": requests * 2,
        "hits": requests // 2,
        "refused": 0,
        "failed": requests // 3,
        "total_s": requests * 1e-4,
        **quantiles,
    }


def made_up(second):
    """Return the report of a given second. In the last report, all numbers are different."""
    none = counts(0, 0)

    def responses(of):
        return {"read": counts(3000 * of, 160), "write": counts(1234 * of, 2500), "trim": none, "flush": none}

    def flash(of):
        return {
            "host_pages": 100 * of,
            "moved_pages": 250 * of,
            "device_write_amplification": 3.5 + of / 100,
            "gc_write_amplification": 4.2 + of / 100,
            "erases": 7 * of,
            "collections": 8 * of,
            "chips_gc_s": [chip / 10 * of for chip in range(CHIPS)],
        }

    us = {
        "p50": 5.0,
        "p75": 6.0,
        "p90": 7.0,
        "p95": 8.0,
        "p99": 77.0,
        "p995": 80.0,
        "p999": 90.0,
        "max": 3000.0,
    }
    late = {"calls": 4234, **{f"{name}_us": time for name, time in us.items()}}
    report = {
        "device": 'a "made-up" one',
        "exported_bytes": 16 << 30,
        "page_bytes": 4096,
        "dilation": 10.0,
        "elapsed_s": float(second),
        "waiting": 17,
        "read_only": False,
        "dirty_pages": 4321,
        "pages_lost": 17,
        "dead_dies": [2, 5],
        "spin_margin_us": 20.0,
        "cores_ready": True,
        "lateness": late,
        "responses": responses(second),
        "flash": flash(second),
        "recent": {
            "elapsed_s": 1.0,
            "device_s": 1.0,
            "lateness": late,
            "responses": responses(1),
            "flash": flash(1),
        },
    }
    return LiveReport.read(json.dumps(report))


@pytest.fixture
def served():
    """Start a metrics server. Each report that it shows is one second later than the report before."""
    server = metrics.MetricsServer(0)
    seconds = iter(range(1, 10_000))
    server.start(lambda: made_up(next(seconds)))
    yield server
    server.close()


def text_of(dom, name):
    return re.search(rf'id="{name}"[^>]*>([^<]*)<', dom)[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_the_report(served, tmp_path, monkeypatch, scheme):
    probed = tmp_path / "probed.html"
    page = metrics._PAGE.read_text(encoding="utf-8")
    probed.write_text(page.replace("</body>", _PROBE), encoding="utf-8")
    monkeypatch.setattr(metrics, "_PAGE", probed)
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    dom, console = visit(served.url, tmp_path, *dark)
    assert console == []
    shown = {
        "device": 'a "made-up" one',
        "iops": "4\u202f234",
        "read": "40 µs / 160 µs",
        "write": "625 µs / 2.50 ms",
        "write-bytes": "10.1 MB/s",
        "wa": "3.51",
        "gc": "1.5 of 6",
        "dirty": "4\u202f321",
        "waiting": "17 requests under way",
        "late": "5 µs / 77 µs",
        "state": "",
    }
    assert {name: text_of(dom, name) for name in shown} == shown
    drawn = json.loads(text_of(dom, "probe"))
    assert len(drawn) == 5
    assert all(colours > 3 for colours in drawn.values()), drawn
    assert drawn["collecting"] >= CHIPS, "a colour for every share"


@pytest.mark.parametrize(("width", "rows"), [(1400, 1), (1100, 2), (600, 4)])
def test_the_page_fits_the_window_and_shows_the_history(served, tmp_path, monkeypatch, width, rows):
    probed = tmp_path / "probed.html"
    page = metrics._PAGE.read_text(encoding="utf-8")
    probed.write_text(page.replace("</body>", _BOXES), encoding="utf-8")
    monkeypatch.setattr(metrics, "_PAGE", probed)
    wait_for(lambda: len(json.loads(get(f"{served.url}history.json"))) > 3)
    dom, console = visit(served.url, tmp_path, f"--window-size={width},720", "--hide-scrollbars")
    assert console == []
    seen = json.loads(text_of(dom, "probe"))
    assert seen["width"] == width
    tiles = seen["tiles"]
    assert not any(tile["cut"] for tile in tiles), "a value overflows its tile"
    tops = sorted({tile["top"] for tile in tiles})
    assert len(tops) == rows
    for top in tops:
        row = [tile for tile in tiles if tile["top"] == top]
        assert (row[0]["left"], row[-1]["right"]) == pytest.approx(
            (seen["all"]["left"], seen["all"]["right"])
        )
    assert seen["dies"]["bottom"] <= 720, "the heat map is not visible"
    assert seen["points"] > 3, "the page does not show the history"


def test_lateness_is_shown_with_its_remedy():
    ready = made_up(1)
    assert "halt" not in str(ready)
    halting = dataclasses.replace(ready, cores_ready=False)
    assert "lets idle cores halt" in str(halting)


def test_host_later_than_the_device_is_reported():
    """If delays of the host exceed the times of the device, a client measures the host, not the device."""
    report = made_up(1)
    took = {kind: of["p99_us"] for kind, of in report.responses.items() if of["requests"]}
    fast = dataclasses.replace(report, lateness={**report.lateness, "p99_us": 10 * max(took.values()) + 1})
    assert f"more than the device took ({', '.join(took)})" in str(fast)
    assert "use --dilation 100" in str(fast)
    slow = dataclasses.replace(report, lateness={**report.lateness, "p99_us": 10 * min(took.values()) - 1})
    assert "--dilation" not in str(slow)


def test_failures_are_reported():
    report = made_up(3)
    assert "1 234 failed" in str(report) and "refused" not in str(report)
    assert "dead dies 2, 5; 17 pages lost" in str(report)


def asked(url, path, host=None, method="GET"):
    connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=60)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers


def test_foreign_host_headers_are_rejected(served):
    for host in ("localhost:80", "127.0.0.1", "localhost", "[::1]:99"):
        assert asked(served.url, "/report.json", host)[0] == 200
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1"):
        for path in ("/", "/report.json", "/history.json", "/metrics"):
            status, body, _ = asked(served.url, path, host)
            assert status == 403 and b"made-up" not in body and served.url.encode() in body


def test_head_requests_and_queries_work(served):
    status, body, headers = asked(served.url, "/", method="HEAD")
    assert (status, body) == (200, b"") and int(headers["Content-Length"]) > 1000
    assert b"flashtwin" in asked(served.url, "/?from=here")[1]
    assert json.loads(asked(served.url, "/report.json?x=1")[1])["device"] == 'a "made-up" one'


def test_reset_connections_print_no_traceback(served, capfd):
    port = int(served.url.rstrip("/").rpartition(":")[2])
    before = threading.active_count()
    for said in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /metr", b""):
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(said)
                # Reset instead of closed.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert asked(served.url, "/")[0] == 200
    # Each connection has a thread. If the thread printed an error, it would do so before it ends.
    wait_for(lambda: threading.active_count() <= before)
    assert capfd.readouterr().err == ""


def test_a_page_needs_nothing_but_its_server():
    page = metrics._PAGE.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"(?!data:)|https?://|@import", page)


def samples(text):
    """Return samples by name and labels. Each sample must follow the type of its metric."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds, name
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line).groups()
            metric = re.sub(r"_(sum|count)$", "", name) if name not in kinds else name
            assert kinds[metric] in ("counter", "gauge", "summary"), line
            found[name + (labels or "")] = float(value)
    return found


def test_prometheus_gets_counters_and_recent_percentiles():
    found = samples(metrics.prometheus(made_up(50)))
    assert found['flashtwin_info{device="a \\"made-up\\" one"}'] == 1
    assert found['flashtwin_response_seconds_count{op="write"}'] == 1234 * 50
    assert found['flashtwin_response_seconds_sum{op="write"}'] == pytest.approx(1234 * 50 * 1e-4)
    assert found['flashtwin_response_seconds{op="write",quantile="0.99"}'] == pytest.approx(2.5e-3)
    assert found['flashtwin_response_seconds{op="write",quantile="0.995"}'] == pytest.approx(3.75e-3)
    assert math.isnan(found['flashtwin_response_seconds{op="trim",quantile="0.99"}'])
    assert found['flashtwin_chip_collecting_seconds_total{chip="5"}'] == 25
    assert found['flashtwin_lateness_seconds{quantile="0.5"}'] == pytest.approx(5e-6)
    assert found["flashtwin_dirty_pages"] == 4321
    assert found["flashtwin_pages_lost"] == 17
    assert found["flashtwin_dead_dies"] == 2
    assert found['flashtwin_failed_total{op="write"}'] == 1234 * 50 // 3
    assert found['flashtwin_refused_total{op="write"}'] == 0


def test_metrics_count_writes_and_collections():
    need("nbdkit", "qemu-io")
    with flashtwin.serve("demo", set=SMALL, metrics=0) as server:
        url = server.metrics_url
        qemu_io(server.uri, *[f"write -P 1 {i * 5}M 4M" for i in range(16)], "flush", "read 0 1M")
        count = 'flashtwin_response_seconds_count{op="read"}'
        wait_for(lambda: samples(get(f"{url}metrics"))[count] >= 1)
        found = samples(get(f"{url}metrics"))
        assert found['flashtwin_bytes_total{op="write"}'] == 64 << 20
        assert found["flashtwin_moved_pages_total"] > 0 and found["flashtwin_erases_total"] > 0
        assert sum(v for k, v in found.items() if "chip_collecting" in k) > 0
        report = json.loads(get(f"{url}report.json"))
        assert report["responses"]["write"]["bytes"] == 64 << 20
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{url}else")
        port = int(url.rstrip("/").rpartition(":")[2])
        with pytest.raises(flashtwin.FlashtwinError, match=f"metrics {port}: .*in use; give another port"):
            flashtwin.serve("demo", set=SMALL, metrics=port)
        last = server.stop()
    assert last.flash["erases"] == found["flashtwin_erases_total"]
    with pytest.raises(urllib.error.URLError, match="refused"):
        get(url)
    with pytest.raises(flashtwin.FlashtwinError, match="give a port"):
        flashtwin.serve("demo", set=SMALL, metrics=70_000)
