"""A user's images for inference: IDX files, folders of pictures, and tables of pictures and classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.data.images import idx_files, listing, photos
from attnlab.data.images.labelled import Labelled, checked, measures
from attnlab.data.images.listing import Listed
from attnlab.data.io import arrays, files
from attnlab.data.io.files import DataError

UNKNOWN = -1  # the label of an image of unknown class


def pictures(name: str, like: tuple[int, int, int], classes: Sequence[str]) -> tuple[Labelled, list[str] | None]:
    """Reads images for inference, with their classes if these are given.

    Args:
      name: one of
        - an IDX file of images, with or without its labels next to it, or a folder with such a file for the test;
        - a PNG or JPEG file, whose class is not known;
        - a folder of such files, either in subfolders named by class, or in the folder itself, without classes. In a
          folder divided into parts, the subfolder test is read;
        - a table whose name ends in .tsv. A line is the path of a picture, relative to the table's folder, a tab and
          its class, or only the path.
      like: the shape (H, W, C) of the images that the model expects.
      classes: the classes that the model knows.

    Returns:
      The images [N H W C] with their labels, −1 if the class is not known, and the names of the images. The names are
      None for an IDX file.

    Raises:
      DataError: if an image has another size, a class is not one of `classes`, or there is no image. The message names
        the file and the line.
    """
    path = files.user_path(name)
    if path.is_dir() and not idx_files.holds(name, "test"):
        root = listing.parts(path).get("test", path)
        found, _ = listing.folder(root)
        if not found:
            raise DataError(f"{root} contains no images; expected an IDX file test-images…, or PNG or JPEG files")
    elif path.suffix.lower() in photos.SUFFIXES:
        found = [Listed(path, path.name, None, str(path))]
    elif path.suffix.lower() == listing.TABLE:
        found = listing.table(path)
    else:
        return _idx(name, like, len(classes)), None
    labels = [UNKNOWN if each.label is None else listing.label(each, classes) for each in found]
    held = np.stack([photos.read(str(each.path), like) for each in found])
    return Labelled(held, np.array(labels, np.int32)), [each.name for each in found]


def _idx(name: str, like: tuple[int, int, int], classes: int) -> Labelled:
    """Reads an IDX file of images, with labels if there are any."""
    path = idx_files.chosen(name, "test")
    if idx_files.labels_of(path) is None:
        array = arrays.idx(path)
        found = checked([array, np.zeros(len(array), np.int32)], [path, path])
        found = Labelled(found.images, np.full(len(found.images), UNKNOWN, np.int32))
    else:
        found = idx_files.read_user_images(name, "test")
    if found.images.shape[1:] != like:
        has, needs = measures(found.images), " × ".join(map(str, like))
        raise DataError(f"{path} contains images of {has}, but the model expects {needs}")
    if (label := int(found.labels.max())) >= classes:
        n = int(found.labels.argmax()) + 1
        raise DataError(f"{path}, image {n}: label {label} is out of range; classes are 0 … {classes - 1}")
    return found
