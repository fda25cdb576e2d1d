"""A lock on a run folder: two trainers in one folder would interleave their records."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.lab.jsonfile import named


class LockedError(Exception):
    """Another process is training in the folder."""

    exit_code = 2


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock.

    Raises LockedError, naming the process that has it; FolderError where the folder cannot be written in.
    The system lets go of it when the process ends, however it ends, so that no lock is ever stale.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    path = folder / "lock"
    with named(path):
        file = path.open("a+")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise LockedError(
                f"{folder} is held by {holder}, which is training there: wait for it, or choose another --out"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
