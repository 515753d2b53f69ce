"""The class of all figures of flashtwin. A notebook displays them without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

#: Resolution at which a figure of two columns is about as wide as a notebook cell.
_DPI = 144


class NotebookFigure(Figure):
    """A Matplotlib figure that displays itself."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=_DPI)
        return out.getvalue()
