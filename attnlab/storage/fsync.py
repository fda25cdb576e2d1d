"""What was written, on the disk and not in a buffer."""

import errno
import os
from pathlib import Path
from typing import Any


def fsync(file: Any) -> None:
    """Leave the content of an open file on the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def fsync_folder(path: Path) -> None:
    """Leave the names in a folder on the disk, where the system can; some file systems cannot. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) and os.name != "nt":
            raise
