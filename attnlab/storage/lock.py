"""A lock on a run folder. Two processes that train in one folder would mix their records."""

import errno
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

from attnlab.storage.json_file import FolderError, folder_errors, is_running

HELD = (errno.EWOULDBLOCK, errno.EACCES)  # the error numbers if another process has the lock


class LockedError(Exception):
    """Another process is training in the folder."""

    exit_code = 2


@contextmanager
def locked(folder: Path, note: Callable[[str], None] = lambda text: None) -> Iterator[Callable[[], None]]:
    """Hold the lock of a run folder.

    The file `lock` names the process that holds the lock. It is empty if nobody does. The operating system releases the
    lock when the process ends in any way. If a process ended without clearing the file, the lock is taken over.

    Args:
        folder: The run folder.
        note: Is called with a line if the lock is taken over.

    Yields:
        A function that raises FolderError if the folder was removed, moved or replaced meanwhile. What is written after
        that would belong to no run, or to another one.

    Raises:
        LockedError: Another process holds the lock. The message gives its host, process and start.
        FolderError: The folder cannot be written, or its file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # this system has no such locks
        yield lambda: None
        return
    path = folder / "lock"
    with folder_errors(path):
        file = path.open("a+", encoding="utf-8", errors="replace")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in HELD:
                raise FolderError(f"{path}: cannot be locked: {error.strerror}; choose another --out") from error
            raise LockedError(
                f"{folder} is locked by {_holder(file)}, which is training in it; wait for it, or choose another --out"
            ) from error
        if before := _words(file):
            note(f"{folder}: taking over the lock of {before}, which stopped without releasing it")
        with folder_errors(path):
            _say(file, f"process {os.getpid()} on {socket.gethostname()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}")
        try:
            yield partial(_check_held, path, file)
        finally:
            with suppress(OSError):  # the disk may be gone, and the system releases the lock anyway
                _say(file, "")


def _check_held(path: Path, file: TextIO) -> None:
    """Raise FolderError if the lock's file is no longer the one at `path`."""
    with folder_errors(path):
        try:
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
    raise FolderError(
        f"{path.parent} was moved or removed during training, so nothing more is written; if it was moved, "
        "run the same command with the --out of its new location"
    )


def _holder(file: TextIO) -> str:
    """Return what the lock's holder wrote. A process that has just taken the lock gets a second to write it."""
    for _ in range(20):
        found = re.match(r"process (\d+) on ", words := _words(file))
        if found and is_running(int(found[1])):
            return words
        time.sleep(0.05)
    return _words(file) or "another process"


def _words(file: TextIO) -> str:
    file.seek(0)
    # After a crash the file may hold arbitrary bytes.
    return "".join(letter for letter in file.read(200) if letter.isprintable()).strip()


def _say(file: TextIO, words: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(words)
    file.flush()
