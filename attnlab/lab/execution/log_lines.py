"""Progress of a run as plain lines, for logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from attnlab.lab.execution.display import Display


class Plain(Display):
    """A `Progress` that prints a line at every event, and every `every` seconds (default 10) during training."""

    def __init__(self, stream: TextIO | None = None, every: float = 10.0, clock: Callable[[], float] = time.monotonic):
        super().__init__(clock)
        self._stream, self._every = stream or sys.stderr, every

    def show(self, last=False):
        """Print the activity with which a variant ended."""
        if last and self.activity:
            self.note(self.activity)

    def write(self, line):
        """Print a line, and flush it."""
        self.updated = self.clock()
        print(line, file=self._stream, flush=True)

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Print the name, index and number of steps of the variant."""
        super().variant(name, index, count, total_steps, done_steps, later_steps)
        resumed = f", resumed at step {done_steps}" if done_steps else ""
        self.note(f"{self.place}, {total_steps} steps{resumed}")

    def compiling(self, what):
        """Print a line before compilation."""
        self.note(f"compiling {what} …")

    def compiled(self, what, seconds):
        """Print a line after compilation."""
        self.note(f"compiled {what} in {seconds:.1f} s")

    def evaluated(self, step, metrics):
        """Print a line with the loss and every metric."""
        super().evaluated(step, metrics)
        self._step(self.metrics)

    def saved(self, step):
        """Print a line with the step of the checkpoint."""
        self.note(f"saved at step {step}")

    def update(self, activity=""):
        """Print the step and the time left if the last line is at least `every` seconds old."""
        if not activity and self.clock() - self.updated >= self._every:
            self._step(*self.eta.words())

    def _step(self, *more: str) -> None:
        self.note(", ".join([f"step {self.eta.step} of {self.eta.total}", self.loss, *more]))
