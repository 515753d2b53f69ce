"""Installed packages, completion in the shell, the manual page."""

import argparse
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import flashtwin
from flashtwin._support import prerequisites
from flashtwin.cli import installation

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text()


def names(line):
    return re.findall(r'"([\w-]+)>=', line)


def test_doctor_knows_the_packages_of_pyproject():
    required = names(re.search(r"^dependencies = (.*)$", PROJECT, re.MULTILINE)[1])
    extras = PROJECT.split("[project.optional-dependencies]\n")[1].split("\n\n")[0]
    expected = {(name, None) for name in required if name != "tomli"}  # part of Python from 3.11 on
    expected |= {(name, line.split(" = ")[0]) for line in extras.splitlines() for name in names(line)}
    assert {(package.name, package.extra) for package in prerequisites.PACKAGES} == expected
    assert 'requires-python = ">={}.{}"'.format(*prerequisites.PYTHON_OLDEST) in PROJECT


def test_doctor_knows_the_packages_that_ci_installs():
    script = (ROOT / ".ci" / "run").read_text().replace("\\\n", "")
    lines = re.findall(r"--no-install-recommends ([^;]+);", script)
    installed = {package for line in lines for package in line.split()}
    assert len(installed) > 5
    assert installed <= {tool.debian for tool in prerequisites.TOOLS}


def test_doctor_lists_what_is_installed(cli):
    done = cli("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["pyarrow"]["required"]
    assert found["pyarrow"]["found"]
    assert not found["nbdkit"]["required"]
    assert all(check["install"] for check in found.values())
    assert "required:\n  python" in cli("doctor").stdout


def test_a_missing_package_is_shown_with_its_install_command(cli, tmp_path):
    done = cli("doctor", env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "fio                missing: install the package fio" in done.stdout
    manager = tmp_path / "dnf"
    manager.touch(0o755)
    done = cli("doctor", env={**os.environ, "PATH": str(tmp_path)})
    assert "qemu-nbd           missing: sudo dnf install qemu-img" in done.stdout


def test_a_missing_required_package_is_an_exit_code(monkeypatch, capsys):
    lacking = prerequisites.Package("no-such-package", "everything")
    monkeypatch.setattr(prerequisites, "PACKAGES", (lacking, *prerequisites.PACKAGES))
    assert installation.doctor(argparse.Namespace(json=False)) == 1
    assert "no-such-package    missing: pip install no-such-package" in capsys.readouterr().out


def test_the_manual_page_has_every_command_and_option(cli):
    done = cli("man")
    assert done.returncode == 0, done.stderr
    page = done.stdout.replace(r"\-", "-")
    for command in ("run", "trace info", "device check", "doctor"):
        assert f"\n.SS flashtwin {command}\n" in page
    assert "\n\\fB--policies A,B,...\\fR\npolicies, optionally with parameters, or all (default: lru," in page
    # In man(7), a line that starts with a dot is a request. All requests in the page must be known.
    assert set(re.findall(r"^\.(\w*)", page, re.MULTILINE)) == {"TH", "SH", "SS", "PP", "TP", "B", "nf", "fi"}
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww"]
        shown = subprocess.run(command, input=done.stdout, capture_output=True, text=True, check=True)
        assert shown.stderr == ""


COMPLETED = [
    ("flashtwin re", {"results", "report"}),
    ("flashtwin run --device raid6", {"raid6-nvme "}),
    ("flashtwin run --policy gcar-lr", {"gcar-lru "}),
    ("flashtwin compare --policies arc,gcar-lr", {"arc,gcar-lru "}),
    ("flashtwin device show 'nvme-t", {"nvme-tlc"}),
    ("flashtwin trace inf", {"info "}),
]


@pytest.mark.parametrize(("line", "expected"), COMPLETED, ids=[line for line, _ in COMPLETED])
def test_names_are_completed(cli, tmp_path, line, expected):
    pytest.importorskip("argcomplete")
    out = tmp_path / "completed"
    asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1"}
    done = cli(env={**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(out.read_text().split("\v")) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_accept_the_code(cli, tmp_path, shell):
    pytest.importorskip("argcomplete")
    code = cli("completion", shell).stdout
    assert "flashtwin" in code
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    path = tmp_path / "code"
    path.write_text(code)
    subprocess.run([shell, "-n", path], check=True, timeout=30)


def test_every_place_has_the_same_version():
    manifest = (ROOT / "Cargo.toml").read_text()
    of_ours = manifest.split("[profile")[0].split("serde = ")[0]
    versions = re.findall(r'(?<!rust-)version = "([\d.]+)"', of_ours)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert {*versions, cited} == {flashtwin.__version__}
    assert len(versions) == 5
