"""Checks that memory which the C library keeps after it is freed is returned to the system."""

import platform
from pathlib import Path

import numpy as np
import pytest

from attnlab.system.freed_memory import release


def resident():
    """Returns the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")
def test_freed_memory_is_returned():
    # Small arrays are not mapped one by one. Those kept at the end prevent the C library from shrinking its heap.
    pieces = [np.ones(8000) for _ in range(2000)]
    kept = [np.ones(100) for _ in range(100)]
    before = resident()
    del pieces
    release()
    assert resident() < before - 100e6
    assert len(kept) == 100
