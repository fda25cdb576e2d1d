"""A user's images for inference: IDX files, folders of pictures, and tables of pictures and classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnlab.data.images import idx_files, photos
from attnlab.data.images.labelled import Labelled, checked, measures
from attnlab.data.io import arrays, files, folders
from attnlab.data.io.files import DataError, lines
from attnlab.data.names import composed

UNKNOWN = -1  # the label of an image of unknown class


def pictures(name: str, like: tuple[int, int, int], classes: Sequence[str]) -> tuple[Labelled, list[str] | None]:
    """Reads images for inference, with their classes if these are given.

    Args:
      name: one of
        - an IDX file of images, with or without its labels next to it, or a folder with such a file for the test;
        - a PNG or JPEG file, whose class is not known;
        - a folder of such files, either in subfolders named by class, or in the folder itself, without classes;
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
        return _read(_foldered(path, classes), like)
    if path.suffix.lower() in photos.SUFFIXES:
        return _read([(path, path.name, UNKNOWN)], like)
    if path.suffix.lower() == ".tsv":
        return _read(_listed(path, classes), like)
    return _idx(name, like, len(classes)), None


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


def _read(rows: list[tuple[Path, str, int]], like: tuple[int, int, int]) -> tuple[Labelled, list[str]]:
    """Reads the pictures of (path, name, label) rows."""
    held = np.stack([photos.read(str(path), like) for path, _, _ in rows])
    return Labelled(held, np.array([label for *_, label in rows], np.int32)), [name for _, name, _ in rows]


def _foldered(root: Path, classes: Sequence[str]) -> list[tuple[Path, str, int]]:
    """Lists the pictures in a folder as (path, name, label)."""
    found = []
    for path in folders.files(root):
        if path.suffix.lower() not in photos.SUFFIXES:
            continue
        *inner, file = path.relative_to(root).parts
        if len(inner) > 1:
            raise DataError(f"{path} is nested too deeply; expected one level of subfolders, one for each class")
        label = _label(inner[0], classes, str(path)) if inner else UNKNOWN
        found.append((path, "/".join([*inner, file]), label))
    if not found:
        raise DataError(f"{root} contains no images; expected an IDX file test-images…, or PNG or JPEG files")
    return found


def _listed(table: Path, classes: Sequence[str]) -> list[tuple[Path, str, int]]:
    """Lists the pictures in a table as (path, name, label)."""
    found = []
    for number, line in enumerate(lines(files.text(files.contents(table, unpack=False), table)), start=1):
        if not line.strip():
            continue
        where, (name, *label) = f"{table}, line {number}", line.split("\t")
        if len(label) > 1:
            raise DataError(f"{where}: found {len(label)} tabs; expected the path of a picture, a tab and its class")
        path = table.parent / name.strip()
        if not path.is_file():
            raise DataError(f"{where}: the picture {name.strip()!r} does not exist")
        found.append((path, name.strip(), _label(label[0].strip(), classes, where) if label else UNKNOWN))
    if not found:
        raise DataError(f"{table} contains no images; expected the path of a picture, a tab and its class on each line")
    return found


def _label(name: str, classes: Sequence[str], where: str) -> int:
    """Returns the index of a class; raises DataError if it is not known."""
    if (label := composed(name)) not in classes:
        shown = ", ".join(classes[:12]) + (", …" if len(classes) > 12 else "")
        raise DataError(f"{where}: class {label!r} is not one of the {len(classes)} classes of training: {shown}")
    return list(classes).index(label)
