"""Average precision of boxes that were found, as COCO's evaluator defines it (Lin et al. 2014; pycocotools)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnlab.tasks.vision.boxes import iou

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
ROUNDING = 1e-5  # of an IoU: float32 has that of small boxes to some millionths, and a half is to count as a half
MOST = 100  # boxes of a class that count in one image, those of the highest scores


class Marks(NamedTuple):
    """Of one image: boxes [N 4] (left, top, right, bottom), the class of each [N], and a score [N] if it was found."""

    corners: np.ndarray
    labels: np.ndarray
    scores: np.ndarray = np.zeros(0)


def average_precision(
    found: Sequence[Marks], truth: Sequence[Marks], classes: int, thresholds: np.ndarray = THRESHOLDS
) -> np.ndarray:
    """[thresholds, classes]: the area under each class's curve of precision against recall, over all images.

    The boxes found in an image, best score first, each take the truth of their class that they lie on most among those
    not taken yet, if their IoU with it reaches the threshold, but for rounding: each truth once, what is left over is
    wrong. Precision at a recall is the best at it or beyond, 0 where it is never reached, and the area the mean over
    the recalls 0, .01 … 1. NaN for a class of which there is no truth.
    """
    return np.stack([_of(label, found, truth, thresholds) for label in range(classes)], axis=1)


def _of(label: int, found: Sequence[Marks], truth: Sequence[Marks], thresholds: np.ndarray) -> np.ndarray:
    """The average precision of one class [thresholds]."""
    count, scores, right = 0, [np.zeros(0)], [np.zeros((len(thresholds), 0), bool)]
    for seen, there in zip(found, truth, strict=True):
        true = there.corners[there.labels == label]
        best = np.flatnonzero(seen.labels == label)
        best = best[np.argsort(-seen.scores[best], kind="stable")[:MOST]]
        count += len(true)
        scores.append(seen.scores[best])
        right.append(matched(iou(seen.corners[best], true), thresholds))
    if not count:
        return np.full(len(thresholds), np.nan)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    return np.array([_area(row[order], count) for row in np.concatenate(right, axis=1)])


def matched(overlaps: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Which of N boxes, best first, take a truth of theirs: overlaps [N M] -> [thresholds, N]."""
    right = np.zeros((len(thresholds), len(overlaps)), bool)
    for row, threshold in zip(right, thresholds, strict=True):
        free = np.ones(overlaps.shape[1], bool)
        for n, over in enumerate(overlaps):
            # Of several as good the last, as the published evaluator has it.
            best = max(np.flatnonzero(free), key=lambda m: (over[m], m), default=None)
            if best is not None and over[best] >= threshold - ROUNDING:
                row[n], free[best] = True, False
    return right


def _area(right: np.ndarray, count: int) -> float:
    """The mean precision over the recalls, of boxes that are right or wrong, best first, where there are `count`."""
    hits = right.cumsum()
    precision = hits / np.arange(1, len(right) + 1)
    best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(hits / count, RECALLS, side="left")].mean())
