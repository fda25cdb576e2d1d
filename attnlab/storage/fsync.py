"""Write files so that they survive a crash."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO


def fsync(file: IO[bytes]) -> None:
    """Flush the content of an open file to the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def fsync_folder(path: Path) -> None:
    """Flush the entries of a folder to the disk, if the system and the file system support it. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) and os.name != "nt":
            raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, and flush it and the entries of its folder to the disk. Raises OSError.

    The folder is made if it does not exist. After a crash, the file has either the old or the new content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            fsync(file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    fsync_folder(path.parent)
