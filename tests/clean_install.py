"""Follows the tutorial in a new environment with a wheel: an empty home, no compiler, no sources.

python tests/clean_install.py WHEEL
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(wheel: Path) -> None:
    """Install and follow."""
    commands = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE | re.DOTALL
    )
    with tempfile.TemporaryDirectory() as place:
        environment, home = Path(place) / "environment", Path(place) / "home"
        home.mkdir()
        venv.create(environment, with_pip=True)
        pip = [str(environment / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        pinned = ROOT / "requirements/demo.txt"
        subprocess.run([*pip, "--only-binary=:all:", "--require-hashes", "-r", str(pinned)], check=True)
        subprocess.run([*pip, "--no-deps", str(wheel.resolve())], check=True)
        path = f"{environment / 'bin'}:/usr/bin:/bin"
        done = subprocess.run(
            ["bash", "-euc", "\n".join(commands)],
            cwd=home,
            env={"HOME": str(home), "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        print(f"{wheel.name}: the tutorial runs in a new environment")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
