"""`flashtwin device list`, `show`, `check` and `import`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import Spec, devices
from .. import device as read_device
from ..files import write_text
from ..importing import import_file
from ..measurement import measure
from .options import overrides


def _facts(spec: Spec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "backend": spec.backend,
        "members": spec.members,
        "chips": spec.chips,
        "exported_bytes": spec.exported_bytes,
        "raw_bytes": spec.raw_bytes,
        "buffer_bytes": spec.buffer_bytes,
        "policy": spec.policy,
        "description": spec.description,
    }


def list_all(args: argparse.Namespace) -> int:
    """List the devices that come with flashtwin."""
    specs = [read_device(name) for name in devices()]
    if args.json:
        print(json.dumps([_facts(spec) for spec in specs], indent=2))
        return 0
    for spec in specs:
        print(f"{spec.name:<15} {spec.description}\n{'':<15} {spec.in_words}")
    return 0


def show(args: argparse.Namespace) -> int:
    """Print a device as TOML."""
    spec = read_device(args.device, overrides(args))
    print(f"# {spec.in_words}\n{spec.to_toml()}", end="")
    return 0


def check(args: argparse.Namespace) -> int:
    """Check device files; the first wrong one ends it. Measure those with published figures."""
    specs = [(name, read_device(name)) for name in args.devices]
    found = []
    for name, spec in specs:
        if not args.json:
            print(f"{name}: good: {spec.in_words}", flush=True)
        if spec.members:
            # What is published is of single drives.
            continue
        if args.measure or (spec.published[1] and not args.quick):
            found.append(measure(spec))
            if not args.json:
                print(found[-1])
    if args.json:
        print(json.dumps([measurement.as_dict() for measurement in found], indent=2))
    return 0


def import_parameters(args: argparse.Namespace) -> int:
    """Turn a parameter file of another simulator into a device, or into the commands that run its loads."""
    imported = import_file(args.file)
    if args.output:
        write_text(Path(args.output), imported.text, f"the imported {imported.kind}")
    else:
        print(imported.text, end="")
    for left_out in imported.left_out:
        print(f"without a counterpart: {left_out}", file=sys.stderr)
    return 0
