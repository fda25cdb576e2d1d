"""Memory that was freed, but that the process still holds."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def release() -> None:
    """Return freed memory to the system, on Linux with the GNU C library. Elsewhere it does nothing.

    A compilation takes hundreds of megabytes in small pieces. The C library keeps what is freed between pieces that are
    still in use, so that every compilation adds to the memory of the process.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
