"""A user's pictures for training, validation and test: folders with a subfolder for each class, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.data.images import idx_files, listing, photos
from attnlab.data.images.labelled import MOST, Labelled, first_names
from attnlab.data.images.listing import Listed
from attnlab.data.images.sampling import held_out
from attnlab.data.io import folders
from attnlab.data.io.files import DataError, user_path

CLASSES = "subfolder of PNG or JPEG files for each class"
WORDS = {"valid": "validation", "test": "the test"}  # what pictures are held out for


class PictureParts(NamedTuple):
    """The parts of a user's pictures."""

    images: dict[str, Labelled]
    """The images of "train", "valid" and "test"."""
    classes: tuple[str, ...]
    """The names of the classes of the training part, sorted."""
    names: dict[str, list[str]]
    """The names of the pictures of each part."""
    notes: tuple[str, ...]
    """Lines about files that were ignored, and about test images that were held out."""


def holds(name: str) -> bool:
    """Whether training images are not IDX files but pictures, or a file or folder of neither form."""
    path = user_path(name)
    if path.is_dir():
        return not idx_files.holds(name, "train")
    return "images" not in path.name or path.suffix.lower() in (listing.TABLE, *photos.SUFFIXES)


def places(names: Mapping[str, str]) -> dict[str, Path]:
    """Returns the folder or table of each part that has one.

    Args:
      names: the path of each part, "" for none. If the path of the training part is a folder with subfolders train,
        valid (or val) and test, these are the parts for which no other path is given.
    """
    found = _inside(names["train"])
    for part, name in names.items():
        if name:
            found[part] = _inside(name).get(part, user_path(name))
    return found


def unread(name: str) -> tuple[str, ...]:
    """Returns a note on the folders in a folder divided into parts that are none of them."""
    parts = _inside(name).values()
    other = [path.name for path in folders.subfolders(user_path(name)) if path not in parts] if parts else []
    end = "expected only train, valid (or val) and test"
    return (f"{name}: not read: {first_names(other)}; {end}",) if other else ()


def read(found: Mapping[str, Path], held: float) -> PictureParts:
    """Reads the pictures of all parts.

    Args:
      found: the folder or table of each part. It has "train". See `listing` for the forms.
      held: the fraction of every class of the training part that is held out for the validation and for the test, if
        they have no pictures.

    Returns:
      The parts. Their images have one channel if all pictures are stored in grayscale, and three otherwise.

    Raises:
      DataError: if a picture is damaged, has another size than the first, has no class, or has one that the training
        part lacks. Also if a class has no pictures, there are fewer than two classes, or too few pictures of a class to
        hold any out. The message names the file.
    """
    listed, notes = {}, []
    for part, place in found.items():
        listed[part], lines = _listed(place, part)
        notes += lines
    classes = _classes(found["train"], listed["train"])
    for part in ("test", "valid"):
        if part not in listed:
            rows = listed["train"]
            chosen = held_out(_labels(rows, classes), held, WORDS[part], classes).tolist()
            listed[part] = [row for row, out in zip(rows, chosen, strict=True) if out]
            listed["train"] = [row for row, out in zip(rows, chosen, strict=True) if not out]
            if part == "test":
                about = f"{len(listed[part])} of {len(rows)} pictures, {held:g} of every class, are the test images"
                notes.append(f"{found['train']}: {about}, because there are no others")
    images = photos.read_all([row.path for rows in listed.values() for row in rows])
    ends = np.cumsum([len(rows) for rows in listed.values()])
    split = dict(zip(listed, np.split(images, ends[:-1]), strict=True))
    return PictureParts(
        {part: Labelled(split[part], _labels(rows, classes)) for part, rows in listed.items()},
        classes,
        {part: [row.name for row in rows] for part, rows in listed.items()},
        tuple(notes),
    )


def _inside(name: str) -> dict[str, Path]:
    """Returns the parts in a folder, none for a file."""
    path = user_path(name)
    return listing.parts(path) if path.is_dir() else {}


def _listed(place: Path, part: str) -> tuple[list[Listed], list[str]]:
    """Lists the pictures of a part, each with a class, and returns notes on files that are ignored."""
    other = []
    if place.is_dir():
        found, other = listing.folder(place)
        if not any(each.label for each in found):
            raise _neither(place, part)
    elif place.suffix.lower() == listing.TABLE:
        found = listing.table(place)
    else:
        end = ", or an IDX file with 'images' in its name" if part == "train" else ""
        raise DataError(f"{place} is one file; expected a table of pictures (.tsv) or a folder with a {CLASSES}{end}")
    for each in found:
        if not each.label:
            raise DataError(f"{each.where}: the picture has no class; expected {_class_place(place)}")
    ignored = first_names([str(path.relative_to(place)) for path in other])
    are = "1 file is" if len(other) == 1 else f"{len(other)} files are"
    return found, [f"{place}: {are} ignored, not PNG or JPEG: {ignored}"] if other else []


def _class_place(place: Path) -> str:
    """Returns where the class of a picture is expected, in words."""
    return "a subfolder named by its class" if place.is_dir() else "the path of a picture, a tab and its class"


def _neither(place: Path, part: str) -> DataError:
    """Returns the error for a folder without IDX files and without pictures in folders of classes."""
    present = [str(path.relative_to(place)) for path in (*folders.files(place), *folders.subfolders(place))]
    forms = f"neither an IDX file train-images… nor a {CLASSES}" if part == "train" else f"no {CLASSES}"
    return DataError(f"{place} contains {forms}; found: {first_names(present) or 'nothing'}")


def _classes(place: Path, rows: Sequence[Listed]) -> tuple[str, ...]:
    """Returns the sorted names of the classes of the training part; raises DataError if they cannot be learned."""
    classes = tuple(sorted({each.label for each in rows if each.label}))
    if place.is_dir():
        with_pictures = {place / each.name.partition("/")[0] for each in rows}
        for path in folders.subfolders(place):
            if path not in with_pictures:
                raise DataError(f"{path} contains no PNG or JPEG files; add pictures of this class, or remove it")
    if len(classes) < 2:
        raise DataError(f"{place}: all images are of class {', '.join(classes)}; at least 2 classes are needed")
    if len(classes) > MOST:
        raise DataError(f"{place} has {len(classes):,} classes; at most {MOST:,} are supported")
    return classes


def _labels(rows: Sequence[Listed], classes: Sequence[str]) -> np.ndarray:
    """Returns the index of the class of each picture [N] int32."""
    return np.array([listing.label(each, classes) for each in rows], np.int32)
