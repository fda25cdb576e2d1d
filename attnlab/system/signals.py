"""Signals that stop a run. It finishes the current steps and saves. A second Ctrl-C or SIGTERM ends it at once.

SIGINT, SIGTERM, SIGHUP (a closed terminal), SIGXCPU (the soft limit of CPU time), SIGUSR1 and SIGUSR2 (warnings of
schedulers) save and stop. A signal that is ignored when the run starts stays ignored, for example SIGHUP under nohup.
SIGQUIT ends the process at once, as usual. Python itself ignores SIGPIPE and SIGXFSZ. A write then fails, and that
error is reported.
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

# Not every system has all of these signals.
NUMBERS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# A second one of these ends the process at once. The other signals may arrive several times for a single reason: a
# closed terminal sends SIGHUP twice, the end of a session sends SIGTERM and SIGHUP, and SIGXCPU arrives every second.
TYPED = (signal.SIGINT, signal.SIGTERM)
UNBEGUN = "before any variant started"  # stopped before anything was changed
TRAINED = "after the last step, which is saved"  # stopped when all variants were trained
FINISHING = "saving and stopping after the current steps; interrupt again to stop at once"
WAITING = "stopping after the current computation; interrupt again to stop at once"
PATIENCE = 0.5  # seconds to wait before saying that a computation delays the stop

_watchers: set[int] = set()  # the wakeup descriptors that this module has set


class Interrupted(BaseException):
    """A signal ended the work.

    It is not an error, so it derives from BaseException and has `is_stop = True`. Code that catches errors does not
    swallow it.

    Args:
        number: The number of the signal. `exit_code` is 128 plus this number.
        where: What part of the work is saved.
    """

    is_stop = True

    def __init__(self, number: int, where: str):
        super().__init__(f"stopped by {signal.Signals(number).name} {where}")
        self.number, self.where, self.exit_code = number, where, 128 + number


class _Arrived(list[int]):
    """The signals that arrived, in order.

    Attributes:
        resent: How many of them this process has sent to itself once more, after an exception was lost.
    """

    resent = 0

    def again(self, number: int) -> bool:
        """Add a signal, and return whether it is the second of those in `TYPED`, apart from the resent ones."""
        second = number in TYPED and sum(before in TYPED for before in self) > self.resent
        self.append(number)
        return second


@contextmanager
def collect_signals(tell: Callable[[str], None] = lambda text: None) -> Iterator[list[int]]:
    """Collect signals in a list, for a loop that checks it. A second signal of `TYPED` ends the process at once.

    Args:
        tell: Is called with a line as soon as the first signal arrives, even while a library computes.
    """
    caught = _Arrived()

    def handle(number, frame):
        if caught.again(number):
            if watching:
                exit_by_signal(number)
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    with handled(handle), _watched(lambda: tell(FINISHING)) as (watching, _):
        yield caught


@contextmanager
def raise_on_signal(where: str, tell: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Raise Interrupted in the main thread when a signal arrives.

    If the signal arrives in a finalizer, where exceptions are lost, it is sent again. A second signal of `TYPED` ends
    the process at once.

    Args:
        where: What part of the work is saved.
        tell: Is called with a line if Python waits for a library and cannot stop yet.
    """
    arrived, raised_for = _Arrived(), []
    again: list[threading.Timer] = []
    before = sys.unraisablehook

    def handle(number, frame):
        first = not arrived
        if arrived.again(number):
            exit_by_signal(number)
        if first:
            raised_for.append(number)
            raise Interrupted(number, where)

    def send(number, watched):
        # The signal sent again must not count as a second one. The thread that watches may not have seen the first yet.
        arrived.clear()
        watched.resent += 1
        os.kill(os.getpid(), number)

    def lost(unraisable):
        # Python only reports an exception raised in a finalizer, and continues.
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
def set_location(where: Callable[[], str]) -> Iterator[None]:
    """Replace the message of an Interrupted that is raised inside by `where()`."""
    try:
        yield
    except Interrupted as interrupted:
        raise Interrupted(interrupted.number, where()) from None


def reached(step: int) -> str:
    """Describe where training was stopped. `step` is that of the newest checkpoint, 0 if there is none."""
    return f"at step {step}, which is saved" if step else "before the first step"


@contextmanager
def handled(handle: Callable) -> Iterator[None]:
    """Send signals to `handle(number, frame)`, except those that were ignored before."""
    if not _ours():
        yield
        return
    ignored = (signal.SIG_IGN, None)  # None: a library in C handles it
    old = {number: handler for number in NUMBERS if (handler := signal.getsignal(number)) not in ignored}
    # The watcher of an enclosing handler is suspended meanwhile.
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


def exit_process(code: int) -> NoReturn:
    """Exit the process with a code. After a signal it exits at once, without the interpreter's shutdown.

    The signal may have arrived while jax was computing, and the shutdown would then crash.
    """
    if code > 128:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def exit_by_signal(number: int) -> NoReturn:
    """End the process at once, with the exit code of the signal."""
    # os.write bypasses Python's buffers, whose lock the main thread may hold. The escape code shows the cursor again.
    cursor = b"\x1b[?25h" if os.isatty(2) else b""
    line = f"attnlab: stopped at once by {signal.Signals(number).name}; work since the last save is lost\n"
    with suppress(OSError):
        os.write(2, cursor + line.encode())
    os._exit(128 + number)


@contextmanager
def _watched(tell: Callable[[], None], patience: float = 0.0) -> Iterator[tuple[bool, _Arrived]]:
    """Watch for signals in a thread, which works even while the main thread waits for a library.

    The thread calls `tell` once, `patience` seconds after the first signal. It ends the process at the second signal of
    `TYPED`. It does nothing outside the main thread, or if something else, for example the event loop of a notebook,
    already watches for signals.

    Yields:
        Whether the thread watches, and the signals that it has seen.
    """
    arrived = _Arrived()
    if not _ours() or _watcher() != -1:
        yield False, arrived
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch():
        reported = False
        while byte := os.read(reader, 1):
            if byte[0] not in NUMBERS:
                continue
            if arrived.again(byte[0]):
                exit_by_signal(byte[0])
            if not reported and not select.select([reader], [], [], patience)[0]:
                reported = True
                with suppress(OSError, ValueError):  # the stream may be closed
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
    """Return the descriptor that Python writes signals to, or -1 if there is none."""
    before = _set_watcher(-1)
    if before != -1:
        _set_watcher(before)
    return before


def _set_watcher(descriptor: int) -> int:
    """Set the descriptor that Python writes signals to, and return the previous one."""
    return signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def _ours() -> bool:
    """Return whether this is the main thread. Only the main thread can handle signals."""
    return threading.current_thread() is threading.main_thread()
