"""Place the names of points so that they do not overlap: next to the point, moved up or down as far as needed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LETTER = 6.6  # width of a letter in pixels, at the font size of figures
LINE = 13.0  # height of a line in pixels
GAP = 9.0  # pixels between a point and its name
DOT = 5.0
LONGEST = 18

Box = tuple[float, float, float, float]


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
) -> list[Spot]:
    """Choose a position for the name of each point, inside 0 … width and top … bottom.

    It is the nearest position that touches no other name and no point. If there is none, it is the one with the least
    overlap. Intervals are avoided if that needs no large shift.

    Args:
        points: The points (x, y) in pixels.
        reaches: The highest and lowest pixel of each point's interval.
        names: The names.
        width, top, bottom: The limits in pixels.
    """
    dots = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    lines = [(x - DOT, low, x + DOT, high) for (x, _), (low, high) in zip(points, reaches, strict=True)]
    spots: dict[int, Spot] = {}
    taken: list[Box] = []
    for n in sorted(range(len(points)), key=lambda n: points[n][1]):
        options = [Spot(side, 6.0 * step) for step in range(-30, 31) for side in (1, -1)]
        boxes = {spot: _box(points[n], names[n], spot) for spot in options}
        inside = [spot for spot, box in boxes.items() if box[1] >= top and box[3] <= bottom] or options
        other_dots = dots[:n] + dots[n + 1 :]
        other_lines = lines[:n] + lines[n + 1 :]

        def cost(spot: Spot, boxes=boxes, dots=other_dots, lines=other_lines) -> tuple[float, float]:
            box = boxes[spot]
            out = max(-box[0], 0) + max(box[2] - width, 0)
            hidden = sum(_overlap(box, other) for other in taken) + LINE * out
            crossed = 2 * sum(_overlap(box, dot) for dot in dots) + 0.15 * sum(_overlap(box, line) for line in lines)
            return hidden, crossed + abs(spot.shift) + (spot.side < 0)

        spots[n] = min(inside, key=cost)
        taken.append(boxes[spots[n]])
    return [spots[n] for n in range(len(points))]


def short(name: str) -> str:
    """Shorten a name to fit into a figure."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def wide(text: str) -> float:
    """Estimate the width of a text in pixels. East Asian wide characters count twice."""
    return LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _box(point: tuple[float, float], name: str, spot: Spot) -> Box:
    (x, y), length = point, wide(name)
    start = x + GAP if spot.side > 0 else x - GAP - length
    return start, y + spot.shift - LINE / 2, start + length, y + spot.shift + LINE / 2


def _overlap(a: Box, b: Box) -> float:
    wide, tall = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0.0) * max(tall, 0.0)
