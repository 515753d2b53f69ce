"""Compares the profiles of `_drives/fits.toml` with tables of measurements; writes docs/drives.md and .csv.

    python experiments/drives.py --tables DIR

DIR has the CSV files of the tables of measurements. A cell compares one figure of one row of these tables.
docs/drives.csv has all cells; docs/drives.md shows those of the newest release, by drive. The HTML page and
its Parquet file are out/drives.html and out/drives.parquet. With --only NAME, the cells of other profiles in
docs/drives.csv stay unchanged.

Each cell belongs to a release of flashtwin. A run replaces the cells of the release "unreleased", and keeps
those of earlier releases. With --release VERSION, the cells of "unreleased" become those of the version.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from statistics import median

from flashtwin._drives import Cell, check_device
from flashtwin._drives.fits import fits
from flashtwin._drives.page import write_html

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "drives.md"
CELLS = ROOT / "docs" / "drives.csv"
HTML = ROOT / "out" / "drives.html"
#: Release of cells that no release has.
UNRELEASED = "unreleased"
TABLES = (
    "latency_under_load.csv",
    "wa_by_fill.csv",
    "wa_by_pattern.csv",
    "write_iops_by_pattern.csv",
    "nvme_980pro.csv",
    "warp_real.csv",
)
BEGIN = "<!-- from here on written by experiments/drives.py -->"
END = "<!-- up to here -->"
#: Figures in the order of the columns, with their headings.
FIGURES = {
    "kiops": "rate",
    "mb_per_s": "MB/s",
    "waf": "WAF",
    "read_p50_us": "read p50",
    "read_p99_us": "p99",
    "read_p99.9_us": "p99.9",
    "write_p50_us": "write p50",
    "write_p99_us": "p99",
    "write_p99.9_us": "p99.9",
}
#: Names of figures in device files.
NAMES = {
    "kiops": "requests a second",
    "mb_per_s": "sequential writes",
    "waf": "write amplification",
    **{f"{op}_p{p}_us": f"p{p} of {op}s" for op in ("read", "write") for p in ("50", "99", "99.9")},
}
ERRORS = "# Errors beside the tables in percent, written by experiments/drives.py (docs/drives.md):"
_NUMBERS = ("measured", "modelled", "error_percent", "run_error_percent")


def read_cells() -> list[Cell]:
    """Return the cells of the last run."""
    if not CELLS.exists():
        return []
    with CELLS.open(newline="") as file:
        records = list(csv.DictReader(file))
    return [
        Cell(
            **{
                name: (float(text) if text else None) if name in _NUMBERS else text
                for name, text in record.items()
            }
        )
        for record in records
    ]


def write_cells(cells: Sequence[Cell]) -> None:
    """Write the cells that have an error to docs/drives.csv, with numbers of five significant digits."""
    with CELLS.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cell)], lineterminator="\n")
        writer.writeheader()
        for cell in cells:
            if cell.error_percent is None:
                continue
            record = asdict(cell)
            for name in _NUMBERS:
                value = record[name]
                record[name] = "" if value is None else f"{value:.5g}"
            writer.writerow(record)


def by_release(cell: Cell) -> tuple[int, ...]:
    """Return a key that orders cells by release, the newest first."""
    return () if cell.release == UNRELEASED else tuple(-int(part) for part in cell.release.split("."))


def newest(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of the first release."""
    return [cell for cell in cells if cell.release == cells[0].release]


def with_release(cells: Sequence[Cell], release: str) -> list[Cell]:
    """Return cells among which a release has cells.

    If there are cells of "unreleased", they become the cells of the release, and replace those that it had.
    Otherwise, a release without cells begins with copies of the cells of the newest release.
    """
    found = {cell.release for cell in cells}
    if release != UNRELEASED and UNRELEASED in found:
        named = [replace(cell, release=release) for cell in cells if cell.release == UNRELEASED]
        return named + [cell for cell in cells if cell.release not in (release, UNRELEASED)]
    if cells and release not in found:
        return [replace(cell, release=release) for cell in newest(cells)] + list(cells)
    return list(cells)


def portable(command: str, device: str, tables: Path) -> str:
    """Return a command in which the paths of the profile and of the tables are replaced by their names."""
    short = {str(profile(device)): device, **{str(tables / name): name for name in TABLES}}
    return shlex.join(short.get(word, word) for word in shlex.split(command))


def profile(device: str) -> Path:
    """Return the device file of a profile."""
    return ROOT / "devices" / f"{device}.toml"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(cell: Cell | None) -> str:
    """Format a cell: its error, in italics if the fit used the figure."""
    if cell is None or cell.error_percent is None:
        return ""
    error = f"{cell.error_percent:+.1f}" if abs(cell.error_percent) < 99.95 else f"{cell.error_percent:+.0f}"
    return f"*{error}*" if cell.role == "fitted" else error


def summary(cells: Sequence[Cell]) -> str:
    """Return a table of median and largest errors: per profile, a row of held-out and one of fitted ones."""
    rows = []
    for device in fits():
        for role in ("held out", "fitted"):
            row = [f"`{device}`", role]
            for figure in FIGURES:
                errors = [
                    abs(cell.error_percent)
                    for cell in cells
                    if cell.device == device
                    and cell.role == role
                    and cell.figure == figure
                    and cell.error_percent is not None
                ]
                row.append(f"{median(errors):.1f} ({max(errors):.0f}; {len(errors)})" if errors else "")
            if any(row[2:]):
                rows.append(row)
    return table(["profile", "cells", *FIGURES.values()], rows)


def releases(cells: Sequence[Cell]) -> str:
    """Return the median errors of held-out figures, with a row per release."""
    rows = []
    for release in dict.fromkeys(cell.release for cell in cells):
        row = [release]
        for figure in FIGURES:
            errors = [
                abs(cell.error_percent)
                for cell in cells
                if cell.release == release
                and cell.role == "held out"
                and cell.figure == figure
                and cell.error_percent is not None
            ]
            row.append(f"{median(errors):.1f}" if errors else "")
        rows.append(row)
    return table(["release", *FIGURES.values()], rows)


def of_device(cells: Sequence[Cell]) -> str:
    """Return the tables of a drive, with a row per load and a column per figure."""
    texts = []
    kinds = dict.fromkeys(cell.row.split("/")[1] for cell in cells)
    for kind in kinds:
        own = [cell for cell in cells if cell.row.split("/")[1] == kind and cell.error_percent is not None]
        if not own:
            continue
        figures = [figure for figure in FIGURES if any(cell.figure == figure for cell in own)]
        by_row: dict[str, dict[str, Cell]] = {}
        for cell in own:
            by_row.setdefault(cell.row, {})[cell.figure] = cell
        rows = [
            [f"`{row}`", *(shown(found.get(figure)) for figure in figures)] for row, found in by_row.items()
        ]
        texts.append(table(["row", *(FIGURES[figure] for figure in figures)], rows))
    return "\n\n".join(texts)


def write_page(cells: Sequence[Cell]) -> None:
    """Write the tables into the page: those of the newest release, and one with a row per release."""
    parts = [BEGIN, "", "### Releases", "", releases(cells)]
    cells = newest(cells)
    parts += ["", "### Summary", "", summary(cells)]
    for device in fits():
        own = [cell for cell in cells if cell.device == device]
        if own:
            names = ", ".join(dict.fromkeys(cell.drive for cell in own))
            parts += ["", f"### `{device}`", "", f"Measured on: {names}.", "", of_device(own)]
    text = PAGE.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: "\n".join([*parts, "", END]), text))


def write_profile(device: str, cells: Sequence[Cell]) -> None:
    """Write the errors of a profile, relative to the tables, at the end of its device file."""
    path = profile(device)
    text = path.read_text().partition(ERRORS)[0].rstrip()
    lines = [ERRORS]
    for role in ("held out", "fitted"):
        for figure, head in NAMES.items():
            errors = [
                abs(cell.error_percent)
                for cell in cells
                if cell.role == role and cell.figure == figure and cell.error_percent is not None
            ]
            if errors:
                middle, most = f"{median(errors):.1f}", f"{max(errors):.1f}"
                lines.append(f"# {role}, {head}: median {middle}, largest {most} ({len(errors)} rows)")
    path.write_text("\n".join([text, "", *lines, ""]))


def main() -> None:
    """Run the comparison."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--tables", type=Path, help="directory with the CSV files")
    p.add_argument("--only", action="append", help="profile to run; may be repeated (default: all)")
    p.add_argument("--rows", help="rows to run, as patterns (default: all)")
    p.add_argument("--quick", action="store_true", help="shorter runs, whose errors are larger")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--page-only", action="store_true", help="write the pages from docs/drives.csv")
    p.add_argument("--release", default=UNRELEASED, metavar="VERSION", help="release of new cells")
    p.add_argument("--html", type=Path, default=HTML, help="HTML page to write (default: out/drives.html)")
    args = p.parse_args()
    if not (args.tables or args.page_only):
        p.error("--tables DIR: give the folder of the tables")
    cells = read_cells()
    if args.release != UNRELEASED or not args.page_only:
        cells = with_release(cells, args.release)
    for device in () if args.page_only else args.only or fits():
        found = check_device(
            profile(device),
            [args.tables / name for name in TABLES],
            rows=args.rows,
            quick=args.quick,
            threads=args.threads,
        )
        new = [
            replace(cell, release=args.release, command=portable(cell.command, device, args.tables))
            for cell in found.cells
        ]
        again = {(cell.row, cell.figure) for cell in new}
        cells = new + [
            cell
            for cell in cells
            if (cell.device, cell.release) != (device, args.release)
            or (args.rows and (cell.row, cell.figure) not in again)
        ]
        cells.sort(key=lambda cell: (by_release(cell), list(fits()).index(cell.device)))
        write_cells(cells)
        print(f"{device}\n{str(found)[str(found).rindex(chr(10) * 2) :]}", flush=True)
    # fits.toml determines whether the role of a cell is fitted or held out. Cells of earlier runs get their
    # current role, too.
    cells = [replace(cell, role=fits()[cell.device].role(cell.row, cell.figure)) for cell in cells]
    write_cells(cells)
    write_page(cells)
    args.html.parent.mkdir(parents=True, exist_ok=True)
    write_html(cells, args.html)
    print(f"{args.html}, {args.html.with_suffix('.parquet')}")
    for device in fits():
        write_profile(device, [cell for cell in newest(cells) if cell.device == device])


if __name__ == "__main__":
    main()
