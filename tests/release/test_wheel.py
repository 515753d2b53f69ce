"""The release wheel in a new virtual environment, with an empty home and without a compiler.

`make test-long` runs these tests on the wheel in dist/.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Commands that the tutorial uses. The PATH contains no others.
SYSTEM = ("bash", "cat", "sed")
#: Processors without AVX, as qemu names them.
BASELINE = ("Nehalem", "core2duo")
DEMO = (
    "import flashtwin;"
    "options = {'pacing': flashtwin.OpenLoop(0.1), 'policy': 'gcar-lru', 'requests_max': 20000};"
    "print(flashtwin.run(flashtwin.example_trace(), 'demo', **options).to_json())"
)


def only(pattern):
    found = list((ROOT / "dist").glob(pattern))
    assert len(found) == 1, f"dist/{pattern}: {len(found)} files; run make wheel"
    return found[0]


def blocks(language):
    text = (ROOT / "docs" / "tutorial.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """Create the empty home of a new user, and the environment of a shell."""
    home = tmp_path_factory.mktemp("home")
    tools = tmp_path_factory.mktemp("tools")
    for tool in SYSTEM:
        (tools / tool).symlink_to(shutil.which(tool))
    (tools / "python3").symlink_to(Path(sys.executable).resolve())
    # pip is told where packages come from.
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    environment = {"HOME": str(home), "PATH": str(tools), "WHEEL": str(only("*.whl")), **pip}
    # The interpreter is started by its own name. Through a link elsewhere it would not find its library.
    install = "\n".join(line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines())
    install = install.replace("python3 -m venv", f"'{Path(sys.executable).resolve()}' -m venv")
    subprocess.run(["bash", "-euc", install], cwd=home, env=environment, check=True, timeout=300)
    environment["PATH"] = f"{home / 'twin' / 'bin'}:{tools}"
    return home, environment


def test_the_tutorial_runs_from_the_wheel_alone(user):
    home, environment = user
    assert shutil.which("cc", path=environment["PATH"]) is None
    subprocess.run(
        ["bash", "-euc", "\n".join(blocks("sh"))], cwd=home, env=environment, check=True, timeout=300
    )
    for example in blocks("python"):
        subprocess.run(
            [home / "twin/bin/python", "-c", example], cwd=home, env=environment, check=True, timeout=300
        )
    for made in ("policies.png", "my.toml", "gcar.json", "log.parquet", "report.html"):
        assert (home / made).stat().st_size > 1000


@pytest.mark.parametrize("processor", BASELINE)
def test_a_processor_without_avx_gives_the_same_bytes(user, processor):
    home, environment = user
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("no qemu-x86_64 (Debian: qemu-user)")

    def demo(*emulated):
        # An emulator does not support `#!`, and the Python of a virtual environment finds its packages by its
        # own path.
        packages = next((home / "twin" / "lib").glob("python*/site-packages"))
        command = [*emulated, Path(sys.executable).resolve(), "-c", DEMO]
        given = {**environment, "PYTHONPATH": str(packages)}
        return subprocess.run(
            command, cwd=home, env=given, capture_output=True, check=True, timeout=300
        ).stdout

    assert demo(emulator, "-cpu", processor) == demo()


def test_one_wheel_is_for_every_python():
    assert re.fullmatch(r"flashtwin-[\d.]+-cp310-abi3-manylinux_2_\d+_x86_64\.whl", only("*.whl").name)
    names = zipfile.ZipFile(only("*.whl")).namelist()
    assert {"flashtwin/_core.abi3.so", "flashtwin/flashtwin_nbdkit.so", "flashtwin/py.typed"} <= set(names)


def test_the_source_distribution_holds_what_it_is_built_from(tmp_path):
    with tarfile.open(only("*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    included = re.compile(r'include_str!\("([^"]+)"\)')
    sources = [path for path in root.glob("crates/*/src/**/*.rs") if "tests" not in path.parts]
    assert len(sources) > 100
    for source in sources:
        for target in included.findall(source.read_text()):
            assert (source.parent / target).is_file(), f"{source}: {target}"
