"""Progress of a run as plain lines, for logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TextIO

from attnlab.console.escape import plain
from attnlab.console.format import duration
from attnlab.lab.execution.eta import Course, throughput
from attnlab.training.problem import Metric


class Plain:
    """A `Progress` that prints a line at every event, and every `every` seconds (default 10) during training."""

    def __init__(self, stream: TextIO | None = None, every: float = 10.0, clock: Callable[[], float] = time.monotonic):
        self._stream, self._every, self._clock = stream or sys.stderr, every, clock
        self._course = Course(clock)
        self._last, self._loss = clock(), "loss unknown"

    def waiting(self, what):
        """Print nothing, because a printed line would stay."""
        return nullcontext()

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Print the name, index and number of steps of the variant."""
        self._course.variant(name, total_steps, done_steps, later_steps)
        resumed = f", resumed at step {done_steps}" if done_steps else ""
        self._line(f"variant {index + 1} of {count}, {total_steps} steps{resumed}")

    def compiling(self, what):
        """Print a line before compilation."""
        self._line(f"compiling {what} …")

    def compiled(self, what, seconds):
        """Print a line after compilation."""
        self._line(f"compiled {what} in {seconds:.1f} s")

    def advanced(self, step, loss, steps_per_second=None):
        """Print a line if the last one is at least `every` seconds old."""
        self._course.advance(step, steps_per_second)
        self._loss = f"loss {loss:.4g}"
        if self._clock() - self._last >= self._every:
            self._step(step, *throughput(self._course))

    def evaluated(self, step, metrics):
        """Print a line with the loss and every metric."""
        self._step(step, measured(metrics))

    def saved(self, step):
        """Print a line with the step of the checkpoint."""
        self._line(f"saved at step {step}")

    def finished(self):
        """Print a line with the time that the variant took."""
        self._line(f"done in {duration(self._course.elapsed)}")

    def note(self, text):
        """Print the text as a line."""
        self._line(text)

    def close(self):
        """Do nothing, since every line is flushed."""

    def _step(self, step: int, *more: str) -> None:
        self._line(", ".join([f"step {step} of {self._course.total}", self._loss, *more]))

    def _line(self, text: str) -> None:
        self._last = self._clock()
        print(plain(labelled(self._course.name, text)), file=self._stream, flush=True)


def labelled(variant: str, text: str) -> str:
    """Return a line about a variant that begins with its name.

    >>> labelled("gru", "saved at step 8"), labelled("gru", "gru: the maps were not saved")
    ('gru: saved at step 8', 'gru: the maps were not saved')
    """
    return text if not variant or text.startswith(f"{variant}: ") else f"{variant}: {text}"


def measured(metrics: Mapping[Metric, float]) -> str:
    """Return metrics in words, each with its formatted value."""
    return plain(", ".join(f"{metric.title} {metric.format(value)}" for metric, value in metrics.items()))
