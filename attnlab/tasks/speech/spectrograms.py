"""Pictures of strings of spoken words: the frames, the spoken words and the predicted words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlab.plotting import COLOURS, canvas, png
from attnlab.tasks.base.text_interface import Batch

if TYPE_CHECKING:
    from attnlab.plotting import Axes

COLUMNS, MOST = 2, 8  # strings in a row of the picture, and in total
RIGHT, WRONG = COLOURS[2], COLOURS[0]


class Span(NamedTuple):
    """A string of N words in T frames."""

    source: np.ndarray
    """The frames, [T bands]."""
    piece: np.ndarray
    """The index of the word of each frame, or −1 for none, [T]."""
    words: list[str]
    """The spoken words, N."""
    answered: list[str]
    """The predicted words, N."""
    right: np.ndarray
    """Whether the class of each frame is predicted correctly, [T]."""


def spectrograms(classes: Sequence[str], step: float, batch: Batch, answer: Batch) -> bytes:
    """Draws the frames of strings, with the spoken words above and the predicted words below.

    Wrong words are red. A line under the frames is green where the class of a frame is predicted correctly, and red
    elsewhere.

    Args:
        classes: The names of the classes.
        step: The time between frames in seconds.
        batch: A batch of `attnlab.tasks.speech.speech.SpeechData`.
        answer: The answer to it.

    Returns:
        A PNG.
    """
    strings = [_heard(classes, n, batch, answer) for n, keep in enumerate(np.asarray(batch["keep"])) if keep.any()]
    rows = -(-min(MOST, len(strings)) // COLUMNS)
    figure = canvas(12, 1.7 * rows)
    places = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, one in zip(places, strings, strict=False):
        _draw(axes, one, step)
    for axes in places[len(strings) :]:
        axes.axis("off")
    return png(figure)


def _heard(classes: Sequence[str], row: int, batch: Batch, answer: Batch) -> Span:
    source, keep, piece, label = (np.asarray(batch[name])[row] for name in ("source", "keep", "piece", "label"))
    predicted, answered = (np.asarray(answer[name])[row] for name in ("label", "word"))
    words = [classes[int(label[piece == n][0])] for n in range(len(answered))]
    return Span(source[keep], piece[keep], words, [classes[int(n)] for n in answered], (predicted == label)[keep])


def _draw(axes: Axes, one: Span, step: float) -> None:
    frames, bands = one.source.shape
    axes.imshow(
        one.source.T, origin="lower", aspect="auto", cmap="magma", extent=(0, frames * step, 0, bands), vmin=-2, vmax=2
    )
    for n, (word, answered) in enumerate(zip(one.words, one.answered, strict=True)):
        own = np.flatnonzero(one.piece == n)
        start, stop = own[0] * step, (own[-1] + 1) * step
        for at in (start, stop):
            axes.axvline(at, color="white", linewidth=0.8)
        middle = (start + stop) / 2
        # A dollar sign in a name must not start matplotlib's math mode.
        style = {"ha": "center", "fontsize": 10, "parse_math": False}
        axes.text(middle, bands * 1.02, word, va="bottom", **style)
        colour = RIGHT if word == answered else WRONG
        axes.text(middle, -bands * 0.09, answered, va="top", color=colour, weight="bold", **style)
    for good, colour in ((one.right, RIGHT), (~one.right, WRONG)):
        axes.fill_between(
            np.repeat(np.arange(frames + 1), 2)[1:-1] * step, -0.06 * bands, 0,
            where=np.repeat(good, 2), color=colour, linewidth=0,
        )  # fmt: skip
    axes.set(ylim=(-0.06 * bands, bands), yticks=[], xticks=[])
    axes.set_xlabel(f"{frames * step:.2f} s", fontsize=8, loc="right", labelpad=1)
