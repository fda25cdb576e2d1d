"""Images of a user's that are to be answered: IDX files, folders of pictures, tables of pictures and classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnlab.data.images import images, photos
from attnlab.data.images.images import Labelled
from attnlab.data.io import arrays, files, folders
from attnlab.data.io.files import DataError
from attnlab.data.names import composed
from attnlab.data.text.parallel import lines

UNKNOWN = -1  # the label of an image whose class is not known


def pictures(name: str, like: tuple[int, int, int], classes: Sequence[str]) -> tuple[Labelled, list[str] | None]:
    """Images [N H W C] of a file or a folder, their labels, −1 where none is known, and their names; None: numbers.

    `name` is one of
    - an IDX file of images, with its labels next to it or without, or a folder that holds one for the test;
    - a picture, PNG or JPEG, whose class is not known;
    - a folder of pictures, each in a subfolder that is named by its class, or in the folder itself without a class;
    - a table, named as .tsv, of a picture's path from the table's folder, a tab and its class; or of paths alone.

    Raises DataError, naming the file and the line, for images of another size than `like`, for a class that is none of
    `classes`, and where there is no image.
    """
    path = files.user_path(name)
    if path.is_dir() and not images.holds(name, "test"):
        return _read(_foldered(path, classes), like)
    if path.suffix.lower() in photos.SUFFIXES:
        return _read([(path, path.name, UNKNOWN)], like)
    if path.suffix.lower() == ".tsv":
        return _read(_listed(path, classes), like)
    return _idx(name, like, len(classes)), None


def _idx(name: str, like: tuple[int, int, int], classes: int) -> Labelled:
    path = images.chosen(name, "test")
    if images.labels_of(path) is None:
        array = arrays.idx(path)
        found = images.checked([array, np.zeros(len(array), np.int32)], [path, path])
        found = Labelled(found.images, np.full(len(found.images), UNKNOWN, np.int32))
    else:
        found = images.read_user_images(name, "test")
    if found.images.shape[1:] != like:
        has, needs = images.measures(found.images), " × ".join(map(str, like))
        raise DataError(f"{path} holds images of {has}, and the model was made for {needs}")
    if (label := int(found.labels.max())) >= classes:
        n = int(found.labels.argmax()) + 1
        raise DataError(f"{path}, image {n}: its label {label} is out of range: the classes are 0 … {classes - 1}")
    return found


def _read(rows: list[tuple[Path, str, int]], like: tuple[int, int, int]) -> tuple[Labelled, list[str]]:
    held = np.stack([images.read(str(path), like) for path, _, _ in rows])
    return Labelled(held, np.array([label for *_, label in rows], np.int32)), [name for _, name, _ in rows]


def _foldered(root: Path, classes: Sequence[str]) -> list[tuple[Path, str, int]]:
    found = []
    for path in folders.files(root):
        if path.suffix.lower() not in photos.SUFFIXES:
            continue
        *inner, file = path.relative_to(root).parts
        if len(inner) > 1:
            raise DataError(f"{path} lies deeper than a folder for each class: which of its folders is the class?")
        label = _label(inner[0], classes, str(path)) if inner else UNKNOWN
        found.append((path, "/".join([*inner, file]), label))
    if not found:
        raise DataError(f"{root} holds no images: neither IDX files test-images… nor pictures")
    return found


def _listed(table: Path, classes: Sequence[str]) -> list[tuple[Path, str, int]]:
    found = []
    for number, line in enumerate(lines(files.text(files.contents(table, unpack=False), table)), start=1):
        if not line.strip():
            continue
        where, (name, *label) = f"{table}, line {number}", line.split("\t")
        if len(label) > 1:
            raise DataError(f"{where}: {len(label)} tabs: a line is a picture's path, a tab and its class")
        path = table.parent / name.strip()
        if not path.is_file():
            raise DataError(f"{where}: there is no picture {name.strip()!r}")
        found.append((path, name.strip(), _label(label[0].strip(), classes, where) if label else UNKNOWN))
    if not found:
        raise DataError(f"{table} holds no images: a line is a picture's path, a tab and its class")
    return found


def _label(name: str, classes: Sequence[str], where: str) -> int:
    if (label := composed(name)) not in classes:
        shown = ", ".join(classes[:12]) + (", …" if len(classes) > 12 else "")
        raise DataError(f"{where}: its class, {label!r}, is none of the {len(classes)} trained with: {shown}")
    return list(classes).index(label)
