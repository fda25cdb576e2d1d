"""Average precision of predicted boxes, as COCO's evaluator defines it (Lin et al. 2014; pycocotools)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnlab.tasks.vision.boxes import iou

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
ROUNDING = 1e-5  # tolerance of an IoU: its error in float32 is some 1e-6 for small boxes, and 0.5 must count as 0.5
MOST = 100  # the boxes of a class with the highest scores that count in one image


class Marks(NamedTuple):
    """The boxes of one image."""

    corners: np.ndarray
    """The boxes (left, top, right, bottom), [N 4]."""
    labels: np.ndarray
    """The class of each box, [N]."""
    scores: np.ndarray = np.zeros(0)
    """The score of each predicted box, [N]. True boxes have none."""


def average_precision(
    found: Sequence[Marks], truth: Sequence[Marks], classes: int, thresholds: np.ndarray = THRESHOLDS
) -> np.ndarray:
    """Computes the area under each class's curve of precision against recall, over all images.

    The predicted boxes of an image are processed by descending score. Each takes the true box of its class with the
    largest IoU among those not taken yet, if that IoU reaches the threshold up to rounding. Each true box is taken
    once, and the remaining predictions are wrong.

    The precision at a recall is the best one at this recall or a higher one, and 0 if the recall is never reached. The
    area is the mean over the recalls 0, .01 … 1.

    Args:
        found: The predicted boxes of each image.
        truth: The true boxes of each image.
        classes: The number of classes.
        thresholds: The IoU thresholds.

    Returns:
        The average precision [thresholds, classes], NaN for a class without true boxes.
    """
    return np.stack([_of(label, found, truth, thresholds) for label in range(classes)], axis=1)


def _of(label: int, found: Sequence[Marks], truth: Sequence[Marks], thresholds: np.ndarray) -> np.ndarray:
    """Returns the average precision of one class, [thresholds]."""
    count, scores, right = 0, [np.zeros(0)], [np.zeros((len(thresholds), 0), bool)]
    for predicted, known in zip(found, truth, strict=True):
        true = known.corners[known.labels == label]
        best = np.flatnonzero(predicted.labels == label)
        best = best[np.argsort(-predicted.scores[best], kind="stable")[:MOST]]
        count += len(true)
        scores.append(predicted.scores[best])
        right.append(matched(iou(predicted.corners[best], true), thresholds))
    if not count:
        return np.full(len(thresholds), np.nan)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    return np.array([_area(row[order], count) for row in np.concatenate(right, axis=1)])


def matched(overlaps: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Returns which of N predicted boxes take one of M true boxes.

    Args:
        overlaps: The IoU of predicted boxes, best first, with true boxes, [N M].
        thresholds: The IoU thresholds.

    Returns:
        Booleans [thresholds, N].
    """
    right = np.zeros((len(thresholds), len(overlaps)), bool)
    for row, threshold in zip(right, thresholds, strict=True):
        free = np.ones(overlaps.shape[1], bool)
        for n, over in enumerate(overlaps):
            # Of several equally good boxes the last is taken, as in the published evaluator.
            best = max(np.flatnonzero(free), key=lambda m: (over[m], m), default=None)
            if best is not None and over[best] >= threshold - ROUNDING:
                row[n], free[best] = True, False
    return right


def _area(right: np.ndarray, count: int) -> float:
    """Returns the mean precision over the recalls.

    Args:
        right: Whether each predicted box is correct, best first.
        count: The number of true boxes.
    """
    hits = right.cumsum()
    precision = hits / np.arange(1, len(right) + 1)
    best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(hits / count, RECALLS, side="left")].mean())
