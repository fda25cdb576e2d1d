"""SIGINT and SIGTERM: what is under way is finished and saved, and a second one leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 0.5  # seconds that Python has to leave by itself at a second signal


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

    def handle(number, frame):
        if caught:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        caught.append(number)

    with handled(handle), _watched():
        yield caught


@contextmanager
def raised(where: str) -> Iterator[None]:
    """While it holds, a signal raises Interrupted wherever Python is."""

    def handle(number, frame):
        raise Interrupted(number, where)

    with handled(handle):
        yield


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


@contextmanager
def _watched() -> Iterator[None]:
    """While it holds, a second signal ends the process even where Python waits for a library, as in a compilation."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False) if _ours() else None
    if before not in (None, -1):
        # An event loop, as in a notebook, wants to hear of them itself.
        signal.set_wakeup_fd(before)
    over = threading.Event()

    def watch():
        left = 2
        while left and (byte := os.read(reader, 1)):
            left -= byte[0] in NUMBERS
            if not left and not over.wait(PATIENCE):
                os._exit(128 + byte[0])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        if before == -1:
            signal.set_wakeup_fd(-1)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _ours() -> bool:
    """Whether signals are for us: elsewhere than in the main thread, as in a notebook's worker, they are not."""
    return threading.current_thread() is threading.main_thread()
