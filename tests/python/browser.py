"""A headless browser for tests of pages: what a page draws, fetches, and prints on the console."""

import json
import os
import re
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Script that writes two results into the page: the addresses that the page fetched and, for each chart, a
#: number that is larger if data are drawn. For an SVG, it is the number of lines and areas in the colours of
#: data that are larger than those of a legend. For a canvas, it is the number of different colours.
_PROBE = """<pre id="probe"></pre><script>
addEventListener("load", () => {
  const colours = new Set([...PALETTES.light.colours, ...PALETTES.dark.colours]);
  const drawn = {};
  for (const chart of document.querySelectorAll(".chart")) {
    const canvas = chart.querySelector("canvas");
    if (canvas) {
      const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      drawn[chart.id] = new Set(new Uint32Array(image.data.buffer)).size;
      continue;
    }
    drawn[chart.id] = [...chart.querySelectorAll("path, polyline, line, rect")].filter((mark) => {
      const box = mark.getBBox();
      const coloured = ["stroke", "fill"].some((k) => colours.has(mark.getAttribute(k)));
      return coloured && (box.width > 40 || box.height > 40 || chart.id.startsWith("chart-mean"));
    }).length;
  }
  const fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.getElementById("probe").textContent = JSON.stringify({ drawn, fetched });
});
</script>"""

#: Page that shows another page in a frame, because a window cannot be narrower than 500 pixels. After the
#: scripts of the framed page ran, its DOM replaces the frame.
_FRAME = """<iframe src="SOURCE" style="border:0;width:WIDTHpx;height:900px"></iframe><script>
document.querySelector("iframe").onload = (e) => {
  document.body.innerHTML = e.target.contentDocument.body.innerHTML;
};
</script>"""


def find():
    """Return the path of a browser. Without one, the test is skipped or, if a browser is required, fails."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if os.environ.get("FLASHTWIN_BROWSER_REQUIRED"):
            pytest.fail("no chromium: install it")
        pytest.skip("no chromium to look at the page with")
    return found


def visit(address, place, *options):
    """Open an address. Return its DOM after its scripts ran, and the messages of the console."""
    command = [
        find(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={place / 'profile'}",
        "--enable-logging=stderr",
        "--window-size=1360,2000",
        "--virtual-time-budget=5000",
        *options,
        "--dump-dom",
        address,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, console


def look(page, place, *options, width=None):
    """Open a page, in a frame if a width is given, and return four results.

    The results are the DOM of the page after its scripts ran, the messages of the console, and the two
    results of the script `_PROBE`: what each chart drew, and the addresses that the page fetched.
    """
    copy = place / "probed.html"
    head, _, tail = page.read_text().rpartition("</body>")
    copy.write_text(f"{head}{_PROBE}</body>{tail}")
    if width is not None:
        frame = _FRAME.replace("SOURCE", copy.name).replace("WIDTH", str(width))
        copy = place / "framed.html"
        copy.write_text(f"<!doctype html><body>{frame}")
        options = (*options, "--allow-file-access-from-files")
    dom, console = visit(f"file://{copy}", place, *options)
    probe = re.search(r'<pre id="probe">(\{.*?)</pre>', dom)
    assert probe, "the page's scripts did not run to their end"
    seen = json.loads(probe[1].replace("&amp;", "&"))
    return dom, console, seen["drawn"], seen["fetched"]
