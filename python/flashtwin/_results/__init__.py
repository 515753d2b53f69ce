"""Results of a sweep: the table of cells, statistics over seeds, comparison with a baseline, and SQL."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .._support.estimates import Estimate, mean_of, ratio_of
from .._support.folders import Folder
from .._support.prerequisites import install_line
from ..errors import FlashtwinError
from . import dataset

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Estimate", "Results", "require_duckdb", "results"]


def results(directory: str | os.PathLike[str]) -> Results:
    """Open the results of a sweep.

    Raises:
        FlashtwinError: the directory has no results.
    """
    return Results(directory)


def require_duckdb() -> None:
    """Raise an error that names the package to install if DuckDB is missing."""
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise FlashtwinError(f"queries need DuckDB: {install_line('duckdb')}") from None


class Results:
    """The results of a sweep. Print the object to see statistics, or read its `table` (docs/sweeps.md).

    Attributes:
        directory: directory of the sweep.
        table: one row per cell, in the order of the axes, as a `pyarrow.Table`.
        axes: columns of the table that define a cell, such as policy and seed, with their values.
        baseline: values of axes that identify the cells with which others are compared.
        figures: columns that the printed tables have.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self.table, about = dataset.read(Folder(directory))
        self.name: str = about["name"]
        self.axes: dict[str, list[Any]] = about["axes"]
        self.baseline: dict[str, Any] = about["baseline"]
        self.figures: list[str] = dataset.numeric(self.table, about["figures"])

    @property
    def failed(self) -> int:
        """Cells that ended with an error."""
        return sum(status == "failed" for status in self.table["status"].to_pylist())

    @property
    def points(self) -> list[str]:
        """Return the axes except the seed. Their values define a point; runs with several seeds repeat it."""
        return [axis for axis in self.axes if axis != "seed"]

    def statistics(self, figures: list[str] | None = None, confidence: float = 0.95) -> pa.Table:
        """Return statistics over seeds: one row per point and figure, in the order of the axes.

        Columns are the axes without the seed, `figure`, `seeds`, and `mean` with `mean_low` and `mean_high`
        (Student's t interval). `ratio` and `difference` compare the point with its baseline. For each seed,
        the figure of the point is divided by that of the baseline, or the latter is subtracted. `ratio` is
        the geometric mean of these ratios; `ratio_low` and `ratio_high` are the t interval of their
        logarithms. `difference` is the mean of these differences, also with its t interval. Values are null
        if they cannot be computed, for instance from a single seed or from figures of 0.

        Args:
            figures: names of columns; by default those of the experiment.
            confidence: confidence level of the intervals, from 0 to 1.

        Raises:
            FlashtwinError: a figure is not a column of numbers.
        """
        import pyarrow as pa

        chosen = self.figures if figures is None else figures
        for figure in chosen:
            if not dataset.numeric(self.table, [figure]):
                near = get_close_matches(figure, dataset.numeric(self.table, self.table.column_names), 3)
                hint = f"did you mean {' or '.join(near)}? " if near else ""
                shown = ", ".join(self.figures)
                raise FlashtwinError(f"{figure}: no column of numbers; {hint}those shown are {shown}")
        if not 0 < confidence < 1:
            raise FlashtwinError(f"confidence: {confidence}: give a number between 0 and 1, such as 0.95")
        rows: list[dict[str, Any]] = []
        values = self._by_point(chosen)
        for point, by_figure in values.items():
            base = values.get(self._base_of(point), {})
            for figure in chosen:
                own, other = by_figure[figure], base.get(figure, {})
                row: dict[str, Any] = dict(zip(self.points, point, strict=True))
                mean = mean_of(list(own.values()), confidence)
                row |= {"figure": figure, "seeds": len(own), **mean.named("mean")}
                pairs = [(value, other[seed]) for seed, value in own.items() if seed in other]
                row |= ratio_of(pairs, confidence).named("ratio")
                row |= mean_of([a - b for a, b in pairs], confidence).named("difference")
                rows.append(row)
        names = [*self.points, "figure", "seeds"]
        names += [f"{what}{end}" for what in ("mean", "ratio", "difference") for end in ("", "_low", "_high")]
        kinds = {name: pa.float64() for name in names[len(self.points) + 2 :]}
        return pa.table({n: pa.array([row[n] for row in rows], kinds.get(n)) for n in names})

    def _by_point(self, figures: list[str]) -> dict[tuple[Any, ...], dict[str, dict[int, float]]]:
        """Return the values of all finished cells, by point, figure and seed."""
        rows = self.table.select([*self.points, "seed", "status", *figures]).to_pylist()
        found: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
        for row in rows:
            if row["status"] != "ok":
                continue
            point = tuple(row[axis] for axis in self.points)
            by_figure = found.setdefault(point, {figure: {} for figure in figures})
            for figure in figures:
                if row[figure] is not None:
                    by_figure[figure][row["seed"]] = row[figure]
        return found

    def _base_of(self, point: tuple[Any, ...]) -> tuple[Any, ...]:
        typed = self.table.schema
        base = []
        for axis, value in zip(self.points, point, strict=True):
            wanted = self.baseline.get(axis, value)
            # A column of mixed values holds texts.
            text = wanted is not None and str(typed.field(axis).type) == "string"
            base.append(str(wanted) if text else wanted)
        return tuple(base)

    def query(self, sql: str) -> pa.Table:
        """Run an SQL query with DuckDB. The tables are `cells` and `statistics`.

        Raises:
            FlashtwinError: DuckDB is not installed, or the query fails.
        """
        require_duckdb()
        import duckdb

        connection = duckdb.connect(":memory:")
        try:
            connection.register("cells", self.table)
            connection.register("statistics", self.statistics())
            relation = connection.sql(sql)
            if relation is None:
                raise FlashtwinError("query: no table returned; use select")
            answer: pa.Table = relation.to_arrow_table()
        except duckdb.Error as e:
            lines = [line.strip() for line in str(e).split("\n")]
            near = [line for line in lines[1:] if line.startswith(("Candidate", "Did you mean"))]
            told = "; ".join([lines[0], *near])
            raise FlashtwinError(f"query: {told}; the tables are cells and statistics") from None
        finally:
            connection.close()
        return answer

    def __repr__(self) -> str:
        from .show import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from .show import as_html

        return as_html(self)
