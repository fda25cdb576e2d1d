"""Place the names of points so that they do not overlap: next to the point, moved up or down as far as needed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

LETTER = 7.2  # width of a letter in pixels, at the font size of figures
LINE = 13.0  # height of a line in pixels
GAP = 9.0  # pixels between a point and its name
DOT = 5.0
LONGEST = 18
FAR = 120.0  # pixels from its point at which a name is not written, less if it hides something there
SIDES = np.tile([1, -1], 61)
SHIFTS = np.repeat(6.0 * np.arange(-30, 31), 2)

Boxes = Float[np.ndarray, "N 4"]  # left, top, right and bottom


@dataclass(frozen=True)
class Spot:
    """The position of a name relative to its point."""

    side: int
    """−1 for left of the point, 1 for right."""
    shift: float
    """Pixels below the point."""


def place(
    points: Sequence[tuple[float, float]],
    reaches: Sequence[tuple[float, float]],
    names: Sequence[str],
    width: float,
    top: float,
    bottom: float,
) -> list[Spot | None]:
    """Choose a position for the name of each point, inside 0 … width and top … bottom.

    It is the nearest position that touches no other name and no point. Intervals are avoided if that needs no large
    shift. A name for which every position touches another name, or is far away or hides much, has none.

    Args:
        points: The points (x, y) in pixels.
        reaches: The highest and lowest pixel of each point's interval.
        names: The names.
        width, top, bottom: The limits in pixels.
    """
    dots = np.array([(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points])
    lines = np.array([(x - DOT, low, x + DOT, high) for (x, _), (low, high) in zip(points, reaches, strict=True)])
    spots: list[Spot | None] = [None] * len(points)
    taken = np.empty((0, 4))
    for n in sorted(range(len(points)), key=lambda n: points[n][1]):
        boxes = _boxes(points[n], wide(names[n]))
        left, high, right, low = boxes.T
        inside = (high >= top) & (low <= bottom)
        hidden = _overlap(boxes, taken) + LINE * (np.maximum(-left, 0) + np.maximum(right - width, 0))
        others = np.arange(len(points)) != n
        crossed = 2 * _overlap(boxes, dots[others]) + 0.15 * _overlap(boxes, lines[others]) + abs(SHIFTS)
        best = np.lexsort((crossed + (SIDES < 0), hidden, ~inside))[0]
        if inside[best] and crossed[best] < FAR and not _overlap(boxes[[best]], taken)[0]:
            spots[n] = Spot(int(SIDES[best]), float(SHIFTS[best]))
            taken = np.vstack([taken, boxes[best]])
    return spots


def short(name: str) -> str:
    """Shorten a name to fit into a figure, and replace what cannot be drawn."""
    shown = "".join(letter if letter.isprintable() else "·" for letter in name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def wide(text: str) -> float:
    """Estimate the width of a text in pixels. East Asian wide characters count twice."""
    return LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _boxes(point: tuple[float, float], length: float) -> Boxes:
    """Return the box of a name on each side and with each shift."""
    left = np.where(SIDES > 0, point[0] + GAP, point[0] - GAP - length)
    top = point[1] + SHIFTS - LINE / 2
    return np.stack([left, top, left + length, top + LINE], axis=1)


def _overlap(boxes: Boxes, others: Boxes) -> Float[np.ndarray, " N"]:
    """Return the area of each box that other boxes cover."""
    # Most others are far from all boxes.
    near = (others[:, :2] < boxes[:, 2:].max(0)).all(1) & (others[:, 2:] > boxes[:, :2].min(0)).all(1)
    low = np.maximum(boxes[:, None, :2], others[None, near, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, near, 2:])
    return np.maximum(high - low, 0).prod(-1).sum(-1)
