"""Draw pictures for the page as PNG. matplotlib is imported only when something is drawn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure

INCH = 1.5  # side of a tile in inches
PIXELS = 96  # pixels per inch
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito 2008


@dataclass(frozen=True)
class Box:
    """A rectangle on a picture."""

    corners: tuple[float, float, float, float]
    """The corners (left, top, right, bottom) as fractions of the picture, 0 … 1."""
    label: str = ""
    """A label at the upper left corner."""
    colour: int = 0
    """An index into the palette."""
    dashed: bool = False
    """Whether the line is dashed: dashed for the expected box, solid for the predicted one."""


def grid(
    images: Sequence[np.ndarray],
    titles: Sequence[str] = (),
    boxes: Sequence[Sequence[Box]] = (),
    columns: int = 8,
    side: float = INCH,
) -> bytes:
    """Draw images in a grid, each with its title and boxes.

    Args:
        images: Images `[H W]`, `[H W 1]` or `[H W 3]`. Floats are in 0 … 1, integers in 0 … 255.
        titles: A title for each image.
        boxes: The boxes on each image.
        columns: The number of images in a row.
        side: The width of an image in inches.

    Returns:
        The picture as PNG.
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


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of the given size in inches. It needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Figure, dpi: int = PIXELS) -> bytes:
    """Return a figure as PNG with `dpi` pixels per inch."""
    file = BytesIO()
    # The version of matplotlib is left out, so that pictures from two machines are identical.
    figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
    return file.getvalue()


@contextmanager
def plain(salt: str = "attnlab"):
    """Use matplotlib's defaults instead of the user's settings, and do not parse names as mathematics.

    Args:
        salt: Distinguishes the ids in one SVG from those in another on the same page.
    """
    # Messages about matplotlib's font cache would only distract.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    with matplotlib.rc_context(), catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({
            "svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 10, "path.simplify_threshold": 0.3,
            "text.parse_math": False,
        })  # fmt: skip
        # matplotlib warns for every letter that its font lacks, and draws a box.
        simplefilter("ignore", UserWarning)
        yield
