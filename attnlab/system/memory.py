"""The memory that this process may still take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")  # the limits of a container are here


def available_memory() -> int:
    """Return the bytes of memory that are free on this machine, within the limit of its container if there is one.

    Returns a large number if the system does not say.
    """
    found = [2**63]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    with suppress(OSError, ValueError):  # the limit is "max" if there is none
        found.append(int((CGROUP / "memory.max").read_text()) - int((CGROUP / "memory.current").read_text()))
    if len(found) == 1 and hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return max(0, min(found))
