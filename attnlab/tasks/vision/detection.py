"""To find things in images: blood cells, drawn figures, and what is in one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data.images import cells, scenes
from attnlab.data.io.bundles import within
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.synthetic import discs
from attnlab.tasks.base import checks
from attnlab.tasks.base.task import Task
from attnlab.tasks.vision.objects import DetectionData


class BoxTask(Task):
    """A task of finding things in images of rows × columns."""

    rows: int
    columns: int

    def with_test(self, problem: Any, file: str) -> DetectionData:
        """The problem with a folder or an archive of images as its test, with a table of boxes or without."""
        inside = within(user_path(file))
        table = any(name.lower().endswith(".tsv") for name in inside)
        rows, path = scenes.listed(inside, file) if table else ([], file)
        images = scenes.pictures(inside, file)
        if not images:
            raise DataError(f"{file} holds no images")
        size = self.rows, self.columns
        return problem.with_test(scenes.scenes(inside, images, rows, problem.classes, size, path), file)


@dataclass(frozen=True)
class Cells(BoxTask):
    """Photographs of blood cells (BCCD), resized to rows × columns: red and white cells, and platelets, with boxes.

    Scored by average precision at an IoU of .5 (`ap50`) and over .5 … .95 (`ap`) on the 87 published to validate; 21 of
    those published to train with validate here, and 184 are trained on, where `flip` turned round at random. Boxes
    without area, outside of their image or with corners reversed are dropped, and counted.
    """

    training_only_fields = ("flip",)

    rows: int = 96
    columns: int = 128
    flip: bool = True

    def __post_init__(self):
        _check(self)

    def load(self) -> DetectionData:
        """Read the photographs."""
        return DetectionData(cells.parts((self.rows, self.columns)), cells.CLASSES, self.flip)


@dataclass(frozen=True)
class Discs(BoxTask):
    """Drawn discs, squares and triangles, up to `most` in a noisy image of rows × columns; the rest as in `cells`."""

    training_only_fields = ("flip",)

    train_examples: int = 1_000
    valid_examples: int = 100
    test_examples: int = 200
    rows: int = 48
    columns: int = 64
    most: int = 5
    flip: bool = False
    seed: int = 0

    def __post_init__(self):
        checks.examples(self, [f"{part}" for part in PARTS])
        checks.counts(self, ["most"], most=64)
        checks.seed(self)
        _check(self)

    def load(self) -> DetectionData:
        """Draw them."""
        sized = {part: (n, getattr(self, f"{part}_examples")) for n, part in enumerate(PARTS)}
        return DetectionData({part: self._drawn(*each) for part, each in sized.items()}, discs.CLASSES, self.flip)

    def _drawn(self, n: int, count: int) -> scenes.Scenes:
        random = generator(self.seed, n)
        return discs.draw(random, count, (self.rows, self.columns), self.most)


@dataclass(frozen=True)
class Boxes(BoxTask):
    """Images of one's own with boxes, resized to rows × columns; the rest as in `cells`.

    `train`, `valid` and `test` name a folder or an archive each, which holds JPEG or PNG images and one table of boxes:
    a file named as .tsv with tabs between its columns. Its first line names them: image, label, xmin, ymin, xmax and
    ymax. Each other line is a box, its corners in pixels; shares of the sides are refused. The classes are the labels
    of the training part.
    """

    training_only_fields = ("flip",)

    train: str = ""
    valid: str = ""
    test: str = ""
    rows: int = 96
    columns: int = 128
    flip: bool = False

    def __post_init__(self):
        _check(self)

    def load(self) -> DetectionData:
        """Read one's files."""
        checks.files(self)
        found, classes = {}, ()
        for part in PARTS:
            name = getattr(self, part)
            files = within(user_path(name))
            rows, path = scenes.listed(files, name)
            classes = classes or tuple(sorted({row.label for row in rows}))
            if not rows:
                raise DataError(f"{name} has no boxes")
            images = scenes.pictures(files, name)
            found[part] = scenes.scenes(files, images, rows, classes, (self.rows, self.columns), path)
        return DetectionData(found, classes, self.flip)


def _check(task: Cells | Discs | Boxes) -> None:
    """What the tasks have in common: a size that images can have."""
    checks.counts(task, ["rows", "columns"], least=16, most=1024)
