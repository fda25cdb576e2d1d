"""Lists of pictures with their classes, from folders with a subfolder for each class and from tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from attnlab.data.images import photos
from attnlab.data.io import files, folders
from attnlab.data.io.files import DataError, lines
from attnlab.data.names import composed
from attnlab.storage.file_names import as_name, as_text

PART_FOLDERS = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}  # the subfolders of the parts
TABLE = ".tsv"  # how the names of tables end


class Listed(NamedTuple):
    """A picture that is listed in a folder or a table. Its file has not been read."""

    path: Path
    """The file."""
    name: str
    """The name of the picture: its path below the folder, or as the table gives it."""
    label: str | None
    """The name of its class, None if it has none."""
    where: str
    """Where it is listed, used in messages: the file, or the table and the line."""


def parts(root: Path) -> dict[str, Path]:
    """Returns the subfolders of a folder that is divided into parts, by "train", "valid" and "test".

    A folder is divided if a subfolder that is named as a part has subfolders itself, or if there are several subfolders
    and all of them are named as parts. Otherwise such a name is the name of a class, and the result is empty.

    Raises:
      DataError: if a folder cannot be read, or the folder has two subfolders for a part.
    """
    inside = {path.name: path for path in folders.subfolders(root)}
    found = {part: [inside[name] for name in names if name in inside] for part, names in PART_FOLDERS.items()}
    held = [path for each in found.values() for path in each]
    if not any(folders.subfolders(path) for path in held) and not 1 < len(held) == len(inside):
        return {}
    for each in found.values():
        if len(each) > 1:
            raise DataError(f"{root} contains several folders for one part: {', '.join(path.name for path in each)}")
    return {part: each[0] for part, each in found.items() if each}


def folder(root: Path) -> tuple[list[Listed], list[Path]]:
    """Lists the PNG and JPEG files in a folder in the order of their paths, and the other files in it.

    The class of a picture is the name of its subfolder. A picture in the folder itself has none.

    Raises:
      DataError: if a picture is nested more deeply. Also as `folders.files`.
    """
    found, other = [], []
    for path in folders.files(root):
        if path.suffix.lower() not in photos.SUFFIXES:
            other.append(path)
            continue
        *inner, file = path.relative_to(root).parts
        if len(inner) > 1:
            raise DataError(f"{path} is nested too deeply; expected one level of subfolders, one for each class")
        if not _is_text(name := as_text("/".join([*inner, file]))):
            raise DataError(f"{root} contains {name!a}, whose name is not UTF-8; rename it")
        found.append(Listed(path, name, composed(inner[0]) if inner else None, str(path)))
    return found, other


def table(path: Path) -> list[Listed]:
    """Lists the pictures in a table: on each line a path, relative to the table's folder, a tab and the class.

    A line may also be only a path. Empty lines are left out.

    Raises:
      DataError: if a picture does not exist, a line has several tabs, or there are no pictures. The message names the
        line.
    """
    found = []
    for number, line in enumerate(lines(files.text(files.contents(path, unpack=False), path)), start=1):
        if not line.strip():
            continue
        where, (name, *label) = f"{path}, line {number}", line.split("\t")
        if len(label) > 1:
            raise DataError(f"{where}: found {len(label)} tabs; expected the path of a picture, a tab and its class")
        picture = path.parent / as_name(name.strip())
        if not _is_file(picture):
            raise DataError(f"{where}: the picture {name.strip()!r} does not exist")
        found.append(Listed(picture, name.strip(), composed(label[0].strip()) if label else None, where))
    if not found:
        raise DataError(f"{path} contains no images; expected the path of a picture, a tab and its class on each line")
    return found


def label(picture: Listed, classes: Sequence[str]) -> int:
    """Returns the index of the class of a picture that has one; raises DataError if it is not one of `classes`."""
    if picture.label not in classes:
        shown = ", ".join(classes[:12]) + (", …" if len(classes) > 12 else "")
        raise DataError(
            f"{picture.where}: class {picture.label!r} is not one of the {len(classes)} classes of training: {shown}"
        )
    return classes.index(picture.label)


def _is_file(path: Path) -> bool:
    """Whether a path is a file. A name that is too long is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether a name can be written as UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
