"""What all figures share: layout, colours that colour-blind readers can tell apart, and saving.

Figures are drawn without a window and without matplotlib's global state.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.core import files
from understudy.core.dependencies import install_line, not_installed
from understudy.core.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
"""The palette of Okabe and Ito without yellow, which is hard to see on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
TRAINED, UNTRAINED, FRAME, GREY = COLOURS[0], COLOURS[1], COLOURS[2], "#888888"
_DPI = 130


def check_installed() -> None:
    """Raises MissingDependency before the first match, not after the last."""
    for module, name in (("matplotlib", "matplotlib"), ("sklearn", "scikit-learn")):
        if not_installed(module):
            raise MissingDependency(f"analyze needs {name}: {install_line('plots')}")


def begin(
    rows: int, columns: int, *, width: float, height: float, title: str, **grid: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A new figure, sizes in inches, and its panels by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12)
    panels = figure.subplots(rows, columns, squeeze=False, **grid)
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, [list(row) for row in panels]


def keep(figure: Figure, path: Path) -> None:
    """Writes the figure as PNG, atomically."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI)
    files.write_atomic(path, data.getvalue())
