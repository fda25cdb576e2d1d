"""Images with boxes around what is in them: a table of boxes, and pictures that are resized as they are read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from attnlab.data import photos
from attnlab.data.bundles import Files
from attnlab.data.files import DataError, given, text

CORNERS = ("xmin", "ymin", "xmax", "ymax")
COLUMNS = ("image", "label", *CORNERS)
SIZE = ("width", "height")  # columns that a table may have besides
SUFFIXES = (".jpg", ".jpeg", ".png")


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
    """Scenes of one part of a data set; how many boxes were dropped for having no area, or cut off at the border."""

    scenes: list[Scene]
    dropped: int
    cut: int


def table(content: str, path: str) -> list[Row]:
    """The rows of a table with tabs between its columns, which the first line names: `COLUMNS`, and perhaps `SIZE`.

    Raises DataError naming the line for a column that is missing or twice there, and for what is no number.
    """
    lines = content.removeprefix("\ufeff").splitlines()
    names = lines[0].split("\t") if lines else []
    if missing := [name for name in COLUMNS if names.count(name) != 1]:
        raise DataError(
            f"{path}, line 1: one column {missing[0]!r} is needed, of {', '.join(COLUMNS)}, with tabs between; {names=}"
        )
    sized = all(name in names for name in SIZE)
    rows = []
    for n, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(names):
            raise DataError(f"{path}, line {n}: {len(names)} columns expected, {len(cells)} found")
        cell = dict(zip(names, map(str.strip, cells), strict=True))
        if empty := [name for name in ("image", "label") if not cell[name]]:
            raise DataError(f"{path}, line {n}: {empty[0]} is empty")
        number = lambda name, cell=cell, n=n: _number(cell[name], f"{path}, line {n}: {name}")
        size = tuple(map(number, SIZE)) if sized else ()
        rows.append(Row(n, cell["image"], cell["label"], tuple(map(number, CORNERS)), size))
    return rows


def scenes(
    files: Files, names: Iterable[str], rows: Sequence[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> Scenes:
    """The images of those names, which are those of their files without the suffix, at a size (rows, columns).

    `path` is the table's. A box that reaches beyond its image is cut off at the border; one that is empty, then, is
    dropped. Raises DataError naming the line for a label that is no class, an image that is not there and a size that
    is not the image's; naming the image where it is damaged.
    """
    by_image: dict[str, list[Row]] = {name: [] for name in names}
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
    return Scenes([scene for scene, _, _ in found], sum(lost for _, lost, _ in found), sum(cut for _, _, cut in found))


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
        if name.lower().endswith(SUFFIXES) and found.setdefault(_stem(name), name) != name:
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
    for part, (found, dropped, cut) in parts.items():
        if dropped:
            yield f"{part}: {dropped} {'box' if dropped == 1 else 'boxes'} without area dropped"
        if cut:
            yield f"{part}: {cut} {'box' if cut == 1 else 'boxes'} cut off at the border of the image"
        there = {int(label) for scene in found for label in scene.labels}
        if absent := [name for n, name in enumerate(classes) if n not in there]:
            yield f"{part}: no box of {', '.join(absent)}, which its average leaves out"


def _scene(
    name: str, files: Files, file: str, rows: list[Row], classes: Sequence[str], size: tuple[int, int], path: str
) -> tuple[Scene, int, int]:
    image, sides, digest = picture(files[file], file, size)
    for row in rows:
        if row.size and row.size != sides:
            says, has = (" × ".join(f"{side:g}" for side in each) for each in (row.size, sides))
            raise DataError(f"{path}, line {row.line}: the image {name!r} is said to be {says}, and is {has}")
    whole = np.array([row.corners for row in rows], np.float64).reshape(-1, 4) / np.tile(sides, 2)
    boxes = whole.clip(0, 1).astype(np.float32)
    good = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    cut = (good & ((whole < 0) | (whole > 1)).any(axis=1)).sum()
    labels = np.array([classes.index(row.label) for row in rows], np.int32)
    return Scene(name, image, boxes[good], labels[good], digest), int((~good).sum()), int(cut)


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return path.stem if path.suffix.lower() in SUFFIXES else path.name


def _number(cell: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where} is {cell!r}, no number")
    return number
