"""Runs stay in the folders that they were given: what is written there is not led elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attnlab.storage.json_file import FolderError, folder_errors


def confined(folder: Path) -> None:
    """Raise FolderError where a run's folder, that of its study, or anything directly in it is a link, pipe or device.

    Through a link, a run would write its record over a file, and `--fresh` would drop a folder, that is not its own;
    a pipe or a device never ends. The folder need not be there.
    """
    with folder_errors(folder):
        os.fsencode(folder)  # what the locale cannot write is not there either
        for path in (folder.parent, folder, *(sorted(folder.iterdir()) if folder.is_dir() else ())):
            if path.is_symlink():
                raise FolderError(f"{path} is a link, out of which a run would write: put its folder in its place")
            if path.exists() and stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                raise FolderError(f"{path} is a pipe or a device, and no file of a run")
