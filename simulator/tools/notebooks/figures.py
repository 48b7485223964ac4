"""Matplotlib figures: built without its global state, so notebooks can show them without any setup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from castsim.execution.timing import Cause
from castsim.isa.errors import escaped, missing_package
from castsim.tools.notebooks.presentation import HATCHING, cause_colour, colours_of, meanings

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from castsim.tools.notebooks.presentation import ShownWindow

try:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
except ImportError:
    raise missing_package("a drawing", "matplotlib", "notebook") from None

_INCH = 0.32
"""Height of a lane in inches."""

_FEW = 50
"""Maximum number of operations of a row and colour whose ends are drawn."""

_HATCH = (0.0, 0.0, 0.0, 0.5)
"""The colour of hatching."""

_DOTS = 90
"""Dots per inch of a picture in a notebook."""


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture, on white so its text is readable on dark pages too."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=_DOTS, bbox_inches="tight", facecolor="white")
        return buffer.getvalue()


def empty_figure() -> NotebookFigure:
    """Return a figure without axes."""
    return NotebookFigure(layout="constrained")


def plain(words: str) -> str:
    """Return text for a figure without formulas and control characters."""
    return escaped(words).replace("$", r"\$")


def bar_axes(figure: Figure, names: Sequence[str], title: str) -> Axes:
    """Return axes over cycles with one row per name, the first on top."""
    figure.set_size_inches(9, 1.4 + _INCH * max(len(names), 2))
    axes = figure.subplots()
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("cycles")
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def keyed(axes: Axes, colours: Mapping[str, str]) -> None:
    """Explain the colours beside the axes."""
    handles = [
        Patch(facecolor=colour, edgecolor=_HATCH, hatch=HATCHING.get(colour), label=plain(name))
        for colour, name in meanings(colours).items()
    ]
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")


def cause_bars(figure: Figure, rows: Mapping[str, Mapping[Cause, int]], title: str) -> None:
    """Draw the cycles of each row as a bar whose parts are its causes."""
    axes = bar_axes(figure, [*rows], title)
    present = [cause for cause in Cause if any(causes.get(cause) for causes in rows.values())]
    left = [0] * len(rows)
    for cause in present:
        widths = [causes.get(cause, 0) for causes in rows.values()]
        colour = cause_colour(cause)
        axes.barh(
            range(len(rows)), widths, left=left, color=colour, height=0.7, hatch=HATCHING.get(colour), edgecolor=_HATCH,
            linewidth=0,
        )  # fmt: skip
        left = [behind + width for behind, width in zip(left, widths, strict=True)]
    keyed(axes, {str(cause): cause_colour(cause) for cause in present})


def operation_lanes(figure: Figure, window: ShownWindow, title: str) -> None:
    """Draw operations from start to end, one row per pipe, coloured by instruction."""
    axes = bar_axes(figure, window.pipes, f"{title}\n{window.cut}" if window.cut else title)
    colours = colours_of(operation.name for operation in window.operations)
    for row, pipe in enumerate(window.pipes):
        for name, colour in colours.items():
            spans = [
                (operation.start, operation.end - operation.start)
                for operation in window.operations
                if operation.pipe == pipe and operation.name == name
            ]
            if spans:
                seams = 0.4 if len(spans) < _FEW else 0  # many would hide what lies between them
                axes.broken_barh(
                    spans,
                    (row - 0.35, 0.7),
                    facecolors=colour,
                    edgecolors="white",
                    linewidth=seams,
                    hatch=HATCHING.get(colour),
                )
    axes.set_xlim(window.start, max(window.end, window.start + 1))
    keyed(axes, colours)


def curve_axes(figure: Figure, title: str, across: str, up: str) -> Axes:
    """Return axes for curves or points."""
    figure.set_size_inches(7, 4)
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def verdict_grid(
    figure: Figure,
    grid: NDArray[np.int64],
    rows: Sequence[str],
    cols: Sequence[str],
    colours: Mapping[str, str],
    title: str,
) -> None:
    """Draw a square for each element of `grid`, which is an index into the colours."""
    figure.set_size_inches(3.5 + 0.6 * len(cols), 1.6 + 0.2 * len(rows))
    axes = figure.subplots()
    axes.imshow(grid, ListedColormap([*colours.values()]), vmin=-0.5, vmax=len(colours) - 0.5, aspect="auto")
    axes.set_xticks(range(len(cols)), [plain(name) for name in cols], rotation=45, ha="right")
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize="small")
    axes.set_xticks([tick - 0.5 for tick in range(1, len(cols))], minor=True)
    axes.set_yticks([tick - 0.5 for tick in range(1, len(rows))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.set(xlabel="target", ylabel="cast")
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    keyed(axes, colours)


def compared(figure: Figure, groups: Mapping[str, tuple[Sequence[tuple[int, int]], str]], title: str) -> None:
    """Draw pairs of measured and predicted cycles beside the distribution of errors, one colour per group."""
    figure.set_size_inches(10, 4)
    points, errors = figure.subplots(1, 2)
    ends = [cycles for pairs, _ in groups.values() for pair in pairs for cycles in pair]
    points.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linewidth=0.8)
    for name, (pairs, colour) in groups.items():
        points.plot(*zip(*pairs, strict=True), ".", color=colour, alpha=0.5, label=name)
    points.set(xscale="log", yscale="log", xlabel="measured cycles", ylabel="predicted cycles")
    errors_by_group = {
        name: [100 * (predicted - measured) / measured for measured, predicted in pairs]
        for name, (pairs, _) in groups.items()
    }
    every = [abs(error) for group_errors in errors_by_group.values() for error in group_errors]
    most = max(1.0, sorted(every)[int(0.98 * (len(every) - 1))])
    clipped = [[min(max(error, -most), most) for error in group_errors] for group_errors in errors_by_group.values()]
    errors.hist(
        clipped, bins=31, range=(-most, most), color=[colour for _, colour in groups.values()], label=[*errors_by_group]
    )
    errors.set(xlabel="error in % of the measured cycles, the rarest at the ends", ylabel="rows")
    for axes in (points, errors):
        axes.legend(frameon=False, fontsize="small")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(plain(title), fontsize="medium", x=0.01, ha="left")
