"""Pathfinder: dashed curves among others, and two dots. Do they lie on one curve? (Linsley et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LONG, GAP = 2.0, 2.0  # pixels from the middle of a dash's first pixel to that of its last, and on to the next
BEND = 0.9  # radians that a curve turns by at the most, from dash to dash
CLEAR = 4.0  # pixels that curves keep off each other
MARGIN = 1  # pixels at the border that no curve reaches: a dot does
POINTS = 4  # points by which a dash is drawn
TRIES = 24  # times that a curve is drawn before its image is given up
NEAR = 1.0  # pixels between two distances of dots that count as one
AT_ONCE = 128  # images that are tried together, to be paired
BARREN = 16  # times that no pair is found among them before all is given up


def draw(
    random: np.random.Generator, size: int, side: int, dashes: int, distractors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Images [N side side] uint8, 0 or 255, and whether the dots are joined [N] int32, of one half of them 1.

    Two curves of `dashes` dashes and `distractors` of a third as many, none nearer to another than `CLEAR`; they bend
    at random, by up to `BEND` between two dashes. The dots, 3 × 3 pixels, lie on both ends of one of the two, or on an
    end of each. What is drawn before is alike for both answers, and to each image with dots that are joined belongs one
    whose dots, not joined, are as far apart: what tells them apart is the curve. Raises ValueError where the images
    have no room.
    """
    counts = [dashes, dashes, *[-(-dashes // 3)] * distractors]
    half = -(-size // 2)
    found, count, barren = [], 0, 0
    while count < half and barren < BARREN:
        curves = _laid(random, AT_ONCE, side, counts)
        rows, dots = _dotted(random, curves)
        images = _drawn([curve[rows.ravel()] for curve in curves], dots.reshape(-1, 2, 2), side)
        found.append(images.reshape(-1, 2, side, side))
        count, barren = count + len(rows), 0 if len(rows) else barren + 1
    if count < half:
        raise ValueError(f"images of {side} × {side} pixels have no room for curves of {counts} dashes")
    # Of an odd number, the last is joined or not by chance.
    labels = random.permuted(np.tile(np.arange(2, dtype=np.int32), (half, 1)), axis=1)
    images = np.concatenate(found)[np.arange(half)[:, None], labels]
    order = random.permutation(size)
    return images.reshape(-1, side, side)[:size][order], labels.ravel()[:size][order]


def _laid(random: np.random.Generator, size: int, side: int, counts: Sequence[int]) -> list[np.ndarray]:
    """The curves of as many images as could be filled of `size`: of each the points [N dashes·POINTS 2]."""
    laid: list[np.ndarray] = []
    for count in counts:
        points = np.zeros((size, count * POINTS, 2), np.float32)
        before = np.concatenate([np.zeros((size, 0, 2), np.float32), *laid], axis=1)
        left = np.arange(size)
        for _ in range(TRIES):
            drawn = _placed(random, _bent(random, left.size, count), side)
            good = _clear(drawn, before[left])
            points[left[good]] = drawn[good]
            left = left[~good]
        kept = np.setdiff1d(np.arange(size), left)
        laid, size = [curve[kept] for curve in [*laid, points]], kept.size
    return laid


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


def _placed(random: np.random.Generator, points: np.ndarray, side: int) -> np.ndarray:
    """The curves moved to where they lie wholly inside, evenly; NaN where there is no such place."""
    low, high = points.min(axis=1), points.max(axis=1)
    room = side - 1 - 2 * MARGIN - (high - low)
    moved = MARGIN - low + random.random(low.shape, np.float32) * room
    return np.where((room >= 0).all(axis=1)[:, None, None], points + moved[:, None], np.float32(np.nan))


def _clear(points: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Whether a curve lies inside, clear of those before it and, from a dash to the next but one, of itself; [N]."""
    dash = np.arange(points.shape[1]) // POINTS
    own = _near(points, points) & (np.abs(dash[:, None] - dash) >= 2)
    return ~(np.isnan(points).any(axis=(1, 2)) | own.any(axis=(1, 2)) | _near(points, before).any(axis=(1, 2)))


def _near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which points of one are nearer than `CLEAR` to which of the other, [N P Q]."""
    y, x = ((one[:, :, None, n] - other[:, None, :, n]) ** 2 for n in (0, 1))
    return y + x < CLEAR**2


def _dotted(random: np.random.Generator, curves: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of images [M 2], the dots of the first apart and those of the second joined; where they are [M 2 2 2].

    Half of the images get joined dots; those of the other half, on that pair of ends, one of each curve, which is as
    far apart as the joined dots of a partner: in all as near to each other as can be, and no further than `NEAR`.
    """
    from scipy.optimize import linear_sum_assignment

    ends = np.stack([curve[:, [0, -1]] for curve in curves[:2]], axis=1)  # [N curve end 2]
    half = len(ends) // 2
    apart = np.stack([ends[:half, 0, [0, 0, 1, 1]], ends[:half, 1, [0, 1, 0, 1]]], axis=2)  # [N pair dot 2]
    joined = ends[half : 2 * half][np.arange(half), random.integers(2, size=half)]  # [N dot 2]
    off = np.abs(_between(apart)[:, None] - _between(joined)[None, :, None])  # [N N pair]
    rows, partners = linear_sum_assignment(off.min(axis=2))
    pair = off[rows, partners].argmin(axis=1)
    near = off[rows, partners, pair] < NEAR
    rows, partners, pair = rows[near], partners[near], pair[near]
    return np.stack([rows, half + partners], axis=1), np.stack([apart[rows, pair], joined[partners]], axis=1)


def _between(dots: np.ndarray) -> np.ndarray:
    """How far apart two dots are."""
    return np.linalg.norm(dots[..., 0, :] - dots[..., 1, :], axis=-1)


def _drawn(curves: list[np.ndarray], dots: np.ndarray, side: int) -> np.ndarray:
    """The images [M side side]."""
    images = np.zeros((len(dots), side, side), np.uint8)
    around = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(9, 2)
    blocks = (np.rint(dots)[:, :, None] + around).reshape(len(dots), 18, 2)
    points = np.concatenate([*map(np.rint, curves), blocks], axis=1).astype(np.int64)
    images[np.arange(len(dots))[:, None], points[..., 0], points[..., 1]] = 255
    return images
