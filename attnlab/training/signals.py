"""SIGINT and SIGTERM: what is under way is finished and saved, and a second one leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

NUMBERS = (signal.SIGINT, signal.SIGTERM)
UNBEGUN = "before any variant began"  # where a run was stopped of which nothing was changed


class Interrupted(BaseException):
    """A signal ended the work; `where` says what of it is kept. `exit_code` is 128 + the signal's number.

    It is no error, and whoever catches those does not swallow it.
    """

    def __init__(self, number: int, where: str):
        super().__init__(f"stopped by {signal.Signals(number).name} {where}")
        self.number, self.where, self.exit_code = number, where, 128 + number


@contextmanager
def collected() -> Iterator[list[int]]:
    """The signals that came so far, for who looks at them in time; at the second one the process is left at once."""
    caught: list[int] = []
    with _watched() as watching:

        def handle(number, frame):
            if caught and watching:
                leave(number)
            if caught:
                raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
            caught.append(number)

        with handled(handle):
            yield caught


@contextmanager
def raised(where: str) -> Iterator[None]:
    """While it holds, a signal raises Interrupted wherever Python is; in a finaliser, as soon as that is over."""
    came: list[int] = []
    again: list[threading.Timer] = []
    before = sys.unraisablehook

    def handle(number, frame):
        came.append(number)
        raise Interrupted(number, where)

    def lost(unraisable):
        # What a finaliser raises Python would tell of, and go on.
        if not isinstance(unraisable.exc_value, Interrupted):
            return before(unraisable)
        again.append(threading.Timer(0.05, os.kill, (os.getpid(), came[-1])))
        again[-1].start()

    sys.unraisablehook = lost
    try:
        with handled(handle):
            try:
                yield
            finally:
                for timer in again:
                    timer.cancel()
    finally:
        sys.unraisablehook = before
    if came:
        raise Interrupted(came[0], where)


@contextmanager
def handled(handle: Callable) -> Iterator[None]:
    """While it holds, both signals go to `handle(number, frame)`."""
    if not _ours():
        yield
        return
    old = {number: signal.signal(number, handle) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def end(code: int) -> NoReturn:
    """End the process with an exit code; after a signal at once.

    It may have come in the midst of jax, where an interpreter that takes itself down crashes.
    """
    if code > 128:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def leave(number: int) -> NoReturn:
    """End the process as that signal does, whatever it is at."""
    # Not through Python's own buffers, which the main thread may hold; the cursor comes back.
    shown = b"\x1b[?25h" if os.isatty(2) else b""
    said = f"attnlab: left at once by {signal.Signals(number).name}; what came after the last save is lost\n"
    with suppress(OSError):
        os.write(2, shown + said.encode())
    os._exit(128 + number)


@contextmanager
def _watched() -> Iterator[bool]:
    """While it holds, a second signal ends the process even where Python waits for a library, as in a compilation.

    Answers whether it does: an event loop, as in a notebook, or another thread's main wants to hear of them itself.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False) if _ours() else None
    if before not in (None, -1):
        signal.set_wakeup_fd(before)

    def watch():
        left = 2
        while byte := os.read(reader, 1):
            left -= byte[0] in NUMBERS
            if not left:
                leave(byte[0])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield before == -1
    finally:
        if before == -1:
            signal.set_wakeup_fd(-1)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _ours() -> bool:
    """Whether signals are for us: elsewhere than in the main thread, as in a notebook's worker, they are not."""
    return threading.current_thread() is threading.main_thread()
