"""Confinement of runs to their folders: links that lead elsewhere are refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attnlab.storage.json_file import FolderError, folder_errors


def confined(folder: Path) -> None:
    """Raise FolderError if a run's folder, its study's folder, or an entry of a run's folder is a link, pipe or device.

    Through a link, a run could overwrite a file outside its folder, and `--fresh` could delete a folder there. Reading
    a pipe or a device may never end.

    Args:
        folder: the folder of the run. It need not exist.
    """
    with folder_errors(folder):
        os.fsencode(folder)  # raises for a name that the locale cannot encode
        for path in (folder.parent, folder, *(sorted(folder.iterdir()) if folder.is_dir() else ())):
            if path.is_symlink():
                raise FolderError(
                    f"{path} is a symbolic link, and a run writes only in its own folder; replace it by its target"
                )
            if path.exists() and stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                raise FolderError(f"{path} is a pipe or a device, not a file of a run")
