"""The CPU cores that this process may use."""

from __future__ import annotations

import os


def cores() -> list[int]:
    """Return the numbers of the cores that this process may use, or of all cores if the system has no CPU affinity."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]
