"""Selections of labelled images, stratified by class, and random changes of images."""

from collections.abc import Sequence

import numpy as np

from attnlab.data.images.labelled import Labelled
from attnlab.data.io.files import DataError
from attnlab.data.rng import generator


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


def small_class_notes(train: Labelled, share: float) -> tuple[str, ...]:
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
    held = held_out(whole.labels, share)
    return Labelled(whole.images[~held], whole.labels[~held]), Labelled(whole.images[held], whole.labels[held])


def held_out(
    labels: np.ndarray, share: float, part: str = "validation", classes: Sequence[str] | None = None
) -> np.ndarray:
    """Chooses a share of every class to hold out, always the same examples.

    Args:
      labels: the class of each example [N].
      share: as in `portion`.
      part: what they are held out for, used in messages.
      classes: the names of the classes, used in messages. None names them by number.

    Returns:
      Whether each example is held out [N] bool.

    Raises:
      DataError: if nothing would be left of a class.
    """
    held = np.zeros(len(labels), bool)
    held[portion(labels, share, 0)] = True
    if lost := set(labels.tolist()) - set(labels[~held].tolist()):
        name = min(lost) if classes is None else classes[min(lost)]
        raise DataError(
            f"class {name} has too few images to hold out {share:g} of them for {part}; provide files for {part}"
        )
    return held


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
