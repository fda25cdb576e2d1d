"""Attention maps as handwritten SVG, so that the browser's fonts can draw symbols of any script along the axes."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from attnlab.console import shade
from attnlab.lab.reporting.markup import Markup, tag

CELL = 22
LEVELS = 20
LONGEST = 120  # how many positions are drawn on each axis
WIDEST = 18  # characters of a symbol next to a map
_SHOWN = {"\n": "⏎", "\t": "⇥", "\u00a0": "⍽", "\u202f": "⍽"}


def heatmap(weights: np.ndarray, source: Sequence[Any], target: Sequence[Any], label: str) -> Markup:
    """Draw a map `[T S]`, the input along the top and the output down the side. Cells show their weight on hover.

    Args:
        weights: The weights `[T S]`. Rows and columns after the first `LONGEST` are left out.
        source: The symbols of the columns.
        target: The symbols of the rows.
        label: The description for screen readers.
    """
    return framed(_cells(weights[:LONGEST, :LONGEST], source, target), source, target, label)


def compact(weights: np.ndarray) -> Markup:
    """Draw the cells of a map `[T S]` for `framed`, without hover texts. The markup is a tenth as long."""
    return tag("g", *_paths(weights[:LONGEST, :LONGEST]), transform=f"scale({CELL})", class_="still")


def framed(cells: Markup | None, source: Sequence[Any], target: Sequence[Any], label: str) -> Markup:
    """Draw the frame of a map with its symbols and cells. A script can fill the empty `<g class="cells">`.

    Args:
        cells: The cells, for example from `compact`, or None for an empty frame.
        source: The symbols of the columns. Those after the first `LONGEST` are left out.
        target: The symbols of the rows, likewise.
        label: The description for screen readers.
    """
    source, target = source[:LONGEST], target[:LONGEST]
    rows, columns = [visible(t) for t in target], [visible(s) for s in source]
    tall = max(map(len, columns)) > 2
    left, top = _left(rows), 12 + 8 * max(map(cell_len, columns)) if tall else 24
    width, height = breadth(source, target), top + CELL * len(rows) + 1
    above = [_column(text, left + CELL * (n + 0.5), top - 6, tall, source[n]) for n, text in enumerate(columns)]
    aside = [_label(text, left - 6, top + CELL * (n + 0.7), "end", target[n]) for n, text in enumerate(rows)]
    return tag(
        "svg",
        tag("title", label),
        tag("g", *above, class_="columns"),
        tag("g", *aside, class_="rows"),
        tag(
            "g",
            _frame(len(rows), len(columns)),
            cells,
            tag("g", class_="cells"),
            transform=f"translate({left} {top})",
        ),
        viewBox=f"0 0 {width} {height}",
        style=f"width:{width}px;min-width:{round(0.7 * width)}px",
        role="img",
        aria_label=label,
        class_="map",
    )


def breadth(source: Sequence[Any], target: Sequence[Any]) -> int:
    """Return the width in pixels of a framed map with these symbols."""
    return _left([visible(t) for t in target[:LONGEST]]) + CELL * min(len(source), LONGEST) + 1


def small(weights: np.ndarray, label: str) -> Markup:
    """Draw a map `[T S]` without symbols, to be placed next to others."""
    weights = weights[:LONGEST, :LONGEST]
    rows, columns = weights.shape
    return tag(
        "svg",
        tag("title", label),
        _frame(rows, columns),
        compact(weights),
        viewBox=f"-1 -1 {CELL * columns + 2} {CELL * rows + 2}",
        role="img",
        aria_label=label,
        class_="small map",
    )


def ramp() -> Markup:
    """Draw the color scale that all maps share."""
    steps = [0.0, 0.05, 0.1, 0.25, 0.5, 1.0]
    boxes = [tag("span", tag("i", style=f"--share:{_shade(w):.0%}"), f"{w:g}", class_="swatch") for w in steps]
    return tag("span", *boxes, class_="ramp", aria_hidden="true")


def visible(token: Any) -> str:
    """Make a token visible as in a terminal. Line ends and tabs get their own signs, and a long token is cut.

    >>> visible(" "), visible("é"), visible("\\u0301"), visible("\\u200f"), visible("<end>")
    ('␣', 'é', '◌́', '·', '<end>')
    """
    text = _SHOWN.get(str(token)) or shade.visible(str(token))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _left(rows: Sequence[str]) -> int:
    return 12 + 8 * max(map(cell_len, rows))


def _shade(weight: float) -> float:
    # The square root makes small weights visible. Otherwise a map spread over thirty positions would look empty.
    return math.sqrt(min(abs(weight), 1.0))


def _cells(weights: np.ndarray, source: Sequence[Any], target: Sequence[Any]) -> Markup:
    places = np.argwhere(np.abs(weights) >= 0.002)
    cells = [_cell(float(weights[t, s]), t, s, f"{target[t]} ← {source[s]}") for t, s in places]
    return tag("g", *cells)


def _cell(weight: float, t: int, s: int, where: str) -> Markup:
    return tag(
        "rect",
        tag("title", f"{where}  {round(weight, 3) + 0.0:.3f}"),
        x=CELL * s,
        y=CELL * t,
        width=CELL,
        height=CELL,
        fill_opacity=f"{_shade(weight):.2f}",
        class_="less" if weight < 0 else None,
    )


def _paths(weights: np.ndarray) -> list[Markup]:
    """Draw a path for each shade. Adjacent cells of one shade in a row are one stroke."""
    levels = np.rint(np.sqrt(np.minimum(np.abs(weights), 1)) * LEVELS) * np.sign(weights)
    return [
        tag(
            "path",
            d="".join(f"M{s} {t}.5h{length}" for t, s, length in _runs(levels == level)),
            stroke_opacity=f"{abs(level) / LEVELS:.2f}",
            class_="less" if level < 0 else None,
        )
        for level in np.unique(levels)
        if level
    ]


def _runs(marked: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield the row, column and length of each run of marked cells `[T S]`."""
    edges = np.diff(np.pad(marked.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    (rows, starts), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    yield from zip(rows.tolist(), starts.tolist(), (ends - starts).tolist(), strict=True)


def _frame(rows: int, columns: int) -> Markup:
    return tag("rect", x=-0.5, y=-0.5, width=CELL * columns + 1, height=CELL * rows + 1, class_="frame")


def _column(text: str, x: float, y: float, tall: bool, token: Any) -> Markup:
    turned = f"rotate(-90 {x:g} {y:g}) translate(0 4)" if tall else None
    return _label(text, x, y, "start" if tall else "middle", token, turned)


def _label(text: str, x: float, y: float, anchor: str, token: Any, transform: str | None = None) -> Markup:
    place = {"x": f"{x:g}", "y": f"{y:g}", "text_anchor": anchor, "transform": transform}
    return tag("text", tag("title", _names(str(token))), text, **place)


def _names(token: str) -> str:
    """Return the hover text of a label: the Unicode names of a short one, the full text of a long one."""
    if len(token) > 3:
        return token
    return ", ".join(f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".strip() for letter in token)
