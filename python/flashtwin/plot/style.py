"""Style and files of figures. They are as wide as columns of a paper, readable in grey and reproducible."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._support.files import whole_file
from .._support.prerequisites import install_line
from ..errors import FlashtwinError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

#: Widths of one and of two columns of a paper, in inches.
WIDTHS_IN = {1: 3.5, 2: 7.16}
#: Settings of Matplotlib. Letters have the size of those in a caption. PDFs embed fonts as TrueType, as
#: publishers require.
_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    # Names inside are not drawn by lot.
    "svg.hashsalt": "flashtwin",
}
_DPI = 300

_DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1.2, 1, 1.2, 1, 1.2))]
_MARKERS = "osv^D<>Xp*hP"
_COLOURS = ["#0b3c5d", "#d1495b", "#5fb3a3", "#7a5195", "#b8860b", "#6b6b6b"]
#: Fills of bars: colour and hatching. Light fills are hatched, so that bars that differ in colour also differ
#: in grey.
_FILLS = [
    ("#0b3c5d", ""),
    ("#f4b6bd", "/////"),
    ("#2a9d8f", ""),
    ("#fbe3b5", "....."),
    ("#cfe8e5", "\\\\\\\\\\"),
    ("#ffffff", "xxxxx"),
    ("#c9c9c9", ""),
    ("#e2d6ea", "+++++"),
    ("#ffffff", "-----"),
    ("#b9a3c9", "|||||"),
]


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a drawing function use the settings of this style, and require Matplotlib."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        require()
        from matplotlib import rc_context

        with rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return drawn


def require() -> None:
    """Raise an error that names the package to install if Matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise FlashtwinError(f"figures need matplotlib: {install_line('matplotlib')}") from None


def kind_of(path: Path) -> str:
    """Return the file type, which the suffix of a file's name determines."""
    require()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.filetypes
    kind = path.suffix.lstrip(".").lower()
    if kind not in known:
        raise FlashtwinError(f"{path}: a figure's name must end in one of: .{', .'.join(sorted(known))}")
    return kind


def new(columns: int, height_in: float) -> Figure:
    """Create an empty figure with the width of one or two columns of a paper."""
    if columns not in WIDTHS_IN:
        raise FlashtwinError(f"columns: {columns}: give 1 or 2, the columns of a paper")
    from .notebook import NotebookFigure

    return NotebookFigure(figsize=(WIDTHS_IN[columns], height_in), layout="constrained", dpi=_DPI)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure in the file type of its name (PDF, PNG, SVG ...). Equal figures give the same bytes.

    A PDF embeds its letters as TrueType. Files contain no date and no version.

    Raises:
        FlashtwinError: the name has no known file type, or the file cannot be written.
    """
    kind = kind_of(Path(path))
    from matplotlib import rc_context

    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with whole_file(Path(path), "the figure") as file, rc_context(_SETTINGS):
        figure.savefig(file, format=kind, dpi=_DPI, metadata=metadata.get(kind))


def line(i: int, *, markers: bool = True) -> dict[str, Any]:
    """Return dashes, colour and marker of the i-th line. The combinations repeat after 60 lines."""
    style = {"linestyle": _DASHES[i % len(_DASHES)], "color": _COLOURS[i % len(_COLOURS)]}
    return {**style, "marker": _MARKERS[i % len(_MARKERS)], "markerfacecolor": "white"} if markers else style


def fill(i: int) -> dict[str, Any]:
    """Return colour and hatching of the i-th kind of bar."""
    colour, hatch = _FILLS[i % len(_FILLS)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.5}


#: Maximum number of names in a row above a figure of two columns; above one column, half as many.
_NAMES_IN_A_ROW = 6


def legend_above(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend above the panels, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        longest = max(len(label) for label in labels)
        fits = max(1, int((54 if columns == 1 else 116) // (longest + 6)))
        in_a_row = min(len(labels), fits, _NAMES_IN_A_ROW * columns // 2 + 1)
        figure.legend(handles, labels, loc="outside upper center", ncols=in_a_row)


def named_ticks(axes: Axes, names: list[str], columns: int) -> None:
    """Write names under bars. If they would touch, they are slanted or vertical."""
    room = (40 if columns == 1 else 100) / max(1, len(names))
    longest = max((len(name) for name in names), default=0)
    if longest <= room:
        axes.set_xticks(range(len(names)), names)
    elif room > 5:
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticks(range(len(names)), names, rotation=90)


def sizes_axis(axes: Axes, sizes: list[float]) -> None:
    """Make an axis of sizes or counts logarithmic, with ticks at some of its values."""
    axes.set_xscale("log", base=2)
    if len(sizes) <= 10:
        axes.set_xticks(sizes, [f"{size:.4g}" if size < 1000 else f"{size:.0f}" for size in sizes])
        axes.minorticks_off()
