"""Pathfinder: dashed curves among others, and two dots. Do they lie on one curve? (Linsley et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LONG, GAP = 2.0, 2.0  # pixels from the middle of a dash's first pixel to that of its last, and on to the next
BEND = 0.9  # radians that a curve turns by at the most, from dash to dash
CLEAR = 4.0  # pixels that curves keep off each other
MARGIN = 1  # pixels at the border that no curve reaches: a dot does
POINTS = 4  # points by which a dash is drawn
TRIES = (1, 3, 6, 14)  # times that a curve is drawn before its image is given up: once, then so many at once
AT_ONCE, AGAIN = 128, 4  # pairs of images that are tried together; images with dots apart for each with joined ones
BARREN = 16  # times that none of them succeeds before all is given up


def draw(
    random: np.random.Generator, size: int, side: int, dashes: int, distractors: int, patience: float = BARREN
) -> tuple[np.ndarray, np.ndarray]:
    """Images [N side side] uint8, 0 or 255, and whether the dots are joined [N] int32, of one half of them 1.

    Two curves of `dashes` dashes and `distractors` of a third as many, none nearer to another than `CLEAR`; they bend
    at random, by up to `BEND` between two dashes. The dots, 3 × 3 pixels, lie on both ends of one of the two, or on an
    end of each. To each image with dots that are joined belongs another one whose dots, not joined, lie at the very
    same places: where they are tells nothing of the answer. Raises ValueError where the images have no room: where
    `patience` times on end none of `AT_ONCE` could be drawn.
    """
    counts = [dashes, dashes, *[-(-dashes // 3)] * distractors]
    half = -(-size // 2)
    found, count, barren = [], 0, 0
    while count < half and barren < patience:
        joined, _ = _laid(random, AT_ONCE, side, counts)
        ends = np.stack([curve[:, [0, -1]] for curve in joined[:2]])  # [curve N end 2]
        dots = ends[random.integers(2, size=ends.shape[1]), np.arange(ends.shape[1])]
        apart, rows = _laid(random, AGAIN * len(dots), side, counts, np.tile(dots, (AGAIN, 1, 1)))
        rows, first = np.unique(rows % max(1, len(dots)), return_index=True)
        curves = [curve[first] for curve in apart], [curve[rows] for curve in joined]
        found.append(np.stack([_drawn(each, dots[rows], side) for each in curves], axis=1))
        count, barren = count + len(rows), 0 if len(rows) else barren + 1
    if count < half:
        raise ValueError(f"images of {side} × {side} pixels have no room for curves of {counts} dashes")
    # Of an odd number, the last is joined or not by chance.
    labels = random.permuted(np.tile(np.arange(2, dtype=np.int32), (half, 1)), axis=1)
    images = np.concatenate(found)[np.arange(half)[:, None], labels]
    order = random.permutation(size)
    return images.reshape(-1, side, side)[:size][order], labels.ravel()[:size][order]


def _laid(
    random: np.random.Generator, size: int, side: int, counts: Sequence[int], starts: np.ndarray | None = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """The curves of as many images as could be filled of `size`, of each the points [N dashes·POINTS 2]; which images.

    Where `starts` [size 2 2] are given, the first curve of an image begins at the one, the second at the other.
    """
    laid: list[np.ndarray] = []
    rows = np.arange(size)
    for n, count in enumerate(counts):
        points = np.zeros((rows.size, count * POINTS, 2), np.float32)
        before = np.concatenate([np.zeros((rows.size, 0, 2), np.float32), *laid], axis=1)
        left = np.arange(rows.size)
        for tries in TRIES:
            asked = np.repeat(left, tries)
            start = None if starts is None or n >= 2 else starts[rows[asked], n]
            drawn, inside = _placed(random, _bent(random, asked.size, count), side, start)
            good = inside[_clear(drawn[inside], before[asked[inside]])]
            found, first = np.unique(asked[good], return_index=True)
            points[found] = drawn[good[first]]
            left = np.setdiff1d(left, found)
        kept = np.setdiff1d(np.arange(rows.size), left)
        laid, rows = [curve[kept] for curve in [*laid, points]], rows[kept]
    return laid, rows


def _bent(random: np.random.Generator, size: int, count: int) -> np.ndarray:
    """The points of curves, each beginning at zero, [N count·POINTS 2]."""
    turns = random.uniform(-BEND, BEND, (size, count))
    turns[:, 0] = random.uniform(0, 2 * np.pi, size)
    angles = np.cumsum(turns, axis=1)
    ahead = np.stack([np.sin(angles), np.cos(angles)], axis=2)
    # A curve turns in the middle of a gap.
    steps = LONG * ahead[:, :-1] + GAP / 2 * (ahead[:, :-1] + ahead[:, 1:])
    starts = np.concatenate([np.zeros((size, 1, 2)), np.cumsum(steps, axis=1)], axis=1)
    points = starts[:, :, None] + np.linspace(0, LONG, POINTS)[:, None] * ahead[:, :, None]
    return points.reshape(size, count * POINTS, 2).astype(np.float32)


def _placed(
    random: np.random.Generator, points: np.ndarray, side: int, start: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The curves moved to `start` [N 2], or evenly to where they lie wholly inside; which of them do."""
    by_point = np.ascontiguousarray(points.transpose(1, 0, 2))  # numpy is slow along a short axis in the middle
    low, high = by_point.min(axis=0), by_point.max(axis=0)
    room = side - 1 - 2 * MARGIN - (high - low)
    # Every curve begins at zero.
    moved = MARGIN - low + random.random(low.shape, np.float32) * room if start is None else start
    inside = (low + moved >= MARGIN) & (high + moved <= side - 1 - MARGIN)
    return points + moved[:, None], np.flatnonzero(inside.all(axis=1))


def _clear(points: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Whether a curve is clear of those before it and, from a dash to the next but one, of itself; [N]."""
    clear = np.logical_not(_near(points, before).any(axis=(1, 2)))
    dash = np.arange(points.shape[1]) // POINTS
    own = _near(points[clear], points[clear]) & (np.abs(dash[:, None] - dash) >= 2)
    clear[clear] = ~own.any(axis=(1, 2))
    return clear


def _near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which points of one are nearer than `CLEAR` to which of the other, [N P Q]."""
    y, x = ((one[:, :, None, n] - other[:, None, :, n]) ** 2 for n in (0, 1))
    return y + x < CLEAR**2


def _drawn(curves: list[np.ndarray], dots: np.ndarray, side: int) -> np.ndarray:
    """The images [M side side]."""
    images = np.zeros((len(dots), side, side), np.uint8)
    around = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(9, 2)
    blocks = (np.rint(dots)[:, :, None] + around).reshape(len(dots), 18, 2)
    points = np.concatenate([*map(np.rint, curves), blocks], axis=1).astype(np.int64)
    images[np.arange(len(dots))[:, None], points[..., 0], points[..., 1]] = 255
    return images
