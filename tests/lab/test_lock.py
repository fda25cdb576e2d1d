import subprocess
import sys

import pytest

from attnlab.lab.lock import LockedError, locked

HOLD = """
import sys
from pathlib import Path
from attnlab.lab.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_that_another_process_holds_is_refused_naming_it(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=f"held by process {other.pid}") as refused, locked(tmp_path):
            pass
        assert refused.value.exit_code == 2
        other.kill()
        other.wait()
    # A killed process holds nothing.
    with locked(tmp_path):
        pass


def test_a_lock_is_let_go(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            pass
