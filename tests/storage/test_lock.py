import errno
import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from attnlab.storage.json_file import FolderError
from attnlab.storage.lock import LockedError, locked

HOLD = """
import sys
from pathlib import Path
from attnlab.storage.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_that_another_process_holds_is_refused_naming_it(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        words = f"locked by process {other.pid} on {socket.gethostname()}, started 20"
        with pytest.raises(LockedError, match=re.escape(words)) as refused, locked(tmp_path):
            pass
        assert refused.value.exit_code == 2
        other.kill()
        other.wait()
    # A killed process holds no lock. The next process reports from which process it takes over.
    for said in ([f"{tmp_path}: taking over the lock of process {other.pid} on {socket.gethostname()}"], []):
        notes = []
        with locked(tmp_path, notes.append):
            pass
        assert [note.split(", started")[0] for note in notes] == said


def test_a_released_lock_leaves_an_empty_file(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            assert str(os.getpid()) in (tmp_path / "lock").read_text()
        assert (tmp_path / "lock").read_text() == ""
    with pytest.raises(ArithmeticError), locked(tmp_path):
        raise ArithmeticError
    assert (tmp_path / "lock").read_text() == ""


def test_arbitrary_content_of_the_lock_file_is_harmless(tmp_path):
    (tmp_path / "lock").write_bytes(b"\xff\x00\x1b[2J" + b"x" * 5000)
    notes = []
    with locked(tmp_path, notes.append):
        pass
    assert len(notes[0]) < 400
    assert notes[0].isprintable()


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    words = "lock: cannot be locked: No locks available; choose another --out"
    with pytest.raises(FolderError, match=words), locked(tmp_path):
        pass


@pytest.mark.parametrize("befalls", ["removed", "moved", "replaced", "its folder's folder"])
def test_a_folder_that_was_moved_or_removed_is_noticed(tmp_path, befalls):
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    with locked(folder) as held:
        held()
        if befalls == "its folder's folder":
            folder.parent.rename(tmp_path / "others")
        else:
            folder.rename(tmp_path / "b")
        if befalls == "removed":
            shutil.rmtree(tmp_path / "b")
        if befalls == "replaced":
            with locked_again(folder):
                pass
        with pytest.raises(FolderError, match="was moved or removed during training, so nothing more is written"):
            held()


@contextmanager
def locked_again(folder):
    folder.mkdir()
    with locked(folder):
        yield
