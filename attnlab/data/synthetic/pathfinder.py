"""Pathfinder: dashed curves and two dots. The task is to decide if the dots are on one curve (Linsley et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LONG, GAP = 2.0, 2.0  # pixels from the first to the last pixel centre of a dash, and from there to the next dash
BEND = 0.9  # the largest turn from one dash to the next, in radians
CLEAR = 4.0  # the least distance between curves, in pixels
MARGIN = 1  # width of the border, in pixels, that is free of curves but not of dots
POINTS = 4  # number of points that are drawn for a dash
TRIES = (1, 3, 6, 14)  # numbers of candidates for a curve, drawn together, before its image is given up
AT_ONCE, AGAIN = 128, 4  # images drawn together; attempts at an image with separate dots for each with joined dots
BARREN = 16  # rounds without any success after which drawing is given up


def draw(
    random: np.random.Generator, size: int, side: int, dashes: int, distractors: int, patience: float = BARREN
) -> tuple[np.ndarray, np.ndarray]:
    """Draws images of curves and dots.

    An image has two curves of `dashes` dashes, and `distractors` curves of a third as many. No two are nearer than
    `CLEAR`. They bend at random, by up to `BEND` between two dashes. The dots are 3 × 3 pixels. They are on both ends
    of one of the two long curves, or on one end of each. For each image with joined dots there is one with separate
    dots at the same positions, so that the positions of the dots are not informative.

    Args:
      random: the generator.
      size: number of images N.
      side: height and width in pixels.
      dashes: number of dashes of the two long curves.
      distractors: number of short curves.
      patience: number of rounds in a row, of `AT_ONCE` images each, that may fail.

    Returns:
      The images [N side side] uint8, 0 or 255, and whether the dots are joined [N] int32. Half of these are 1.

    Raises:
      ValueError: if the images have no room for the curves, so that `patience` rounds in a row fail.
    """
    counts = [dashes, dashes, *[-(-dashes // 3)] * distractors]
    half = -(-size // 2)
    found, count, barren = [], 0, 0
    while count < half and barren < patience:
        joined, _ = _laid(random, AT_ONCE, side, counts)
        ends = np.stack([curve[:, [0, -1]] for curve in joined[:2]])  # [curve N end 2]
        dots = ends[random.integers(2, size=ends.shape[1]), np.arange(ends.shape[1])]
        separate, rows = _laid(random, AGAIN * len(dots), side, counts, np.tile(dots, (AGAIN, 1, 1)))
        # Several attempts may succeed for one image with joined dots. Keep the first.
        rows, first = np.unique(rows % max(1, len(dots)), return_index=True)
        curves = [curve[first] for curve in separate], [curve[rows] for curve in joined]
        found.append(np.stack([_drawn(each, dots[rows], side) for each in curves], axis=1))
        count, barren = count + len(rows), 0 if len(rows) else barren + 1
    if count < half:
        raise ValueError(f"images of {side} × {side} pixels have no room for curves of {counts} dashes")
    # If the number of images is odd, the image that is left out of the last pair is chosen at random.
    labels = random.permuted(np.tile(np.arange(2, dtype=np.int32), (half, 1)), axis=1)
    images = np.concatenate(found)[np.arange(half)[:, None], labels]
    order = random.permutation(size)
    return images.reshape(-1, side, side)[:size][order], labels.ravel()[:size][order]


def _laid(
    random: np.random.Generator, size: int, side: int, counts: Sequence[int], starts: np.ndarray | None = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Draws the curves of images.

    Args:
      random: the generator.
      size: number of images to try.
      side: height and width in pixels.
      counts: number of dashes of each curve.
      starts: if given [size 2 2], the positions at which the first two curves begin.

    Returns:
      The points of each curve, [N dashes·POINTS 2], for the N images that succeeded, and the indices of these images.
    """
    laid: list[np.ndarray] = []
    rows = np.arange(size)
    for n, count in enumerate(counts):
        points = np.zeros((rows.size, count * POINTS, 2), np.float32)
        before = np.concatenate([np.zeros((rows.size, 0, 2), np.float32), *laid], axis=1)
        left = np.arange(rows.size)
        # Redraw only the curves that failed, with more candidates each time.
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
    """Draws the points of curves that begin at zero [size count·POINTS 2]."""
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
    """Moves curves to `start` [N 2], or to uniformly random positions at which they are inside of the image.

    Returns:
      The moved points, and the indices of the curves that are inside.
    """
    by_point = np.ascontiguousarray(points.transpose(1, 0, 2))  # reducing the first axis is faster than a middle one
    low, high = by_point.min(axis=0), by_point.max(axis=0)
    room = side - 1 - 2 * MARGIN - (high - low)
    # Every curve begins at zero, so moving it by `start` makes it begin there.
    moved = MARGIN - low + random.random(low.shape, np.float32) * room if start is None else start
    inside = (low + moved >= MARGIN) & (high + moved <= side - 1 - MARGIN)
    return points + moved[:, None], np.flatnonzero(inside.all(axis=1))


def _clear(points: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Returns whether each curve [N] is clear of earlier curves, and of its own dashes except neighbouring ones."""
    clear = np.logical_not(_near(points, before).any(axis=(1, 2)))
    dash = np.arange(points.shape[1]) // POINTS
    own = _near(points[clear], points[clear]) & (np.abs(dash[:, None] - dash) >= 2)
    clear[clear] = ~own.any(axis=(1, 2))
    return clear


def _near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns which points of one curve are nearer than `CLEAR` to which points of another [N P Q]."""
    y, x = ((one[:, :, None, n] - other[:, None, :, n]) ** 2 for n in (0, 1))
    return y + x < CLEAR**2


def _drawn(curves: list[np.ndarray], dots: np.ndarray, side: int) -> np.ndarray:
    """Draws curves and dots as images [M side side]."""
    images = np.zeros((len(dots), side, side), np.uint8)
    around = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(9, 2)
    blocks = (np.rint(dots)[:, :, None] + around).reshape(len(dots), 18, 2)
    points = np.concatenate([*map(np.rint, curves), blocks], axis=1).astype(np.int64)
    images[np.arange(len(dots))[:, None], points[..., 0], points[..., 1]] = 255
    return images
