"""The cores of this machine that this process may use."""

from __future__ import annotations

import os


def cores() -> list[int]:
    """Their numbers, as the system counts them; of a system that does not bind processes, all of them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]
