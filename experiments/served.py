"""Recovery of a hidden device through fio and a network block device, both on this host.

    python experiments/served.py --seed 3
    python experiments/served.py --seed 3 --dilation 100 --reads
    python experiments/served.py --seed 3 --measure && python experiments/served.py --seed 3

A random device, drawn as in recovery.py, is served. The fio script of a measurement plan
(flashtwin.calibrate) measures it. A fit then uses only these measurements. The latency of the host is
measured on the device `instant`. The fitted device is then compared with the hidden one in virtual time,
without the host.

With --reads nothing is fitted. The device is filled once, and fio's measurements of its reads are compared
with the same device in virtual time. The difference is the latency that the host adds at a given dilation.

With --measure, only the script of the plan runs. The host should otherwise be idle, or the command should
have real-time priority (chrt -r 10). Afterwards, the same command without --measure and with the same
--results fits the measurements.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from recovery import bound, draw, off, parameters, standing

import flashtwin
from flashtwin._devices import Spec
from flashtwin.calibrate import loads, plan
from flashtwin.calibrate.fit import fit
from flashtwin.calibrate.host import latency_us, with_host
from flashtwin.calibrate.modelled import measure
from flashtwin.calibrate.parameters import Profile
from flashtwin.calibrate.results import Results, read_results

_SEED = 1


def measured(
    device: str | Path, folder: Path, capacity: int, dilation: float, *, read_only: bool, filled: bool = False
) -> Results:
    """Serve a device and return fio's measurements of it, in device time."""
    with flashtwin.serve(device, dilation=dilation, precondition="none", store="none") as server:
        where = plan.target(server.uri, capacity)
        plan.write(folder, where, read_only=read_only, dilation=dilation)
        if filled:
            subprocess.run(["fio", "--output=/dev/null", f"{loads.FILLED}.fio"], check=True, cwd=folder)
        subprocess.run([folder / plan.SCRIPT, "--yes"], check=True, stdout=sys.stderr)
    return read_results(folder / plan.RESULTS, loads.rates_only())


def compare_reads(spec: Spec, results: Results, host: Results) -> None:
    """Print fio's measurements of reads, compared with the device in virtual time."""
    print(f"{'figure':<28} {'virtual':>9} {'fio':>9} {'error':>8} {'instant':>9}")
    sizes = []
    for figure, true in measure(spec, loads.reads(), _SEED, in_order=True).items():
        if bound(figure) and figure in results.figures:
            found = results.figures[figure]
            sizes.append(abs(found / true - 1))
            at_once = host.figures.get(figure, 0.0)
            print(f"{figure:<28} {true:>9.4g} {found:>9.4g} {found / true - 1:>+8.1%} {at_once:>9.4g}")
    print(f"{len(sizes)} figures, median error {statistics.median(sizes):.1%}")


def main() -> int:
    """Recover one device."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--dilation", type=float, default=10)
    parser.add_argument("--reads", action="store_true", help="measure reads only, and fit nothing")
    parser.add_argument("--measure", action="store_true", help="measure, and fit later")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("out/served"), help="what is there is kept")
    args = parser.parse_args()
    capacity = args.mib << 20
    hidden = draw(random.Random(args.seed), args.level)
    spec = Profile(hidden, capacity).spec()
    began = time.monotonic()
    folder = args.results.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hidden.toml").write_text(spec.to_toml(), encoding="utf-8")
    host = measured("instant", folder / "host", 256 << 20, args.dilation, read_only=True)
    host_us = latency_us(host.figures, "instant")
    results = measured(
        folder / "hidden.toml",
        folder / "plan",
        spec.exported_bytes,
        args.dilation,
        read_only=args.reads,
        filled=args.reads,
    )
    print(f"host: {host_us:.2f} us of the device's time; measured in {time.monotonic() - began:.0f} s")
    if args.measure:
        return 0
    if args.reads:
        compare_reads(spec, results, host)
        return 0
    found = fit(with_host(results, host.figures), threads=args.threads, host_us=host_us)
    print(f"cost {found.refined.cost:.2f}, {found.refined.evaluations} evaluations")
    print("\n".join(parameters(hidden, found)))
    known, wrong = standing(hidden, found)
    print(f"{known} identified, off by more than 10 %: {', '.join(wrong) or 'none'}")
    every = [load.longer(loads.TIMES) for load in loads.held_out()]
    true, fitted = (measure(each, every, _SEED) for each in (spec, found.profile.spec()))
    checked = [figure for figure in true if bound(figure) and figure in fitted]
    for figure in checked:
        mark = "  BEYOND" if off(true[figure], fitted[figure], figure) else ""
        through = found.measured.get(figure)
        fio = f"{through:10.4g}" if through is not None else f"{'-':>10}"
        print(
            f"  {figure:<28} hidden {true[figure]:10.4g}  fitted {fitted[figure]:10.4g} "
            f"({fitted[figure] / true[figure] - 1:+.1%})  by fio {fio}{mark}"
        )
    inside = sum(not off(true[figure], fitted[figure], figure) for figure in checked)
    print(f"held out: {inside} of {len(checked)} figures within their bounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
