"""Draw an attention map with characters. Rows are the output's symbols, columns the input's."""

from collections.abc import Sequence
from unicodedata import category

import numpy as np
from rich.cells import cell_len

SHADES = " ░▒▓█"


def draw(source: Sequence[str], target: Sequence[str], weights, width: int | None = None) -> list[str]:
    """Draw a map as lines of text. The darkest shade is the largest weight.

    Columns are as wide as their symbols, separated by a space if a symbol has more than one character.

    Args:
        source: The symbols of the columns, S of them.
        target: The symbols of the rows, T of them.
        weights: The map `[.. T S]`. Leading axes (layers, heads) are averaged.
        width: The maximum width in terminal cells. A wider map continues below. None sets no limit.

    Raises:
        ValueError: The shape of the map does not fit the symbols.
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
    available = None if width is None else width - margin - 1 + len(between)
    for start, stop in _blocks([cell_len(c) + len(between) for c in columns], available):
        lines += [""] if lines else []
        lines.append(" " * (margin + 1) + between.join(columns[start:stop]))
        for row, shaded in zip(rows, shades, strict=True):
            cells = (shaded[n] * cell_len(columns[n]) for n in range(start, stop))
            lines.append((row + " " * (margin - cell_len(row)) + " " + between.join(cells)).rstrip())
    return lines


def visible(symbol: str) -> str:
    """Make a symbol visible: a space becomes ␣, a combining mark gets a dotted circle, the invisible becomes ·.

    >>> visible(" "), visible(" dog"), visible("\u0301"), visible("\x1b[m")
    ('␣', '␣dog', '◌́', '·[m')
    """
    symbol = "".join("␣" if c.isspace() else c if c.isprintable() else "·" for c in symbol)
    if symbol and category(symbol[0])[0] == "M":
        symbol = "◌" + symbol
    return symbol if cell_len(symbol) else "·"


def _shades(weights: np.ndarray) -> list[list[str]]:
    # Negative weights and weights that are not finite are drawn as zero.
    weights = np.where(np.isfinite(weights), weights, 0).clip(min=0)
    levels = np.round(weights / (weights.max(initial=0) or 1) * (len(SHADES) - 1)).astype(int)
    return [[SHADES[level] for level in row] for row in levels]


def _blocks(widths: Sequence[int], available: int | None) -> list[tuple[int, int]]:
    """Split the columns into ranges (start, stop) that fit the available width, with at least one column each."""
    blocks, start, used = [], 0, 0
    for n, width in enumerate(widths):
        if available is not None and n > start and used + width > available:
            blocks.append((start, n))
            start, used = n, 0
        used += width
    return [*blocks, (start, len(widths))]
