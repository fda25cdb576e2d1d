"""Make the standard streams robust: closed streams, full disks, and readers that have gone away.

A failure of standard error never ends a run. A failure of standard output loses only the printed text, and `flush`
reports it.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import BinaryIO, TextIO, cast


class OutputError(Exception):
    """Standard output cannot be written."""

    exit_code = 4


class _Raw(io.RawIOBase):
    """The raw stream behind a standard stream. After the first error it discards everything.

    Args:
        under: The underlying raw stream, or None if it is closed.
        lost: Is called at the first error instead of raising it. None raises it.

    Attributes:
        error: The first error, or None.
    """

    def __init__(self, under: io.RawIOBase | None, lost: Callable[[], None] | None = None):
        self.under, self.lost = under, lost
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Always True."""
        return True

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return self.under is not None and self.under.isatty()

    def fileno(self) -> int:
        """Return the file descriptor. Raises OSError if the stream is closed."""
        if self.under is None:
            raise OSError(errno.EBADF, "the stream is closed")
        return self.under.fileno()

    def write(self, content) -> int | None:
        """Write the content, or discard it after an error. Raises OSError the first time, unless `lost` is given."""
        if self.error is None:
            try:
                return self.under.write(content) if self.under is not None else self.fileno()
            except OSError as error:
                self.error = error
                if self.lost is None:
                    raise
                self.lost()
        return memoryview(content).nbytes


def prepare(lost: Callable[[], None] = lambda: None) -> None:
    """Make the standard streams of this process robust.

    Closed descriptors are connected to the null device. Otherwise the next opened file would get such a descriptor, and
    the output of libraries would be written into that file.

    Args:
        lost: Is called once if standard error fails.
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
    # Some of Python's functions print to standard output if sys.stderr is None.
    sys.stderr = _wrapped(sys.stderr, lost)


def _wrapped(stream: TextIO | None, lost: Callable[[], None] | None = None) -> io.TextIOWrapper:
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Raw(None, lost)), "utf-8", "replace")
    under, unbuffered = _under(stream), isinstance(stream.buffer, io.RawIOBase)
    raw = _Raw(under, lost)
    return io.TextIOWrapper(
        cast(BinaryIO, raw) if unbuffered else io.BufferedWriter(raw), stream.encoding, stream.errors,
        line_buffering=bool(stream.line_buffering), write_through=unbuffered,
    )  # fmt: skip


def check(command: str) -> None:
    """Raise OutputError if standard output is closed, before `command` computes what it would print."""
    raw = _raw()
    if raw is not None and raw.under is None:
        raise OutputError(f"standard output is closed, but {command} writes its results to it")


def discard_if_closed() -> None:
    """Discard output if standard output is closed. For commands whose results are files."""
    raw = _raw()
    if raw is not None and raw.under is None:
        raw.lost = lambda: None


def write(content: bytes) -> None:
    """Write data to standard output, which may have another encoding than the data, after what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def flush() -> None:
    """Flush standard output.

    Raises:
        BrokenPipeError: The reader has gone away.
        OutputError: Standard output could not be written for another reason.
    """
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
        raise OutputError(f"cannot write to standard output: {error.strerror or error}") from error


def _raw() -> _Raw | None:
    """Return the stream that `prepare` put behind standard output, or None."""
    raw = _under(sys.stdout) if isinstance(sys.stdout, io.TextIOWrapper) else None
    return raw if isinstance(raw, _Raw) else None


def _under(stream: TextIO) -> io.RawIOBase | None:
    """Return the raw stream behind a stream of text, or None if it has none, for example in a test."""
    raw = stream.buffer.raw if isinstance(stream.buffer, io.BufferedWriter) else stream.buffer
    return raw if isinstance(raw, io.RawIOBase) else None
