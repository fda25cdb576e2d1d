"""A background thread that calls functions, for example compiles programs, while the main thread waits for a device."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from attnlab.system import settings

T = TypeVar("T")


class Background:
    """A thread that calls functions, one after the other.

    It must be closed, because the process does not end before the thread does.

    The settings of jax that a context manager makes, such as `jax.enable_x64`, hold for one thread only. If the thread
    does not have those of the thread that creates it, it cancels every future and calls nothing.
    """

    def __init__(self):
        self._settings = settings.numbers()
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="attnlab-background")
        self._thread.start()

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function after those that were submitted before. Return its future result."""
        future: Future[T] = Future()

        def call() -> None:
            if self._closed or settings.numbers() != self._settings:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._waiting.put(call)
        return future

    def close(self, wait: bool = True) -> None:
        """Cancel the functions that have not begun, and end the thread.

        Args:
            wait: whether to wait for the function that has begun.
        """
        self._closed = True
        self._waiting.put(None)
        if wait:
            self._thread.join()

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            call()
