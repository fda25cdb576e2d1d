"""How a run says where it stands: plain lines, or nothing.

On a terminal it is `attnlab.lab.livebar`, in a notebook `attnlab.lab.notebook`. The training loop calls one
`Progress`; which of them it is, it never asks.
"""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TextIO

from attnlab.lab.pace import Course, pace
from attnlab.lab.quantity import duration, measure, title
from attnlab.lab.terminal import plain


class Progress(Protocol):
    """What a run tells as it goes. Steps count from 0 for each variant; times are in seconds."""

    def waiting(self, what: str) -> AbstractContextManager[Any]:
        """Before the first variant, within a `with`: what is being done. It may be refused, so no line of it stays."""
        ...

    def variant(
        self, name: str, index: int, count: int, total_steps: int, done_steps: int = 0, later_steps: int = 0
    ) -> None:
        """Variant `index` (from 0) of `count` begins, or goes on after `done_steps`; others take `later_steps`."""
        ...

    def compiling(self, what: str) -> None:
        """A program is being compiled; nothing moves meanwhile."""
        ...

    def compiled(self, what: str, seconds: float) -> None:
        """It is compiled."""
        ...

    def advanced(self, step: int, loss: float, steps_per_second: float | None = None) -> None:
        """`step` steps are done; `loss` the mean over lanes that did not diverge. A speed not given is measured."""
        ...

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """An evaluation after `step` steps: each metric's mean over lanes that did not diverge."""
        ...

    def saved(self, step: int) -> None:
        """A checkpoint is on disk."""
        ...

    def finished(self) -> None:
        """The variant has its result."""
        ...

    def note(self, text: str) -> None:
        """Anything else that a person should know."""
        ...

    def close(self) -> None:
        """Nothing more will come; the terminal is as before."""
        ...


def choose(stream: TextIO | None = None) -> "Progress":
    """`Terminal` where the stream (standard error) is one, `Plain` elsewhere."""
    if not (stream or sys.stderr).isatty():
        return Plain(stream)
    from attnlab.lab.livebar import Terminal

    return Terminal()


class Silent:
    """Says nothing: for programs and tests."""

    def waiting(self, what):
        """Nothing."""
        return nullcontext()

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Nothing."""

    def compiling(self, what):
        """Nothing."""

    def compiled(self, what, seconds):
        """Nothing."""

    def advanced(self, step, loss, steps_per_second=None):
        """Nothing."""

    def evaluated(self, step, metrics):
        """Nothing."""

    def saved(self, step):
        """Nothing."""

    def finished(self):
        """Nothing."""

    def note(self, text):
        """Nothing."""

    def close(self):
        """Nothing."""


class Plain:
    """One line each ~10 seconds and at every event, flushed: for logs."""

    def __init__(self, stream: TextIO | None = None, every: float = 10.0, clock: Callable[[], float] = time.monotonic):
        self._stream, self._every, self._clock = stream or sys.stderr, every, clock
        self._course = Course(clock)
        self._last, self._loss = clock(), "loss unknown"

    def waiting(self, what):
        """Nothing, for what is printed stays."""
        return nullcontext()

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Its name, its place and its steps."""
        self._course.variant(name, total_steps, done_steps, later_steps)
        resumed = f", resumed at step {done_steps}" if done_steps else ""
        self._line(f"variant {index + 1} of {count}, {total_steps} steps{resumed}")

    def compiling(self, what):
        """A line before the wait."""
        self._line(f"compiling {what} …")

    def compiled(self, what, seconds):
        """A line after it."""
        self._line(f"compiled {what} in {seconds:.1f} s")

    def advanced(self, step, loss, steps_per_second=None):
        """A line where the last one is long enough ago."""
        self._course.advance(step, steps_per_second)
        self._loss = f"loss {loss:.4g}"
        if self._clock() - self._last >= self._every:
            self._step(step, *pace(self._course))

    def evaluated(self, step, metrics):
        """A line with the loss and every metric."""
        self._step(step, measured(metrics))

    def saved(self, step):
        """A line."""
        self._line(f"saved at step {step}")

    def finished(self):
        """A line with the time that it took."""
        self._line(f"done in {duration(self._course.elapsed)}")

    def note(self, text):
        """The text as a line."""
        self._line(text)

    def close(self):
        """Nothing is left to flush."""

    def _step(self, step: int, *more: str) -> None:
        self._line(", ".join([f"step {step} of {self._course.total}", self._loss, *more]))

    def _line(self, text: str) -> None:
        self._last = self._clock()
        print(plain(labelled(self._course.name, text)), file=self._stream, flush=True)


def labelled(variant: str, text: str) -> str:
    """A line about a variant, which begins with its name.

    >>> labelled("gru", "saved at step 8"), labelled("gru", "gru: its maps are not kept")
    ('gru: saved at step 8', 'gru: its maps are not kept')
    """
    return text if not variant or text.startswith(f"{variant}: ") else f"{variant}: {text}"


def measured(metrics: Mapping[str, float]) -> str:
    """Metrics in words, each with its value as it is written."""
    return plain(", ".join(f"{title(name)} {measure(name, value)}" for name, value in metrics.items()))
