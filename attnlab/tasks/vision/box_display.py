"""How predicted boxes are shown: as text, as the names of queries, and in pictures."""

from collections.abc import Sequence

import numpy as np

from attnlab.tasks.base.text_interface import Batch
from attnlab.tasks.vision.boxes import corners

SURE = 0.5  # the smallest score of a box that is shown


def shown(score: np.ndarray) -> list[int]:
    """Returns the indices of the predictions of one image with a score of at least .5, best first."""
    return [int(n) for n in np.argsort(-score, kind="stable") if score[n] >= SURE]


def box_text(what: str, box: np.ndarray) -> str:
    """Returns a box as its class and its four edges."""
    return " ".join([what, *(f"{float(edge):.4f}" for edge in box)])


def answer_text(classes: Sequence[str], answer: Batch) -> str:
    """Returns the predicted boxes of row 0, best first: class, score, and position in percent of the sides."""
    boxes, labels, scores = (np.asarray(answer[name])[0] for name in ("boxes", "label", "score"))
    lines = []
    for n in shown(scores):
        left, top, right, bottom = (round(100 * float(edge)) for edge in boxes[n])
        lines.append(f"{classes[labels[n]]} ({scores[n]:.0%}) at {left}-{right}, {top}-{bottom}")
    return "; ".join(lines) or "nothing"


def query_names(classes: Sequence[str], answer: Batch) -> tuple[str, ...]:
    """Returns the number of each query of row 0, with its class if its score is at least .5."""
    label, score = (np.asarray(answer[name])[0].tolist() for name in ("label", "score"))
    return tuple(
        f"{n} {classes[kind]}" if sure >= SURE else str(n)
        for n, (kind, sure) in enumerate(zip(label, score, strict=True), 1)
    )


def box_pictures(classes: Sequence[str], batch: Batch, answer: Batch) -> dict[str, bytes]:
    """Returns images with the predicted boxes as solid lines and the true boxes as dotted lines.

    Args:
        classes: The names of the classes.
        batch: The images and the true boxes, as in `DetectionData`.
        answer: The predictions: "boxes" [B Q 4] (left, top, right, bottom) in fractions of the image, "label" [B Q] and
            "score" [B Q].

    Returns:
        One picture of all images as PNG, by its caption.
    """
    from attnlab.plotting import Box, grid

    truth, found = corners(np.asarray(batch["boxes"])), np.asarray(answer["boxes"]).clip(0, 1)
    drawn = []
    for n, labels in enumerate(np.asarray(batch["label"])):
        true = [Box(_four(truth[n, m]), "", int(labels[m]), True) for m in np.flatnonzero(labels >= 0)]
        label, best = np.asarray(answer["label"])[n], shown(np.asarray(answer["score"])[n])
        # The name of a class is shown once, at its box with the highest score.
        named = {label[m]: m for m in reversed(best)}
        name = lambda m, label=label, named=named: classes[int(label[m])] if named[label[m]] == m else ""
        drawn.append(true + [Box(_four(found[n, m]), name(m), int(label[m])) for m in best])
    caption = f"Solid lines: predictions with a score of {SURE:.0%} or more; dotted lines: true boxes; colours: classes"
    return {caption: grid(list(np.asarray(batch["image"])), [], drawn, columns=4, side=3.0)}


def _four(box: np.ndarray) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, box)
    return left, top, right, bottom
