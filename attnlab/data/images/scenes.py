"""Images with boxes around what is in them: a table of boxes, and pictures that are resized as they are read."""

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
from attnlab.data.io.files import DataError, given, text
from attnlab.data.names import composed
from attnlab.data.text.parallel import lines

CORNERS = ("xmin", "ymin", "xmax", "ymax")
COLUMNS = ("image", "label", *CORNERS)
SIZE = ("width", "height")  # columns that a table may have besides
REVERSED, FLAT, OUTSIDE = "with corners reversed dropped", "without area dropped", "outside the image dropped"
CUT = "cut off at the border of the image"
CHANGES = (REVERSED, FLAT, OUTSIDE, CUT)  # of boxes in reading, as notes tell them


class Row(NamedTuple):
    """A line of a table: whose box, around what, (left, top, right, bottom) in pixels; its image's size, if said."""

    line: int
    image: str
    label: str
    corners: tuple[float, ...]
    size: tuple[float, ...]


class Scene(NamedTuple):
    """An image [H W 3] uint8 with boxes [N 4] float32 and the class of each [N] int32; the sha256 of its file.

    Boxes are (left, top, right, bottom) in shares of the image's sides, 0 … 1, and all have an area.
    """

    name: str
    image: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray
    digest: str


class Scenes(NamedTuple):
    """Scenes of one part of a data set; of `CHANGES` those that were made in reading, and to how many boxes."""

    scenes: list[Scene]
    changes: Mapping[str, int]


def table(content: str, path: str) -> list[Row]:
    """The rows of a table with tabs between its columns, which the first line names: `COLUMNS`, and perhaps `SIZE`.

    Raises DataError naming the line for a column that is missing or twice there, and for what is no number; and where
    no corner lies beyond 1: those are shares of an image's sides.
    """
    first, *more = lines(content) or [""]
    names = first.split("\t") if first else []
    if missing := [name for name in COLUMNS if names.count(name) != 1]:
        raise DataError(
            f"{path}, line 1: one column {missing[0]!r} is needed, of {', '.join(COLUMNS)}, with tabs between; {names=}"
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
        raise DataError(f"{path}: boxes are wanted in pixels, and all corners lie within {min(0, min(found)):g} … 1")
    return rows


def scenes(
    files: Files, names: Iterable[str], rows: Sequence[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> Scenes:
    """The images of those names, which are those of their files without the suffix, at a size (rows, columns).

    `path` is the table's. A box that reaches beyond its image is cut off at the border; one that lies outside, has no
    area, or ends before it begins is dropped. Raises DataError naming the line for a label that is no class, an image
    that is not there and a size that is not the image's; naming the image where it is damaged.
    """
    by_image: dict[str, list[Row]] = {composed(name): [] for name in names}
    images = pictures(files, path)
    for row in rows:
        if (name := _stem(row.image)) not in by_image:
            raise DataError(f"{path}, line {row.line}: there is no image {row.image!r}")
        if row.label not in classes:
            raise DataError(f"{path}, line {row.line}: the label {row.label!r} is none of {', '.join(classes)}")
        by_image[name].append(row)
    if missing := [name for name in by_image if name not in images]:
        raise DataError(f"{path}: the image {missing[0]!r} is missing")
    found = [_scene(name, files, images[name], rows, classes, size, path) for name, rows in by_image.items()]
    counts = Counter(change for _, changes in found for change in changes)
    return Scenes([scene for scene, _ in found], {change: counts[change] for change in CHANGES if counts[change]})


def picture(file: bytes | Path, path: str | Path, size: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int], str]:
    """A picture as [rows columns 3] uint8 of that size, the (width, height) that it had, and the sha256 of its file.

    Raises DataError as `photos.opened`.
    """
    from PIL import Image

    content, path = given(file, path)
    rows, columns = size
    whole = photos.opened(content, path).convert("RGB")
    fitted = whole if whole.size == (columns, rows) else whole.resize((columns, rows), Image.Resampling.BILINEAR)
    return np.asarray(fitted), whole.size, hashlib.sha256(content).hexdigest()


def pictures(files: Files, path: str) -> dict[str, str]:
    """The pictures among files, by their names without folder and suffix. DataError where two have the same."""
    found: dict[str, str] = {}
    for name in files:
        if name.lower().endswith(photos.SUFFIXES) and found.setdefault(_stem(name), name) != name:
            raise DataError(f"{path} holds two images of the name {_stem(name)!r}: {found[_stem(name)]} and {name}")
    return found


def listed(files: Files, name: str) -> tuple[list[Row], str]:
    """The rows of the one table, a file whose name ends in .tsv, that a folder or an archive holds; its path."""
    tables = [each for each in files if each.lower().endswith(".tsv")]
    if len(tables) != 1:
        raise DataError(
            f"{name} must hold one table of boxes, named as .tsv, with tabs between {', '.join(COLUMNS)}; "
            f"found: {', '.join(tables) or 'none'}"
        )
    path = f"{name}/{tables[0]}"
    return table(text(given(files[tables[0]], path)[0], path), path), path


def notes(parts: Mapping[str, Scenes], classes: Sequence[str]) -> Iterator[str]:
    """What a person should know of how they were read."""
    for part, (found, changes) in parts.items():
        for change, count in changes.items():
            yield f"{part}: {count} {'box' if count == 1 else 'boxes'} {change}"
        there = {int(label) for scene in found for label in scene.labels}
        if absent := [name for n, name in enumerate(classes) if n not in there]:
            yield f"{part}: no box of {', '.join(absent)}, which its average leaves out"


def _scene(
    name: str, files: Files, file: str, rows: list[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> tuple[Scene, list[str]]:
    image, sides, digest = picture(files[file], file, size)
    for row in rows:
        if row.size and row.size != sides:
            says, has = (" × ".join(f"{side:g}" for side in each) for each in (row.size, sides))
            raise DataError(f"{path}, line {row.line}: the image {name!r} is said to be {says}, and is {has}")
    whole = np.array([row.corners for row in rows], np.float64).reshape(-1, 4) / np.tile(sides, 2)
    boxes = whole.clip(0, 1).astype(np.float32)
    changes = _changes(whole, boxes)
    good = np.isin(changes, ["", CUT])
    labels = np.array([classes.index(row.label) for row in rows], np.int32)
    return Scene(name, image, boxes[good], labels[good], digest), changes.tolist()


def _changes(whole: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """What is changed of each box, "" where nothing is: boxes as they are given, and as they are cut off, in shares."""
    first, last = whole[:, :2], whole[:, 2:]
    cases = [
        (REVERSED, last < first),
        (FLAT, last == first),
        (OUTSIDE, (last <= 0) | (first >= 1)),
        # So narrow that float32 has nothing between its sides.
        (FLAT, boxes[:, 2:] <= boxes[:, :2]),
        (CUT, (whole < 0) | (whole > 1)),
    ]
    return np.select([is_so.any(axis=1) for _, is_so in cases], [change for change, _ in cases], "")


def _stem(name: str) -> str:
    path = PurePosixPath(composed(name))
    return path.stem if path.suffix.lower() in photos.SUFFIXES else path.name


def _number(cell: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where} is {cell!r}, no number")
    return number
