"""Signals that ask a run to stop. It finishes the steps under way and saves; a second Ctrl-C or SIGTERM leaves at once.

SIGINT, SIGTERM, SIGHUP (a closed terminal), SIGXCPU (a soft limit on the time of the CPU), SIGUSR1 and SIGUSR2
(warnings of schedulers) save and stop; one of them that is ignored when a run starts stays ignored, as SIGHUP under
nohup. SIGQUIT ends the process at once, as ever. Python itself ignores SIGPIPE and SIGXFSZ: a write then fails, and
that error is reported.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

# Not every system has all of them.
NUMBERS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# Of these the second one leaves at once. The others may come several times for one reason: a closed terminal sends
# SIGHUP twice, a session that ends SIGTERM and SIGHUP, and SIGXCPU comes every second.
TYPED = (signal.SIGINT, signal.SIGTERM)
UNBEGUN = "before any variant began"  # where a run was stopped of which nothing was changed
TRAINED = "after the last step, which is saved"  # where all variants were trained
FINISHING = "stopping after the next steps, then saving; again stops at once"
WAITING = "stopping when the present computation ends; again stops at once"
PATIENCE = 0.5  # seconds in which a stop that needs no computation to end is over

_watchers: set[int] = set()  # the descriptors that Python tells of signals for us


class Interrupted(BaseException):
    """A signal ended the work; `where` says what of it is kept. `exit_code` is 128 + the signal's number.

    It is no error (`is_stop`), and whoever catches those does not swallow it.
    """

    is_stop = True

    def __init__(self, number: int, where: str):
        super().__init__(f"stopped by {signal.Signals(number).name} {where}")
        self.number, self.where, self.exit_code = number, where, 128 + number


class _Arrived(list[int]):
    """The signals that came, in their order."""

    def again(self, number: int) -> bool:
        """Add one; whether it is the second one that was typed or sent to end the process."""
        second = number in TYPED and any(before in TYPED for before in self)
        self.append(number)
        return second


@contextmanager
def collected(tell: Callable[[str], None] = lambda text: None) -> Iterator[list[int]]:
    """The signals that came so far, for a loop that looks at them; a second one that was typed leaves at once.

    `tell` is given a line as soon as the first comes, also while a library computes.
    """
    caught = _Arrived()

    def handle(number, frame):
        if caught.again(number):
            if watching:
                leave(number)
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    with handled(handle), _watched(lambda: tell(FINISHING)) as (watching, _):
        yield caught


@contextmanager
def raised(where: str, tell: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """While it holds, a signal raises Interrupted wherever Python is; in a finaliser, as soon as that is over.

    `tell` is given a line where Python waits for a library meanwhile; a second signal that was typed leaves at once.
    """
    arrived, raised_for = _Arrived(), []
    again: list[threading.Timer] = []
    before = sys.unraisablehook

    def handle(number, frame):
        first = not arrived
        if arrived.again(number):
            leave(number)
        if first:
            raised_for.append(number)
            raise Interrupted(number, where)

    def send(number, watched):
        for each in (arrived, watched):
            each.clear()  # it is the same signal, and no second one
        os.kill(os.getpid(), number)

    def lost(unraisable):
        # Python reports what a finaliser raises, and continues.
        if not isinstance(unraisable.exc_value, Interrupted):
            return before(unraisable)
        again.append(threading.Timer(0.05, send, (raised_for[-1], watched)))
        again[-1].start()

    sys.unraisablehook = lost
    try:
        with handled(handle), _watched(lambda: tell(WAITING), PATIENCE) as (_, watched):
            try:
                yield
            finally:
                for timer in again:
                    timer.cancel()
    finally:
        if sys.unraisablehook is lost:
            sys.unraisablehook = before
    if raised_for:
        raise Interrupted(raised_for[0], where)


@contextmanager
def located(where: Callable[[], str]) -> Iterator[None]:
    """An Interrupted that is raised within it says `where()` instead of what it said."""
    try:
        yield
    except Interrupted as interrupted:
        raise Interrupted(interrupted.number, where()) from None


def reached(step: int) -> str:
    """Where training was stopped whose newest checkpoint is that of a step; 0: there is none."""
    return f"at step {step}, which is saved" if step else "before the first step"


@contextmanager
def handled(handle: Callable) -> Iterator[None]:
    """While it holds, signals go to `handle(number, frame)`, but for those that were ignored before."""
    if not _ours():
        yield
        return
    ignored = (signal.SIG_IGN, None)  # None: a library in C handles it
    old = {number: handler for number in NUMBERS if (handler := signal.getsignal(number)) not in ignored}
    # Whoever handles signals around this does not watch for them meanwhile.
    watcher = _set_watcher(-1) if _watcher() in _watchers else None
    for number in old:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if watcher is not None:
            _set_watcher(watcher)


def end(code: int) -> NoReturn:
    """End the process with an exit code; after a signal at once.

    It may have come in the midst of jax, where an interpreter that takes itself down crashes.
    """
    if code > 128:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
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
def _watched(tell: Callable[[], None], patience: float = 0.0) -> Iterator[tuple[bool, _Arrived]]:
    """While it holds, a thread hears of signals even where Python waits for a library, as in a compilation.

    It calls `tell` once, so many seconds after the first, and ends the process at the second one that was typed. Yields
    whether it does, and those that it heard of: an event loop, as in a notebook, wants to hear of them itself, and only
    the main thread may.
    """
    arrived = _Arrived()
    if not _ours() or _watcher() != -1:
        yield False, arrived
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch():
        told = False
        while byte := os.read(reader, 1):
            if byte[0] not in NUMBERS:
                continue
            if arrived.again(byte[0]):
                leave(byte[0])
            if not told and not select.select([reader], [], [], patience)[0]:
                told = True
                with suppress(OSError, ValueError):  # a stream that is closed
                    tell()

    _watchers.add(writer)
    _set_watcher(writer)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield True, arrived
    finally:
        _set_watcher(-1)
        _watchers.discard(writer)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watcher() -> int:
    """The descriptor that Python tells of signals; -1 where there is none."""
    before = _set_watcher(-1)
    if before != -1:
        _set_watcher(before)
    return before


def _set_watcher(descriptor: int) -> int:
    """Set it; the one before."""
    return signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def _ours() -> bool:
    """Whether signals are for us: elsewhere than in the main thread, as in a notebook's worker, they are not."""
    return threading.current_thread() is threading.main_thread()
