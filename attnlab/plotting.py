"""Pictures for the page, as PNG. matplotlib is imported where something is drawn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

INCH = 1.5  # side of a tile
PIXELS = 96  # to an inch
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito 2008


@dataclass(frozen=True)
class Box:
    """A rectangle on a picture: corners (left, top, right, bottom) in shares of it, 0 … 1.

    `colour` counts through a palette; `dashed` is for what was to be found, a whole line for what was.
    """

    corners: tuple[float, float, float, float]
    label: str = ""
    colour: int = 0
    dashed: bool = False


def grid(
    images: Sequence[np.ndarray],
    titles: Sequence[str] = (),
    boxes: Sequence[Sequence[Box]] = (),
    columns: int = 8,
    side: float = INCH,
) -> bytes:
    """Images [H W], [H W 1] or [H W 3] side by side, `columns` to a row, each with its title and boxes.

    Numbers are in 0 … 1, or in 0 … 255 where they are whole; `side` is an image's width in inches.
    """
    from matplotlib.patches import Rectangle

    columns = max(1, min(columns, len(images)))
    rows = -(-len(images) // columns)
    tall = side * images[0].shape[0] / images[0].shape[1] + (0.25 if titles else 0.05)
    figure = canvas(columns * side, rows * tall)
    for n, axes in enumerate(figure.subplots(rows, columns, squeeze=False).ravel()):
        axes.axis("off")
        if n >= len(images):
            continue
        image = np.asarray(images[n])
        image = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        top = 255 if np.issubdtype(image.dtype, np.integer) else 1
        axes.imshow(image, cmap="gray", vmin=0, vmax=top, interpolation="nearest")
        if titles:
            axes.set_title(titles[n], fontsize=8, parse_math=False)
        height, width = image.shape[:2]
        for box in boxes[n] if boxes else ():
            left, high, right, low = box.corners
            corner, size = (left * width - 0.5, high * height - 0.5), ((right - left) * width, (low - high) * height)
            colour, style = COLOURS[box.colour % len(COLOURS)], ":" if box.dashed else "-"
            axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=colour, linestyle=style, linewidth=1.2))
            if box.label:
                axes.text(*corner, box.label, fontsize=6, color=colour, verticalalignment="bottom", parse_math=False)
    return png(figure)


def canvas(width: float, height: float) -> Any:
    """An empty figure of so many inches, which needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any, dpi: int = PIXELS) -> bytes:
    """A figure as PNG, of so many pixels to an inch."""
    file = BytesIO()
    # The version of matplotlib in it would make two machines' pictures differ.
    figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
    return file.getvalue()


@contextmanager
def plain(salt: str = "attnlab"):
    """Matplotlib as it comes, whatever the settings of the person who draws; names are no mathematics.

    `salt` keeps the identities in one SVG from those in another on the same page.
    """
    # Where its caches lie, and that they are being built, is nothing to a person who wants a page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 10}
    settings |= {"path.simplify_threshold": 0.3, "text.parse_math": False}
    with matplotlib.rc_context(), catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        # Of letters that its one font lacks, matplotlib draws a box, and a warning each.
        simplefilter("ignore", UserWarning)
        yield
