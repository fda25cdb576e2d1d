"""Convert exceptions to one line for a person and an exit code for a program."""

from __future__ import annotations

import errno
import sys

from attnlab.console.escape import plain

MOST = 4000  # characters of an error message


def explain(error: BaseException) -> tuple[str, int]:
    """Return the line for stderr and the exit code."""
    line, code = _words(error), getattr(error, "exit_code", None)
    if isinstance(error, OSError) and (error.filename or error.errno in (errno.ENOSPC, errno.EDQUOT)):
        code, line = 4, _shortened(plain(f"{error.filename or 'disk'}: {error.strerror}"))
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in line:
        code, line = 2, f"out of memory ({line[:160]}); reduce the batch size, or use shorter or fewer examples"
    if code is None and isinstance(error, ValueError | NotImplementedError) and _ours(error):
        code = 2
    if isinstance(error, ValueError) and "jax" not in sys.modules and "jax" in _packages(error.__cause__ or error):
        # jax checks its environment variables while it is imported.
        code, line = 2, f"jax rejects an environment variable: {line}"
    if code is None:
        return f"attnlab: error: unexpected {type(error).__name__}: {line[:300]}; --debug shows the traceback", 1
    # A stop by a signal is not an error.
    return f"attnlab: {line}" if getattr(error, "is_stop", False) else f"attnlab: error: {line}", code


def _words(error: BaseException) -> str:
    """Return the message of an exception on one line."""
    return _shortened(plain(" ".join(str(error).split()))) or type(error).__name__


def _shortened(line: str) -> str:
    """Return the line, with its middle replaced by an ellipsis if it is longer than `MOST`."""
    return line if len(line) <= MOST else f"{line[: MOST // 2]} … {line[-MOST // 2 :]}"


def _ours(error: BaseException) -> bool:
    """Return whether attnlab raised the exception, and not a library that was called wrongly."""
    return bool(packages := _packages(error)) and packages[-1].startswith("attnlab")


def _packages(error: BaseException) -> list[str]:
    """Return the packages in the traceback of an exception. The one that raised it is last."""
    trace, found = error.__traceback__, []
    while trace:
        found.append(trace.tb_frame.f_globals.get("__name__", "").split(".")[0])
        trace = trace.tb_next
    return found
