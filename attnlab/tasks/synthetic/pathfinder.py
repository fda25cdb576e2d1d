"""Pathfinder: are two dots joined by a dashed curve?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.data.images import images
from attnlab.data.names import PARTS
from attnlab.data.synthetic import pathfinder
from attnlab.tasks.base import checks
from attnlab.tasks.base.numbered import numbered
from attnlab.tasks.base.stream import GeneratedData
from attnlab.tasks.base.task import Batch, Classes, Image, Task

CLASSES = ("apart", "joined")
SHOWN = 16


@dataclass(frozen=True)
class Pathfinder(Task):
    """Two dots on dashed curves: do they lie on the ends of one, or of two? Scored by accuracy; half are joined.

    After Linsley et al. 2018 (and, 32 × 32 read pixel by pixel, Tay et al. 2021): images of `size` × `size` pixels, two
    curves of `dashes` dashes and `distractors` of a third as many, drawn anew for every batch. Dashes are three pixels
    long, one apart, whatever the size: with three distractors 32 × 32 has room for 8 of them a curve, 64 × 64 for some
    20. Dots that are joined lie where others lie that are not. `vit` with `model.patch=1` reads them pixel by pixel,
    row after row, and with `model.position=sinusoidal` as a mere sequence.
    """

    size: int = 32
    dashes: int = 6
    distractors: int = 3
    valid_examples: int = 500
    test_examples: int = 2000
    seed: int = 0

    def __post_init__(self):
        checks.counts(self, ["size"], least=12, most=256)
        checks.counts(self, ["dashes"], least=2, most=64)
        checks.counts(self, ["distractors"], least=0, most=64)
        checks.examples(self, PARTS[1:])
        checks.seed(self)

    def load(self) -> PathfinderData:
        """The images are drawn as they are asked for. Raises ValueError where the curves find no room."""
        return PathfinderData(self)


class PathfinderData(GeneratedData):
    """Images of curves, and whether their dots are joined: the problem of `Pathfinder`."""

    def __init__(self, task: Pathfinder):
        super().__init__(task, CLASSES, Classes(Image(task.size, task.size, 1), 2), task.size**2)

    def draw(self, random: np.random.Generator, size: int, part: str) -> Batch:
        """{"source" [N size size 1] float32, 0 or 1, "label" [N] int32}."""
        task = self.task
        # There was room for the examinations, which are drawn first: no training ends because a batch takes long.
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
        """{"source" [1 size size 1], "label"}: "test:12", the twelfth image of the test, or a picture's file.

        Raises DataError for a number beyond the part, and for a file that is no picture of the size.
        """
        if found := numbered(text, {part: len(self._parts[part]["source"]) for part in PARTS[1:]}):
            part, n = found
            source = self._parts[part]["source"][n : n + 1]
        else:
            source = _given(images.read(text.strip(), (self.task.size, self.task.size, 1))[None])
        return {"source": source, "label": np.full(1, -1, np.int32)}

    def tokens(self, batch: Batch) -> dict[str, list[str]]:
        """Numbers, one a pixel, row by row."""
        return {"source": [str(n) for n in range(1, self.task.size**2 + 1)], "target": []}

    def inputs(self, part: str, limit: int | None = None) -> list[str]:
        """The images by their numbers: "test:12"."""
        return [f"{part}:{n}" for n in range(1, len(self._parts[part]["label"][:limit]) + 1)]

    def pictures(self, batch: Batch, answer: Batch) -> dict[str, bytes]:
        """The images, each with what was answered."""
        from attnlab.plotting import grid

        asked = np.flatnonzero(np.asarray(batch["label"]) >= 0)[:SHOWN]
        said, truth = (np.asarray(each["label"])[asked] for each in (answer, batch))
        titles = [self.classes[a] + ("" if a == b else ", wrong") for a, b in zip(said, truth, strict=True)]
        caption = f"are the dots joined? {(said == truth).sum()} of {len(asked)} right"
        return {caption: grid(list(np.asarray(batch["source"])[asked]), titles)}


def _given(drawn: np.ndarray) -> np.ndarray:
    """Bytes as the model is given them."""
    return drawn.astype(np.float32) / 255
