"""Lists the files and the folders in a user's folder."""

import os
from pathlib import Path, PurePath

from attnlab.data.io.files import DataError


def files(root: Path) -> list[Path]:
    """Returns the files under a folder, in the order of their paths.

    Links are followed. Files and folders that are `hidden` are left out.

    Raises:
      DataError: if a folder cannot be read, or a link leads to a folder that contains the link.
    """
    found = []
    try:
        for place, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
            here = Path(place)
            folders[:] = sorted(name for name in folders if not hidden(name))
            for name in folders:
                _check_link(root, here / name)
            # Broken links are kept. The reader of the file reports them.
            each = [here / name for name in names if not hidden(name)]
            found += [path for path in each if path.is_file() or path.is_symlink()]
    except OSError as error:
        raise DataError(f"{error.filename or root} cannot be read: {error.strerror or error}") from error
    return sorted(found)


def subfolders(root: Path) -> list[Path]:
    """Returns the folders in a folder, sorted. Links are followed. Those that are `hidden` are left out.

    Raises:
      DataError: if the folder cannot be read.
    """
    try:
        return sorted(path for path in root.iterdir() if path.is_dir() and not hidden(path.name))
    except OSError as error:
        raise DataError(f"{error.filename or root} cannot be read: {error.strerror or error}") from error


def hidden(name: str) -> bool:
    """Whether any part of a path begins with a dot, or is the folder that macOS adds to archives.

    >>> hidden("a/b.png"), hidden("a/._b.png"), hidden("__MACOSX/a/b.png")
    (False, True, True)
    """
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePath(name).parts)


def _check_link(root: Path, folder: Path) -> None:
    """Raises DataError if a folder is a link to a folder that contains it, which would never end."""
    if not folder.is_symlink():
        return
    target, around = folder.resolve(), [each for each in folder.parents if each.is_relative_to(root)]
    if any(each.resolve().is_relative_to(target) for each in around):
        raise DataError(f"{folder} is a link to {target}, which contains the link")


def _refuse(error: OSError) -> None:
    """Raises the error that `os.walk` met; by default it would ignore it."""
    raise error
