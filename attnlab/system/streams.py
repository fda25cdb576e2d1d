"""The standard streams of a process: closed ones, full ones, and readers that have gone away.

Nothing that happens to standard error may end a run. What happens to standard output is reported by `flush`, in one
place, and costs what was to be printed alone.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, cast


class OutputError(Exception):
    """Standard output cannot be written."""

    exit_code = 4


class _Raw(io.RawIOBase):
    """The raw stream behind a standard stream; `error` is the first that it met, and nothing is written after that.

    Where `lost` is given it is called instead of raising that error. `under` is the one it stands for; None where that
    is closed.
    """

    def __init__(self, under: Any, lost: Callable[[], None] | None = None):
        self.under, self.lost = under, lost
        self.error: OSError | None = None

    def writable(self) -> bool:
        """True."""
        return True

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.under is not None and self.under.isatty()

    def fileno(self) -> int:
        """The descriptor. Raises OSError where the stream is closed."""
        if self.under is None:
            raise OSError(errno.EBADF, "it is closed")
        return self.under.fileno()

    def write(self, content: Any) -> int:
        """Write, or drop what cannot be written. Raises OSError the first time, unless `lost` takes it."""
        if self.error is None:
            try:
                return self.under.write(content) if self.under is not None else self.fileno()
            except OSError as error:
                self.error = error
                if self.lost is None:
                    raise
                self.lost()
        return len(content)


def prepare(lost: Callable[[], None] = lambda: None) -> None:
    """Make the standard streams of this process safe; `lost` is called once where standard error fails.

    A file that is opened must not take the place of a stream that is closed: what libraries write there would go into
    the file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, descriptor)
            if null != descriptor:
                os.close(null)
    sys.stdout = _wrapped(sys.stdout)
    # Python prints to standard output where standard error is None.
    sys.stderr = _wrapped(sys.stderr, lost)


def _wrapped(stream: Any, lost: Callable[[], None] | None = None) -> io.TextIOWrapper:
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Raw(None, lost)), "utf-8", "replace")
    buffer = stream.buffer
    unbuffered = isinstance(buffer, io.RawIOBase)
    raw = _Raw(buffer if unbuffered else buffer.raw, lost)
    return io.TextIOWrapper(
        cast(BinaryIO, raw) if unbuffered else io.BufferedWriter(raw), stream.encoding, stream.errors,
        line_buffering=stream.line_buffering, write_through=unbuffered,
    )  # fmt: skip


def check(command: str) -> None:
    """Raise OutputError where standard output is closed, before a command works for what it would print."""
    raw = _raw()
    if raw is not None and raw.under is None:
        raise OutputError(f"standard output is closed, and {command} writes its results there")


def spare() -> None:
    """Print to nowhere where standard output is closed: for commands that keep their results in files."""
    raw = _raw()
    if raw is not None and raw.under is None:
        raw.lost = lambda: None


def flush() -> None:
    """Flush standard output. Raises OutputError where it could not be written, BrokenPipeError where nobody reads."""
    raw, error = _raw(), None
    try:
        sys.stdout.flush()
    except OSError as failed:
        error = failed
    if raw is not None and raw.lost is None:
        error = raw.error or error
    if isinstance(error, BrokenPipeError):
        raise error
    if error is not None:
        raise OutputError(f"standard output: {error.strerror or error}") from error


def _raw() -> _Raw | None:
    """What stands behind standard output; None where `prepare` did not put it there."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if isinstance(raw, _Raw) else None
