"""Images with bounding boxes: a table of boxes, and pictures that are resized when they are read."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from attnlab.data.images import photos
from attnlab.data.io.bundles import Files
from attnlab.data.io.files import DataError, given, lines, text
from attnlab.data.names import composed

CORNERS = ("xmin", "ymin", "xmax", "ymax")
COLUMNS = ("image", "label", *CORNERS)
SIZE = ("width", "height")  # optional columns of a table
REVERSED, FLAT, OUTSIDE = "dropped (corners reversed)", "dropped (no area)", "dropped (outside the image)"
CUT = "clipped at the border of the image"
CHANGES = (REVERSED, FLAT, OUTSIDE, CUT)  # changes to boxes when they are read, in the words of the notes


class Row(NamedTuple):
    """A row of a table of boxes."""

    line: int
    """The number of the line, from 1."""
    image: str
    """The name of the image."""
    label: str
    """The class of the object in the box."""
    corners: tuple[float, ...]
    """(left, top, right, bottom) in pixels."""
    size: tuple[float, ...]
    """(width, height) of the image in pixels; empty if the table does not say."""


class Scene(NamedTuple):
    """An image with the boxes of the objects in it."""

    name: str
    """The name of the image."""
    image: np.ndarray
    """The pixels [H W 3] uint8."""
    boxes: np.ndarray
    """The boxes [N 4] float32: (left, top, right, bottom) as shares of the image's sides, 0 … 1. All have an area."""
    labels: np.ndarray
    """The class of each box [N] int32."""
    digest: str
    """The sha256 of the image's file."""


class Scenes(NamedTuple):
    """The scenes of one part of a data set."""

    scenes: list[Scene]
    """The scenes."""
    changes: Mapping[str, int]
    """The number of boxes to which each of `CHANGES` was made in reading; changes that did not occur are left out."""


def table(content: str, path: str) -> list[Row]:
    """Reads a tab-separated table of boxes.

    The first line has the names of the columns: `COLUMNS`, and optionally `SIZE`.

    Raises:
      DataError: if a column is missing or occurs twice, or a value is not valid; the message names the line. Also if no
        corner is above 1, because corners must be in pixels and not in shares of the sides.
    """
    first, *more = lines(content) or [""]
    names = first.split("\t") if first else []
    if missing := [name for name in COLUMNS if names.count(name) != 1]:
        raise DataError(
            f"{path}, line 1: expected one column {missing[0]!r}; the columns are {', '.join(COLUMNS)}, separated by "
            f"tabs; got {names}"
        )
    sized = all(name in names for name in SIZE)
    rows = []
    for n, line in enumerate(more, start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(names):
            raise DataError(f"{path}, line {n}: {len(names)} columns expected, {len(cells)} found")
        cell = dict(zip(names, (composed(each.strip()) for each in cells), strict=True))
        if empty := [name for name in ("image", "label") if not cell[name]]:
            raise DataError(f"{path}, line {n}: {empty[0]} is empty")
        number = lambda name, cell=cell, n=n: _number(cell[name], f"{path}, line {n}: {name}")
        size = tuple(map(number, SIZE)) if sized else ()
        rows.append(Row(n, cell["image"], cell["label"], tuple(map(number, CORNERS)), size))
    found = [corner for row in rows for corner in row.corners]
    if found and max(found) <= 1:
        raise DataError(f"{path}: expected boxes in pixels, but all corners are in {min(0, min(found)):g} … 1")
    return rows


def scenes(
    files: Files, names: Iterable[str], rows: Sequence[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> Scenes:
    """Reads images and their boxes.

    A box that reaches beyond its image is cut off at the border. A box that is outside of the image, has no area or has
    reversed corners is dropped.

    Args:
      files: the files, by name.
      names: the names of the images, which are the names of their files without suffix.
      rows: the boxes.
      classes: the names of the classes.
      size: the size (rows, columns) to which images are resized.
      path: the file of the table, used in messages.

    Raises:
      DataError: if a row has an unknown label, an unknown image or another size than its image; the message names the
        line. Also if an image is missing or damaged; the message names the image.
    """
    by_image: dict[str, list[Row]] = {composed(name): [] for name in names}
    images = pictures(files, path)
    for row in rows:
        if (name := _stem(row.image)) not in by_image:
            raise DataError(f"{path}, line {row.line}: the image {row.image!r} does not exist")
        if row.label not in classes:
            raise DataError(f"{path}, line {row.line}: label {row.label!r} is not one of {', '.join(classes)}")
        by_image[name].append(row)
    if missing := [name for name in by_image if name not in images]:
        raise DataError(f"{path}: the image {missing[0]!r} is missing")
    found = [_scene(name, files, images[name], rows, classes, size, path) for name, rows in by_image.items()]
    counts = Counter(change for _, changes in found for change in changes)
    return Scenes([scene for scene, _ in found], {change: counts[change] for change in CHANGES if counts[change]})


def picture(file: bytes | Path, path: str | Path, size: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int], str]:
    """Reads a picture and resizes it.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.
      size: the size (rows, columns) of the result.

    Returns:
      The image [rows columns 3] uint8, the (width, height) of the original, and the sha256 of the file.

    Raises:
      DataError: as `photos.decode`.
    """
    from PIL import Image

    content, path = given(file, path)
    rows, columns = size
    whole = photos.decode(content, path).convert("RGB")
    fitted = whole if whole.size == (columns, rows) else whole.resize((columns, rows), Image.Resampling.BILINEAR)
    return np.asarray(fitted), whole.size, hashlib.sha256(content).hexdigest()


def pictures(files: Files, path: str) -> dict[str, str]:
    """Returns the file names of the pictures, by their names without folder and suffix.

    Raises:
      DataError: if two pictures have the same name.
    """
    found: dict[str, str] = {}
    for name in files:
        if name.lower().endswith(photos.SUFFIXES) and found.setdefault(_stem(name), name) != name:
            raise DataError(
                f"{path} contains two images with the name {_stem(name)!r}: {found[_stem(name)]} and {name}"
            )
    return found


def listed(files: Files, name: str) -> tuple[list[Row], str]:
    """Reads the only table of boxes, a file whose name ends in .tsv, of a folder or an archive.

    Returns:
      The rows, and the path of the table.

    Raises:
      DataError: as `table`, and if there is not exactly one such file.
    """
    tables = [each for each in files if each.lower().endswith(".tsv")]
    if len(tables) != 1:
        raise DataError(
            f"{name} must contain one .tsv table of boxes, with the columns {', '.join(COLUMNS)} separated by tabs; "
            f"found: {', '.join(tables) or 'none'}"
        )
    path = f"{name}/{tables[0]}"
    return table(text(given(files[tables[0]], path)[0], path), path), path


def notes(parts: Mapping[str, Scenes], classes: Sequence[str]) -> Iterator[str]:
    """Yields the facts about reading that the user should know: changed boxes, and classes without boxes."""
    for part, (found, changes) in parts.items():
        for change, count in changes.items():
            yield f"{part}: {count} {'box' if count == 1 else 'boxes'} {change}"
        present = {int(label) for scene in found for label in scene.labels}
        if absent := [name for n, name in enumerate(classes) if n not in present]:
            yield f"{part}: there is no box of {', '.join(absent)}; the average leaves out these classes"


def _scene(
    name: str, files: Files, file: str, rows: list[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> tuple[Scene, list[str]]:
    """Returns the scene of one image, and the change that was made to each of its boxes."""
    image, sides, digest = picture(files[file], file, size)
    for row in rows:
        if row.size and row.size != sides:
            says, has = (" × ".join(f"{side:g}" for side in each) for each in (row.size, sides))
            raise DataError(f"{path}, line {row.line}: the size of the image {name!r} is given as {says}, but is {has}")
    whole = np.array([row.corners for row in rows], np.float64).reshape(-1, 4) / np.tile(sides, 2)
    boxes = whole.clip(0, 1).astype(np.float32)
    changes = _changes(whole, boxes)
    good = np.isin(changes, ["", CUT])
    labels = np.array([classes.index(row.label) for row in rows], np.int32)
    return Scene(name, image, boxes[good], labels[good], digest), changes.tolist()


def _changes(whole: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Returns the change to each box, or "" if there is none.

    Args:
      whole: the boxes as they are given [N 4], as shares of the image's sides.
      boxes: the same boxes, cut off at the border.
    """
    first, last = whole[:, :2], whole[:, 2:]
    cases = [
        (REVERSED, last < first),
        (FLAT, last == first),
        (OUTSIDE, (last <= 0) | (first >= 1)),
        # So narrow that both sides are the same number in float32.
        (FLAT, boxes[:, 2:] <= boxes[:, :2]),
        (CUT, (whole < 0) | (whole > 1)),
    ]
    return np.select([is_so.any(axis=1) for _, is_so in cases], [change for change, _ in cases], "")


def _stem(name: str) -> str:
    """Returns the name of a picture without folder and suffix."""
    path = PurePosixPath(composed(name))
    return path.stem if path.suffix.lower() in photos.SUFFIXES else path.name


def _number(cell: str, where: str) -> float:
    """Returns the finite number in a cell; raises DataError if there is none."""
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where} is {cell!r}, which is not a finite number")
    return number
