"""To sort images: Fashion-MNIST, one's own in IDX files, and drawn figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab.data import repeats
from attnlab.data.images import asked, images
from attnlab.data.images.images import Labelled
from attnlab.data.io import files
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.synthetic import figures
from attnlab.tasks.base import checks
from attnlab.tasks.base.task import Task
from attnlab.tasks.vision.pictures import Augmentation, ImageData


class ImageTask(Task):
    """A task of sorting images."""

    def with_test(self, problem: Any, file: str) -> ImageData:
        """The problem with the images of a file, a folder or a table (`attnlab.data.images.asked`) as its test."""
        return problem.with_test(*asked.pictures(file, problem.parts["train"].images.shape[1:], problem.classes))


@dataclass(frozen=True)
class FashionMNIST(ImageTask):
    """Fashion-MNIST: photographs of clothing, 28 × 28 pixels, in ten classes; scored by accuracy on the 10,000.

    `held` of the 60,000 are validated with, a share of every class, always the same. Of the rest `share` is trained
    on, as large a part of every class: each seed draws its own. In training an image is moved by up to `shift` pixels
    each way, and where `flip` half of them are turned left to right.
    """

    training_only_fields = ("shift", "flip")

    share: float = 1.0
    held: float = 0.05
    shift: int = 0
    flip: bool = False

    def __post_init__(self):
        _check(self)

    def load(self) -> ImageData:
        """Read the images, fetched where they are not at hand."""
        found = images.fashion()
        train, valid = images.divided(found["train"], self.held)
        return _problem(self, {"train": train, "valid": valid, "test": found["test"]}, images.CLASSES)


@dataclass(frozen=True)
class Images(ImageTask):
    """Images of one's own in IDX files, as MNIST's are; scored by accuracy.

    `train`, `valid` and `test` name a file of images each, with its labels beside it under the same name but "labels"
    for "images" (and "idx1" for "idx3"), or a folder that holds such files, train-images…, test-images… (or t10k-…).
    A folder as `train` serves the test too where `test` names nothing, and `valid` where it has such a file; without
    one `held` of the training images are validated with. The classes are 0 … the highest label of the training
    images; those of which a part has no image are noted. The rest as in `fashion-mnist`.
    """

    training_only_fields = ("shift", "flip")

    train: str = ""
    valid: str = ""
    test: str = ""
    share: float = 1.0
    held: float = 0.1
    shift: int = 0
    flip: bool = False

    def __post_init__(self):
        _check(self)
        if self.valid:
            checks.unused(self, "valid", ["held"])

    def load(self) -> ImageData:
        """Read one's files."""
        names = {part: getattr(self, part) for part in PARTS}
        if names["train"] and not files.user_path(names["train"]).exists():
            raise DataError(f"task.train={names['train']!r} cannot be read: there is no such file or folder")
        if names["train"] and files.user_path(names["train"]).is_dir():
            names["test"] = names["test"] or names["train"]
            if images.holds(names["train"], "valid"):
                names["valid"] = names["valid"] or names["train"]
        for part in ("train", "test"):
            if not names[part]:
                raise ValueError(f"task.{part}={names[part]!r} must name a file or folder: attnlab cannot know yours")
        repeats.distinct({part: images.chosen(name, part) for part, name in names.items() if name})
        parts = {part: images.read_user_images(name, part) for part, name in names.items() if name}
        called = {part: f"{name} ({part})" for part, name in names.items()}
        classes = tuple(map(str, range(images.agreed(parts, called))))
        if "valid" not in parts:
            parts["train"], parts["valid"] = images.divided(parts["train"], self.held)
        return _problem(self, parts, classes)


@dataclass(frozen=True)
class Figures(ImageTask):
    """Ten kinds of simple figures, drawn by a seed on images of `size` × `size`: somewhere, large or small, with noise.

    `noise` is its standard deviation, of brightness in 0 … 1. The rest as in `fashion-mnist`.
    """

    training_only_fields = ("shift", "flip")

    train_examples: int = 2_000
    valid_examples: int = 500
    test_examples: int = 1_000
    size: int = 16
    noise: float = 0.15
    share: float = 1.0
    shift: int = 0
    flip: bool = False
    seed: int = 0

    def __post_init__(self):
        checks.examples(self, PARTS)
        checks.counts(self, ["size"], least=12, most=512)
        checks.seed(self)
        if not 0 <= self.noise <= 1:
            raise ValueError(f"task.noise={self.noise} must be in 0 … 1")
        _check(self)

    def load(self) -> ImageData:
        """Draw them."""
        return _problem(self, {part: self._drawn(n, part) for n, part in enumerate(PARTS)}, figures.CLASSES)

    def _drawn(self, n: int, part: str) -> Labelled:
        random = generator(self.seed, n)
        return figures.figures(random, getattr(self, f"{part}_examples"), self.size, self.noise)


def _problem(task: Any, parts: dict[str, Labelled], classes: tuple[str, ...]) -> ImageData:
    return ImageData({part: parts[part] for part in PARTS}, classes, task.share, Augmentation(task.shift, task.flip))


def _check(task: Any) -> None:
    """What the tasks have in common: shares, and how images are moved."""
    if not 0 < task.share <= 1:
        raise ValueError(f"task.share={task.share} must be above 0, and at most 1")
    if not 0 < getattr(task, "held", 0.5) < 1:
        raise ValueError(f"task.held={task.held} must be above 0 and below 1")
    checks.counts(task, ["shift"], least=0, most=512)
