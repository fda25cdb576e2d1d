"""What lies in a folder of one's own."""

import os
from pathlib import Path, PurePath

from attnlab.data.io.files import DataError


def files(root: Path) -> list[Path]:
    """The files under a folder, in the order of their paths, those behind links too; what is `hidden` is passed over.

    Raises DataError where a folder cannot be read, or a link leads to a folder that it lies in itself.
    """
    found = []
    try:
        for place, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
            here = Path(place)
            folders[:] = sorted(name for name in folders if not hidden(name))
            for name in folders:
                _check_link(root, here / name)
            # A link that leads nowhere is named by who reads it.
            each = [here / name for name in names if not hidden(name)]
            found += [path for path in each if path.is_file() or path.is_symlink()]
    except OSError as error:
        raise DataError(f"{error.filename or root} cannot be read: {error.strerror or error}") from error
    return sorted(found)


def hidden(name: str) -> bool:
    """Whether a part of a path begins with a dot, or is the folder that macOS puts beside what it packs.

    >>> hidden("a/b.png"), hidden("a/._b.png"), hidden("__MACOSX/a/b.png")
    (False, True, True)
    """
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePath(name).parts)


def _check_link(root: Path, folder: Path) -> None:
    if not folder.is_symlink():
        return
    target, around = folder.resolve(), [each for each in folder.parents if each.is_relative_to(root)]
    if any(each.resolve().is_relative_to(target) for each in around):
        raise DataError(f"{folder} is a link to {target}, a folder that it lies in itself")


def _refuse(error: OSError) -> None:
    raise error
