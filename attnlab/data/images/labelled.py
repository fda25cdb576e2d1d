"""Images with their classes, and checks of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.data.io.files import DataError

MOST = 1000  # the largest number of classes; a greater label is probably a mistake


class Labelled(NamedTuple):
    """Images with their classes."""

    images: np.ndarray
    """The images [N H W C] uint8."""
    labels: np.ndarray
    """The class of each image [N] int32."""


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
                f"{part}: there is no image of {len(missing)} of {len(classes)} classes: {first_names(missing)}{end}"
            )
    return tuple(lines)


def measures(images: np.ndarray) -> str:
    """Returns the size of images [N H W C] in words."""
    return " × ".join(map(str, images.shape[1:]))


def first_names(names: Sequence[str]) -> str:
    """Returns the first eight names in words."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
