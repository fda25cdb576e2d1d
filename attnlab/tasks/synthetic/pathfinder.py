"""Pathfinder: decide whether two dots are joined by a dashed curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.data.images import photos
from attnlab.data.names import PARTS
from attnlab.data.synthetic import pathfinder
from attnlab.tasks.base import checks
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.shapes import Classes, Image
from attnlab.tasks.base.stream import GeneratedData
from attnlab.tasks.base.task import Task
from attnlab.tasks.base.text_interface import Batch

CLASSES = ("apart", "joined")
SHOWN = 16


@dataclass(frozen=True)
class Pathfinder(Task):
    """Two dots on dashed curves: are they the ends of the same curve? Scored by accuracy; half are joined.

    The task follows Linsley et al. 2018. Tay et al. 2021 read it pixel by pixel, at 32 × 32. Each image shows two
    curves of `dashes` dashes, and `distractors` curves of a third as many. Images are generated anew for every batch.
    Dots that are joined are placed like dots that are not.

    Dashes are three pixels long and one pixel apart, whatever the image size. With three distractors, a 32 × 32 image
    has room for 8 dashes in a curve, and a 64 × 64 image for about 20.

    The model `vit` with `model.patch=1` reads the image pixel by pixel, row after row. With `model.position=sinusoidal`
    it reads it as a plain sequence.
    """

    size: int = 32
    """The height and the width of the images in pixels, at least 12."""
    dashes: int = 6
    """The number of dashes of each of the two long curves."""
    distractors: int = 3
    """The number of short curves, each with a third of the dashes."""
    valid_examples: int = 500
    """The number of validation images."""
    test_examples: int = 2000
    """The number of test images."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.counts(self, ["size"], least=12, most=256)
        checks.counts(self, ["dashes"], least=2, most=64)
        checks.counts(self, ["distractors"], least=0, most=64)
        checks.examples(self, PARTS[1:])
        checks.seed(self)

    def load(self) -> PathfinderData:
        """Returns the data. Training images are generated when they are requested.

        Raises:
            ValueError: If there is no room for the curves.
        """
        return PathfinderData(self)


class PathfinderData(GeneratedData[Pathfinder]):
    """The data of `Pathfinder`: images, and whether their dots are joined."""

    def __init__(self, task: Pathfinder):
        super().__init__(task, CLASSES, Classes(Image(task.size, task.size, 1), 2), task.size**2)

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """Returns {"source" [N size size 1] float32 with values 0 or 1, "label" [N] int32}."""
        task = self.task
        # The evaluation images, which are drawn first, have shown that there is room. Training batches may therefore
        # take any number of attempts: a batch that takes long must not end a run.
        patience = math.inf if part == "train" else pathfinder.BARREN
        try:
            drawn, label = pathfinder.draw(random, size, task.size, task.dashes, task.distractors, patience)
        except ValueError as error:
            raise ValueError(
                f"task.size={task.size} is too small for task.dashes={task.dashes} and "
                f"task.distractors={task.distractors}: {error}"
            ) from error
        return {"source": _given(drawn[..., None]), "label": label}

    def encode_prompt(self, text: str) -> Batch:
        """Returns an image {"source" [1 size size 1], "label"}.

        Args:
            text: The number of an image, for example "test:12" for the twelfth test image, or the path of a picture.

        Raises:
            DataError: If the part has no such image, or if the file is not a picture of the required size.
        """
        if found := numbered(text, {part: len(self._parts[part]["source"]) for part in PARTS[1:]}):
            part, n = found
            source = self._parts[part]["source"][n : n + 1]
        else:
            source = _given(photos.read(text.strip(), (self.task.size, self.task.size, 1))[None])
        return {"source": source, "label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Returns the numbers of the pixels, row by row."""
        return {"source": [str(n) for n in range(1, self.task.size**2 + 1)], "target": []}

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """Returns the references of the images, for example "test:12"."""
        return [f"{part}:{n}" for n in range(1, len(self._parts[part]["label"][:limit]) + 1)]

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """Returns the images, each with the predicted class."""
        from attnlab.plotting import grid

        labelled = np.flatnonzero(np.asarray(batch["label"]) >= 0)[:SHOWN]
        predicted, truth = (np.asarray(each["label"])[labelled] for each in (answer, batch))
        titles = [self.classes[a] + ("" if a == b else " (wrong)") for a, b in zip(predicted, truth, strict=True)]
        caption = f"Are the dots joined? {(predicted == truth).sum()} of {len(labelled)} correct"
        return {caption: grid(list(np.asarray(batch["source"])[labelled]), titles)}


def _given(drawn: np.ndarray) -> np.ndarray:
    """Returns bytes as the float32 values that the model receives."""
    return drawn.astype(np.float32) / 255
