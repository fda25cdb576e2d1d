"""A lock on a run folder: two trainers in one folder would interleave their records."""

import errno
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from attnlab.storage.json_file import FolderError, folder_errors, lives

HELD = (errno.EWOULDBLOCK, errno.EACCES)  # what the system says where another process has the lock


class LockedError(Exception):
    """Another process is training in the folder."""

    exit_code = 2


@contextmanager
def locked(folder: Path, note: Callable[[str], None] = lambda text: None) -> Iterator[Callable[[], None]]:
    """Hold the folder's lock; its file says who does, and is empty when nobody does.

    Yields a check: it raises FolderError where the lock is no longer in the folder, which was removed, moved or
    replaced meanwhile. What is written after that would be of no run, or of another's.

    The system lets go of it when the process ends, however it ends. One that ended without saying so left its words:
    that the lock is taken over from it, `note` hears.

    Raises LockedError, naming host, process and start of who has it; FolderError where the folder cannot be written in
    or its disk knows no locks.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
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
                f"{folder} is held by {_holder(file)}, which is training there: wait for it, or choose another --out"
            ) from error
        if before := _words(file):
            note(f"{folder}: taking over from {before}, which stopped without releasing it")
        with folder_errors(path):
            _say(file, f"process {os.getpid()} on {socket.gethostname()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}")
        try:
            yield partial(_check_held, path, file)
        finally:
            with suppress(OSError):  # a disk that is gone; the system lets go of the lock
                _say(file, "")


def _check_held(path: Path, file: Any) -> None:
    with folder_errors(path):
        try:
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
    raise FolderError(
        f"{path.parent} was moved or removed while it trained, and nothing more is written; where it was moved, "
        "the same command continues with the --out of that place"
    )


def _holder(file: Any) -> str:
    """Who says that it holds the lock; who has just taken it is given a moment to say so."""
    for _ in range(20):
        found = re.match(r"process (\d+) on ", words := _words(file))
        if found and lives(int(found[1])):
            return words
        time.sleep(0.05)
    return _words(file) or "another process"


def _words(file: Any) -> str:
    file.seek(0)
    # Bytes of a crash are no reason to fail.
    return "".join(letter for letter in file.read(200) if letter.isprintable()).strip()


def _say(file: Any, words: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(words)
    file.flush()
