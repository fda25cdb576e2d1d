"""Image classification: Fashion-MNIST, your own images, and drawn shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.data import repeats
from attnlab.data.images import fashion, idx_files, inference, picture_parts
from attnlab.data.images.labelled import Labelled, agreed
from attnlab.data.images.sampling import divided
from attnlab.data.io import files
from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.rng import generator
from attnlab.data.synthetic import figures
from attnlab.tasks.base import checks
from attnlab.tasks.base.parts import paths, sizes
from attnlab.tasks.base.task import Task
from attnlab.tasks.vision.pictures import Augmentation, ImageData


class ImageTask(Task):
    """The base class of image classification tasks."""

    def with_test(self, problem: ImageData, file: str) -> ImageData:
        """Returns the data with the images of a file, a folder or a table as the test part.

        See `attnlab.data.images.inference` for the formats.
        """
        shape = problem.parts["train"].images.shape[1:]
        return problem.with_test(*inference.pictures(file, shape, problem.classes), file)


@dataclass(frozen=True)
class FashionMNIST(ImageTask):
    """Fashion-MNIST: photographs of clothing, 28 × 28 pixels, in ten classes. Scored by accuracy.

    There are 60,000 images for training and validation, and 10,000 test images.
    """

    training_only_fields = ("shift", "flip")

    share: float = 1.0
    """The fraction of the training images that is used, in every class, above 0 and at most 1.

    Each training seed draws its own subset.
    """
    held: float = 0.05
    """The fraction of the 60,000 images that is used for validation, in every class.

    These are always the same images.
    """
    shift: int = 0
    """The largest random shift of training images in pixels, in each direction."""
    flip: bool = False
    """Whether half of the training images are flipped horizontally."""

    def __post_init__(self):
        _check(self)

    def load(self) -> ImageData:
        """Reads the images. They are downloaded if they are not available locally."""
        found = fashion.parts()
        train, valid = divided(found["train"], self.held)
        return _problem(self, {"train": train, "valid": valid, "test": found["test"]}, fashion.CLASSES)


@dataclass(frozen=True)
class Images(ImageTask):
    """Your own images: folders of PNG and JPEG pictures, tables of pictures, or IDX files. Scored by accuracy.

    Pictures of a part are in a folder with a subfolder for each class, or in a table whose name ends in .tsv. A line of
    the table is the path of a picture, relative to the table's folder, a tab and the class. A folder given as `train`
    may instead have subfolders train, valid (or val) and test of that form. The classes are those of the training part,
    sorted by name. All pictures must have the size of the first; none is resized. The images have one channel if all
    pictures are stored in grayscale, otherwise three.

    IDX is the format of MNIST. Each part is a file of images, or a folder with files named train-images…, test-images…
    (or t10k-…). The labels of a file of images are next to it, under the same name with "labels" for "images" (and
    "idx1" for "idx3"). The classes are 0 … the largest label of the training images.

    Classes of which a part has no image are reported.
    """

    training_only_fields = ("shift", "flip")

    train: str = ""
    """The path of the training images: a folder, a table or an IDX file."""
    valid: str = ""
    """The path of the validation images.

    If it is "", a folder given as `train` is used if it has such images. Otherwise a fraction `held` of the training
    images is used.
    """
    test: str = ""
    """The path of the test images.

    If it is "", a folder given as `train` is used. If there are pictures for training but not for the test, a fraction
    `held` of them is held out for the test, and a note says so.
    """
    share: float = 1.0
    """The fraction of the training images that is used, in every class, above 0 and at most 1.

    Each training seed draws its own subset.
    """
    held: float = 0.1
    """The fraction of the training images used for validation, in every class, if there are no validation images.

    It is also the fraction of pictures used for the test if there are no test pictures. It must be above 0 and below 1.
    """
    shift: int = 0
    """The largest random shift of training images in pixels, in each direction."""
    flip: bool = False
    """Whether half of the training images are flipped horizontally."""

    def __post_init__(self):
        _check(self)
        if self.valid:
            checks.unused(self, "valid", ["held"])

    def load(self) -> ImageData:
        """Reads your files."""
        names = paths(self)
        for part, name in names.items():
            if name and not files.user_path(name).exists():
                raise DataError(f"task.{part}={name!r} cannot be read: there is no such file or folder")
        if not names["train"]:
            raise _missing("train")
        return self._pictures(names) if picture_parts.holds(names["train"]) else self._idx(names)

    def _pictures(self, names: dict[str, str]) -> ImageData:
        """Reads PNG and JPEG files."""
        places = picture_parts.places(names)
        if names["valid"] and "test" not in places:
            raise _missing("test")
        repeats.distinct(places)
        found = picture_parts.read(places, self.held)
        problem = _problem(self, found.images, found.classes, found.names)
        problem.notes = (*picture_parts.unread(names["train"]), *found.notes, *problem.notes)
        return problem

    def _idx(self, names: dict[str, str]) -> ImageData:
        """Reads IDX files."""
        if files.user_path(names["train"]).is_dir():
            names["test"] = names["test"] or names["train"]
            if idx_files.holds(names["train"], "valid"):
                names["valid"] = names["valid"] or names["train"]
        if not names["test"]:
            raise _missing("test")
        repeats.distinct({part: idx_files.chosen(name, part) for part, name in names.items() if name})
        parts = {part: idx_files.read_user_images(name, part) for part, name in names.items() if name}
        called = {part: f"{name} ({part})" for part, name in names.items()}
        classes = tuple(map(str, range(agreed(parts, called))))
        if "valid" not in parts:
            parts["train"], parts["valid"] = divided(parts["train"], self.held)
        return _problem(self, parts, classes)


@dataclass(frozen=True)
class Figures(ImageTask):
    """Ten kinds of simple shapes, drawn at random positions and sizes, with noise. Scored by accuracy."""

    training_only_fields = ("shift", "flip")

    train_examples: int = 2_000
    """The number of training images."""
    valid_examples: int = 500
    """The number of validation images."""
    test_examples: int = 1_000
    """The number of test images."""
    size: int = 16
    """The height and the width of the images in pixels, at least 12."""
    noise: float = 0.15
    """The standard deviation of the noise, in units of brightness in 0 … 1."""
    share: float = 1.0
    """The fraction of the training images that is used, in every class, above 0 and at most 1.

    Each training seed draws its own subset.
    """
    shift: int = 0
    """The largest random shift of training images in pixels, in each direction."""
    flip: bool = False
    """Whether half of the training images are flipped horizontally."""
    seed: int = 0
    """The seed of the data, in 0 … 2³²−1."""

    def __post_init__(self):
        checks.examples(self, PARTS)
        checks.counts(self, ["size"], least=12, most=512)
        checks.seed(self)
        if not 0 <= self.noise <= 1:
            raise ValueError(f"task.noise={self.noise} must be in 0 … 1")
        _check(self)

    def load(self) -> ImageData:
        """Generates the images."""
        return _problem(self, {part: self._drawn(n, part) for n, part in enumerate(PARTS)}, figures.CLASSES)

    def _drawn(self, n: int, part: str) -> Labelled:
        random = generator(self.seed, n)
        return figures.figures(random, sizes(self)[part], self.size, self.noise)


def _problem(
    task: FashionMNIST | Images | Figures,
    parts: dict[str, Labelled],
    classes: tuple[str, ...],
    names: Mapping[str, list[str]] | None = None,
) -> ImageData:
    change = Augmentation(task.shift, task.flip)
    return ImageData({part: parts[part] for part in PARTS}, classes, task.share, change, names)


def _missing(part: str) -> ValueError:
    """Returns the error for a part without a path."""
    return ValueError(f"task.{part}='' must be the path of a file or folder")


def _check(task: FashionMNIST | Images | Figures) -> None:
    """Checks the fields that the tasks have in common: fractions, and the shift of images."""
    if not 0 < task.share <= 1:
        raise ValueError(f"task.share={task.share} must be above 0 and at most 1")
    if not isinstance(task, Figures) and not 0 < task.held < 1:
        raise ValueError(f"task.held={task.held} must be above 0 and below 1")
    checks.counts(task, ["shift"], least=0, most=512)
