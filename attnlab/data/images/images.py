"""Images with labels: Fashion-MNIST (Xiao et al. 2017), and a user's own IDX files, named as those of MNIST."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.data.images import photos
from attnlab.data.io import arrays, files
from attnlab.data.io.files import DataError, Source
from attnlab.data.rng import generator

# How the file names of a part begin in a folder.
NAMES = {"train": ("train",), "valid": ("valid", "val"), "test": ("test", "t10k")}
MOST = 1000  # the largest number of classes; a greater label is probably a mistake
CLASSES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)  # fmt: skip

_ADDRESS = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
# File, bytes, sha256 of the gzipped files as they are served.
_TABLE = """
train-images-idx3-ubyte.gz 26421880 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
train-labels-idx1-ubyte.gz 29515 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
t10k-images-idx3-ubyte.gz 4422102 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
t10k-labels-idx1-ubyte.gz 5148 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
"""


def _source(row: str) -> Source:
    """Returns the source of a row of the table."""
    file, size, sha256 = row.split()
    return Source("fashion_mnist", file, sha256, int(size), f"{_ADDRESS}/{file}")


SOURCES = tuple(map(_source, _TABLE.split("\n")[1:-1]))


class Labelled(NamedTuple):
    """Images with their classes."""

    images: np.ndarray
    """The images [N H W C] uint8."""
    labels: np.ndarray
    """The class of each image [N] int32."""


def fashion() -> dict[str, Labelled]:
    """Returns Fashion-MNIST: 60,000 images for training and 10,000 for test, 28 × 28 pixels, grayscale.

    Raises:
      DataError: as `files.read`.
    """
    found = [arrays.idx(files.read(source), source.file) for source in SOURCES]
    names = [source.file for source in SOURCES]
    return {"train": checked(found[:2], names[:2]), "test": checked(found[2:], names[2:])}


def read_user_images(name: str, part: str) -> Labelled:
    """Reads a user's images and their labels from IDX files, gzipped or plain.

    In a folder, the name of the file begins with the part and contains "images": train-images…, valid-images… (or
    val-…), test-images… (or t10k-…). The labels are in the same folder, under the same name with "labels" for "images"
    and "idx1" for "idx3".

    Args:
      name: an IDX file of images, or a folder that contains one for the part.
      part: "train", "valid" or "test".

    Raises:
      DataError: if a file is missing or damaged, or the files are not images with labels. The message names the file.
    """
    path = chosen(name, part)
    images, labels = arrays.idx(path), _labels(path)
    return checked([images, arrays.idx(labels)], [path, labels])


def chosen(name: str, part: str) -> Path:
    """Returns the file of a part's images: `name` itself, or the file for this part in the folder `name`."""
    path = files.user_path(name)
    return _within(path, part) if path.is_dir() else path


def agreed(parts: Mapping[str, Labelled], names: Mapping[str, str]) -> int:
    """Checks that the parts agree, and returns the number of classes: one more than the highest label of "train".

    Classes below the highest without images are allowed here; `absent` reports them.

    Args:
      parts: the images of each part.
      names: the name of each part to use in messages.

    Raises:
      DataError: if the sizes of the images differ, all training images are of one class, or another part has a label
        that is higher than all labels of "train".
    """
    train = parts["train"]
    classes = int(train.labels.max()) + 1
    if (train.labels == train.labels[0]).all():
        raise DataError(f"{names['train']}: all images are of class {train.labels[0]}; at least 2 classes are needed")
    for part, (images, labels) in parts.items():
        if images.shape[1:] != train.images.shape[1:]:
            raise DataError(
                f"{names[part]} contains images of {measures(images)}, and {names['train']} images of "
                f"{measures(train.images)}; all images must have the same size"
            )
        if (label := labels.max()) >= classes:
            raise DataError(
                f"{names[part]}, image {int(labels.argmax()) + 1}: label {label} is out of range; "
                f"{names['train']} has classes 0 … {classes - 1}"
            )
    return classes


def absent(parts: Mapping[str, Labelled], classes: Iterable[str]) -> tuple[str, ...]:
    """Returns a line for each part that lacks images of some classes."""
    classes, lines = tuple(classes), []
    for part, (_, labels) in parts.items():
        held = np.bincount(labels, minlength=len(classes)) > 0
        if missing := [name for name, holds in zip(classes, held, strict=True) if not holds]:
            end = "; a model cannot learn to predict them" if part == "train" else ""
            lines.append(
                f"{part}: there is no image of {len(missing)} of {len(classes)} classes: {_first(missing)}{end}"
            )
    return tuple(lines)


def portion(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Draws a share of the examples, stratified by class.

    Args:
      labels: the class of each example [N].
      share: the share to take of each class, rounded, but at least one example.
      seed: seed of the selection. It does not change how many are selected.

    Returns:
      The indices of the selected examples, ascending.
    """
    random = generator(seed)
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        chosen.append(random.permutation(rows)[: max(1, round(share * len(rows)))])
    return np.sort(np.concatenate(chosen))


def scarce(train: Labelled, share: float) -> tuple[str, ...]:
    """Returns a note if classes are so small that `portion` takes one image where the share would round to none."""
    few = int((np.round(share * np.unique(train.labels, return_counts=True)[1]) < 1).sum())
    of = "1 class has" if few == 1 else f"{few} classes have"
    return (f"train: {of} too few images for a share of {share:g}; one image of each is used",) if few else ()


def divided(whole: Labelled, share: float) -> tuple[Labelled, Labelled]:
    """Holds out a share of every class, always the same images.

    Returns:
      The rest, and the images held out.

    Raises:
      DataError: if nothing would be left of a class.
    """
    held = np.zeros(len(whole.labels), bool)
    held[portion(whole.labels, share, 0)] = True
    if lost := set(whole.labels.tolist()) - set(whole.labels[~held].tolist()):
        raise DataError(
            f"class {min(lost)} has too few images to hold out {share:g} of them for validation; "
            "provide files for validation"
        )
    return Labelled(whole.images[~held], whole.labels[~held]), Labelled(whole.images[held], whole.labels[held])


def augmented(images: np.ndarray, random: np.random.Generator, shift: int, flip: bool) -> np.ndarray:
    """Shifts images at random, and flips them at random from left to right.

    Args:
      images: the images [N H W C].
      random: the generator.
      shift: the largest shift in pixels, along both axes. Pixels without a source become zero.
      flip: whether to flip each image with probability 1/2.

    Returns:
      Images of the same shape.
    """
    count, height, width, _ = images.shape
    if flip:
        images = np.where((random.random(count) < 0.5)[:, None, None, None], images[:, :, ::-1], images)
    if not shift:
        return images
    padded = np.pad(images, ((0, 0), (shift, shift), (shift, shift), (0, 0)))
    down, right = random.integers(2 * shift + 1, size=(2, count))
    rows, columns = down[:, None] + np.arange(height), right[:, None] + np.arange(width)
    return padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def read(name: str, like: tuple[int, int, int]) -> np.ndarray:
    """Reads a PNG or JPEG file as an image of a given shape.

    Args:
      name: the file.
      like: the shape (H, W, C). One channel is grayscale, three are red, green and blue.

    Returns:
      The image [H W C] uint8.

    Raises:
      DataError: as `photos.opened`, and if the image has another size. It is not resized.
    """
    path = files.user_path(name)
    height, width, channels = like
    picture = photos.opened(files.contents(path, unpack=False), path)
    if picture.size != (width, height):
        raise DataError(f"{path} has {picture.height} × {picture.width} pixels; expected {height} × {width}")
    return np.asarray(picture.convert("L" if channels == 1 else "RGB")).reshape(like)


def measures(images: np.ndarray) -> str:
    """Returns the size of images [N H W C] in words."""
    return " × ".join(map(str, images.shape[1:]))


def holds(folder: str, part: str) -> bool:
    """Whether a user's folder contains one or more files of images for a part."""
    return any(name.startswith(NAMES[part]) for name in _images(files.user_path(folder)))


def _images(folder: Path) -> list[str]:
    """Returns the names of the image files in a folder. PNG and JPEG files are not counted, whatever their names."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file() and "images" in path.name)
        return [name for name in names if not name.lower().endswith(photos.SUFFIXES)]
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from error


def _within(folder: Path, part: str) -> Path:
    """Returns the file of a part's images in a folder. A plain copy is preferred to a gzipped one."""
    names = _images(folder)
    found = [name for name in names if name.startswith(NAMES[part])]
    found = [name for name in found if name.removesuffix(".gz") == name or name.removesuffix(".gz") not in found]
    expected = " or ".join(f"{start}-images…" for start in NAMES[part])
    if not found:
        present = names or sorted(path.name for path in folder.iterdir())
        raise DataError(
            f"{folder} contains no IDX file {expected}; labels are read from the same name with 'labels' instead of "
            f"'images'; found: {_first(present) or 'nothing'}"
        )
    if len(found) > 1:
        raise DataError(f"{folder} contains several files {expected}: {', '.join(found)}; specify one of them")
    return folder / found[0]


def _first(names: list[str]) -> str:
    """Returns the first eight names in words."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _labels(images: Path) -> Path:
    """Returns the file of the labels of a file of images; raises DataError if there is none."""
    if "images" not in images.name:
        raise DataError(
            f"{images}: expected a file name with 'images'; labels are read from the same name with 'labels' instead"
        )
    if (found := labels_of(images)) is not None:
        return found
    name = _labels_name(images)
    raise DataError(f"{images} has no labels; expected {name} or {name}.gz in the same folder")


def labels_of(images: Path) -> Path | None:
    """Returns the file of the labels next to a file of images, or None if there is none."""
    name = _labels_name(images)
    places = [images.with_name(name), images.with_name(f"{name}.gz")] if "images" in images.name else []
    return next((path for path in places if path.is_file()), None)


def _labels_name(images: Path) -> str:
    """Returns the name of the plain file of the labels of a file of images."""
    return images.name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1").removesuffix(".gz")


def checked(pair: Iterable[np.ndarray], names: Iterable[str | Path]) -> Labelled:
    """Checks arrays of images and labels as they were read from files.

    Args:
      pair: the images [N H W], [N H W 1] or [N H W 3], and the labels [N].
      names: the names of both files, used in messages.

    Returns:
      The images with an axis of channels, and the labels as int32.

    Raises:
      DataError: if types or shapes are wrong, there are no images, the lengths differ, or a label is out of range.
    """
    (images, labels), (one, other) = pair, names
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] not in (1, 3)):
        raise DataError(
            f"{one} contains {images.dtype.name} with shape {images.shape}; expected images as uint8 with shape "
            "(N, rows, columns), or (N, rows, columns, 3) in colour"
        )
    if not images.size:
        raise DataError(f"{one} contains no images; its shape is {images.shape}")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"{other} contains {labels.dtype.name} with shape {labels.shape}; expected labels as 1-D integers"
        )
    if len(images) != len(labels):
        raise DataError(f"{one} contains {len(images)} images, but {other} contains {len(labels)} labels")
    if (wrong := (labels < 0) | (labels >= MOST)).any():
        n = int(wrong.argmax())
        raise DataError(f"{other}: label {n + 1} is {labels[n]}, which is out of range; classes are 0 … {MOST - 1}")
    return Labelled(images if images.ndim == 4 else images[..., None], labels.astype(np.int32))
