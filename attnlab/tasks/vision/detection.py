"""Object detection: blood cells, drawn shapes and your own images."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.data.images import cells, scenes
from attnlab.data.io.bundles import within
from attnlab.data.io.files import DataError, user_path
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.synthetic import discs
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths, sizes
from attnlab.tasks.base.task import Task
from attnlab.tasks.vision.objects import DetectionData


class BoxTask(Task):
    """The base class of object detection tasks, on images of `rows` × `columns` pixels."""

    rows: int
    """The height of the images in pixels."""
    columns: int
    """The width of the images in pixels."""

    def with_test(self, problem: DetectionData, file: str) -> DetectionData:
        """Returns the data with a folder or an archive of images as the test part. A table of boxes is optional."""
        inside = within(user_path(file))
        table = any(name.lower().endswith(".tsv") for name in inside)
        rows, path = scenes.listed(inside, file) if table else ([], file)
        images = scenes.pictures(inside, file)
        if not images:
            raise DataError(f"{file} contains no images")
        size = self.rows, self.columns
        return problem.with_test(scenes.scenes(inside, images, rows, problem.classes, size, path), file)


@dataclass(frozen=True)
class Cells(BoxTask):
    """Photographs of blood cells (BCCD): red cells, white cells and platelets. Scored by average precision.

    The metrics are the average precision at an IoU of .5 (`ap50`) and over .5 … .95 (`ap`). The test part are the 87
    images published for validation. Of those published for training, 21 are used for validation and 184 for training.
    Boxes without area, outside of their image, or with reversed corners are dropped and counted.
    """

    training_only_fields = ("flip",)

    rows: int = 96
    """The height in pixels to which images are resized."""
    columns: int = 128
    """The width in pixels to which images are resized."""
    flip: bool = True
    """Whether training images are flipped at random, horizontally and vertically."""

    def __post_init__(self):
        _check(self)

    def load(self) -> DetectionData:
        """Reads the photographs."""
        return DetectionData(cells.parts((self.rows, self.columns)), cells.CLASSES, self.flip)


@dataclass(frozen=True)
class Discs(BoxTask):
    """Drawn discs, squares and triangles in a noisy image. Scored by average precision, as in `cells`."""

    training_only_fields = ("flip",)

    train_examples: int = 1_000
    """The number of training images."""
    valid_examples: int = 100
    """The number of validation images."""
    test_examples: int = 200
    """The number of test images."""
    rows: int = 48
    """The height of the images in pixels."""
    columns: int = 64
    """The width of the images in pixels."""
    most: int = 5
    """The largest number of shapes in an image."""
    flip: bool = False
    """Whether training images are flipped at random, horizontally and vertically."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.examples(self, [f"{part}" for part in PARTS])
        checks.counts(self, ["most"], most=64)
        checks.seed(self)
        _check(self)

    def load(self) -> DetectionData:
        """Generates the images."""
        sized = {part: (n, size) for n, (part, size) in enumerate(sizes(self).items())}
        return DetectionData({part: self._drawn(*each) for part, each in sized.items()}, discs.CLASSES, self.flip)

    def _drawn(self, n: int, count: int) -> scenes.Scenes:
        random = generator(self.seed, n)
        return discs.draw(random, count, (self.rows, self.columns), self.most)


@dataclass(frozen=True)
class Boxes(BoxTask):
    """Your own images with boxes. Scored by average precision, as in `cells`.

    Each part is a folder or an archive with JPEG or PNG images and one table of boxes. The table is a file whose name
    ends in .tsv, with columns separated by tabs. Its first line names the columns: image, label, xmin, ymin, xmax and
    ymax. Each further line is a box with its corners in pixels. Corners as fractions of the sides are refused. The
    classes are the labels of the training part.
    """

    training_only_fields = ("flip",)

    train: str = ""
    """The path of the training folder or archive."""
    valid: str = ""
    """The path of the validation folder or archive."""
    test: str = ""
    """The path of the test folder or archive."""
    rows: int = 96
    """The height in pixels to which images are resized."""
    columns: int = 128
    """The width in pixels to which images are resized."""
    flip: bool = False
    """Whether training images are flipped at random, horizontally and vertically."""

    def __post_init__(self):
        _check(self)

    def load(self) -> DetectionData:
        """Reads your files."""
        checks.files(self)
        found, classes = {}, ()
        for part, name in paths(self).items():
            files = within(user_path(name))
            rows, path = scenes.listed(files, name)
            classes = classes or tuple(sorted({row.label for row in rows}))
            if not rows:
                raise DataError(f"{name} has no boxes")
            images = scenes.pictures(files, name)
            found[part] = scenes.scenes(files, images, rows, classes, (self.rows, self.columns), path)
        return DetectionData(found, classes, self.flip)


def _check(task: Cells | Discs | Boxes) -> None:
    """Checks the size of the images."""
    checks.counts(task, ["rows", "columns"], least=16, most=1024)
