"""Figures of matplotlib as SVG inside a page, in the page's colours and fonts, so that they follow light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from attnlab.lab.reporting.markup import Markup, join, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PART = "part-"  # the prefix of the gid of artists that `draw` returns separately
_NAMES = ("currentColor", *(f"var(--{name})" for name in ("ink-2", "grid", "page", *(f"v{n}" for n in range(8)))))
_COLOURS = [f"#0101{n:02x}" for n in range(len(_NAMES))]


@dataclass(frozen=True)
class Paint:
    """The colours of a figure."""

    ink: str
    """The colour of text."""
    grid: str
    """The colour of lines."""
    variants: tuple[str, ...]
    """The colours of the variants in turn."""


# Placeholder colours. `draw` replaces them by the page's CSS variables.
CURRENT, _ink, _grid, BACKGROUND, *_variants = _COLOURS
PAGE = Paint(_ink, _grid, tuple(_variants))


def style_axes(axes: Axes, paint: Paint, grid: Literal["x", "y"]) -> None:
    """Reduce axes to the lines that a reader needs, with grid lines at the ticks of one axis.

    Args:
        axes: The axes, which are changed.
        paint: The colours of text and lines.
        grid: The axis whose ticks have grid lines, "x" or "y".
    """
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(paint.grid)
    axes.tick_params(which="both", colors=paint.ink, length=0, pad=5)
    axes.grid(axis=grid, color=paint.grid, linewidth=0.8)
    axes.set_axisbelow(True)


def draw(figure: Figure) -> tuple[Markup, dict[str, list[Markup]]]:
    """Draw a figure.

    Returns:
        The SVG elements of the figure, and separately, by gid, those of the artists whose gid starts with `PART`: one
        for each marker, or for each line of a collection.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    file = StringIO()
    # `savefig` would draw everything twice.
    FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None})
    root = ElementTree.fromstring(_clean(file.getvalue()))
    rest, parts = [], {}
    for element, gid in _leaves(root, None):
        (rest if gid is None or element.tag == "defs" else parts.setdefault(gid, [])).append(_markup(element))
    return join(*rest), parts


def svg(size: tuple[float, float], children: Sequence[Markup | None], label: str, class_: str) -> Markup:
    """Return an `<svg>` with these elements.

    Args:
        size: The width and the height, in points.
        children: The elements inside. None is left out.
        label: The description for screen readers.
        class_: The CSS class.
    """
    box = f"0 0 {size[0]:g} {size[1]:g}"
    return tag("svg", *children, viewBox=box, role="img", aria_label=label, class_=class_)


def _clean(text: str) -> str:
    """Return an SVG without prologue, metadata, and styles that would affect the rest of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->| xmlns(:xlink)?=\"[^\"]*\"", "", text, flags=re.S
    )
    # Coordinates are rounded to a hundredth of a point. The numbers along the axes are between tags and unaffected.
    return re.sub(r"<[^>]*>", lambda found: _clean_tag(found[0]), re.sub(r">\s+<", "><", text))


def _clean_tag(text: str) -> str:
    text = re.sub(r"([:;]) |(\.\d{2})\d+|\s*\n", r"\1\2", text).replace("xlink:href", "href")
    text = re.sub(r"font(-size|-family|-weight)?:[^;\"]*;?| transform=\"rotate\(-0 [^\"]*\"", "", text)
    return re.sub(r"#0101([0-9a-f]{2})", lambda found: _NAMES[int(found[1], 16)], text)


def _leaves(element: ElementTree.Element, gid: str | None) -> Iterator[tuple[ElementTree.Element, str | None]]:
    """Yield the elements that groups contain, unless a group clips them, with the gid of their part."""
    if element.tag == "g":
        own = element.attrib.pop("id", "")  # it is the same in every figure
        gid = own if own.startswith(PART) else gid
    if element.tag != "svg" and (element.tag != "g" or element.attrib):
        yield element, gid
        return
    for child in element:
        yield from _leaves(child, gid)


def _markup(element: ElementTree.Element) -> Markup:
    element.tail = None
    return Markup(ElementTree.tostring(element, encoding="unicode"))
