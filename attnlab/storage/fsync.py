"""Flush written data to the disk."""

import errno
import os
from pathlib import Path
from typing import Any


def fsync(file: Any) -> None:
    """Flush the content of an open file to the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def fsync_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, if the system and the file system support it. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) and os.name != "nt":
            raise
