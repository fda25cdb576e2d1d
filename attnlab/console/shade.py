"""An attention map drawn in characters: rows are the output's characters, columns the input's."""

from collections.abc import Sequence
from unicodedata import category

import numpy as np
from rich.cells import cell_len

SHADES = " ░▒▓█"


def draw(source: Sequence[str], target: Sequence[str], weights, width: int | None = None) -> list[str]:
    """The map [.. T S] as lines, leading axes (layers, heads) averaged; darkest is the largest weight.

    Columns are as wide as their symbols are on a terminal, with a blank between them where one is longer than a
    character. Where all of them are wider than `width` cells, the map continues below.
    Raises ValueError for a map of another shape.
    """
    weights = np.asarray(weights, float)
    weights = weights.mean(axis=tuple(range(weights.ndim - 2)))
    columns, rows = [visible(c) for c in source], [visible(c) for c in target]
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(f"a map of shape {weights.shape} does not fit {len(rows)} rows and {len(columns)} columns")
    shades = _shades(weights)
    between = " " if any(len(c) > 1 for c in source) else ""
    margin = max(map(cell_len, rows), default=0)
    lines = []
    room = None if width is None else width - margin - 1 + len(between)
    for start, stop in _blocks([cell_len(c) + len(between) for c in columns], room):
        lines += [""] if lines else []
        lines.append(" " * (margin + 1) + between.join(columns[start:stop]))
        for row, shaded in zip(rows, shades, strict=True):
            cells = (shaded[n] * cell_len(columns[n]) for n in range(start, stop))
            lines.append((row + " " * (margin - cell_len(row)) + " " + between.join(cells)).rstrip())
    return lines


def visible(symbol: str) -> str:
    """A symbol that takes a cell: a blank as ␣, a mark that combines on a dotted circle, what cannot be seen as ·.

    >>> visible(" "), visible(" dog"), visible("\u0301"), visible("\x1b[m")
    ('␣', '␣dog', '◌́', '·[m')
    """
    symbol = "".join("␣" if c.isspace() else c if c.isprintable() else "·" for c in symbol)
    if symbol and category(symbol[0])[0] == "M":
        symbol = "◌" + symbol
    return symbol if cell_len(symbol) else "·"


def _shades(weights: np.ndarray) -> list[list[str]]:
    # A signed or diverged map is drawn as far as it can be.
    weights = np.where(np.isfinite(weights), weights, 0).clip(min=0)
    levels = np.round(weights / (weights.max(initial=0) or 1) * (len(SHADES) - 1)).astype(int)
    return [[SHADES[level] for level in row] for row in levels]


def _blocks(widths: Sequence[int], room: int | None) -> list[tuple[int, int]]:
    """Runs of columns (start, stop) that fit the room; at least one column each."""
    blocks, start, used = [], 0, 0
    for n, width in enumerate(widths):
        if room is not None and n > start and used + width > room:
            blocks.append((start, n))
            start, used = n, 0
        used += width
    return [*blocks, (start, len(widths))]
