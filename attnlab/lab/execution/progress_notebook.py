"""How a run says where it stands in a notebook: one line that is brought up to date in its place, and notes below."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attnlab.console.escape import plain
from attnlab.console.format import duration
from attnlab.lab.execution.eta import Course, beginning, throughput
from attnlab.lab.execution.log_lines import measured
from attnlab.training.progress import Progress, Silent

EVERY = 0.5  # seconds between two changes of the line, at least: each is a message to a browser


def unasked() -> Progress:
    """What a run in Python says where nobody asked: `Notebook` where IPython's kernel runs, else nothing."""
    # Where its kernel runs it has been imported.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return Silent() if getattr(shell, "kernel", None) is None else Notebook()


class Notebook:
    """A line with variant, place, steps, loss, validation, speed and time left; each note is a line that stays."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._course = clock, Course(clock)
        self._place, self._loss, self._metrics = "", "", ""
        self._line: Any = None
        self._last = clock()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """The line, empty when it is done."""
        self._write(f"{what} …")
        try:
            yield
        finally:
            self._write("")

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Its name, its place and its steps."""
        self._course.variant(name, total_steps, done_steps, later_steps)
        self._place, self._loss, self._metrics = f"{name}, variant {index + 1} of {count}", "", ""
        self._show(beginning(done_steps))

    def compiling(self, what):
        """Shown where the time left stands otherwise."""
        self._show(f"compiling {what} …")

    def compiled(self, what, seconds):
        """The line without it."""
        self._show(*self._ahead())

    def advanced(self, step, loss, steps_per_second=None):
        """The line, where it was last changed long enough ago."""
        self._course.advance(step, steps_per_second)
        self._loss = f"loss {loss:.4g}"
        if self._clock() - self._last >= EVERY or step == self._course.total:
            self._show(*self._ahead())

    def evaluated(self, step, metrics):
        """The metrics of the last evaluation stand behind the loss."""
        self._metrics = measured(metrics)
        self._show(*self._ahead())

    def saved(self, step):
        """Nothing: where it goes on from matters once it was stopped, and is told then."""

    def finished(self):
        """The line, with the time that it took."""
        self._show(f"done in {duration(self._course.elapsed)}")
        self._place = ""

    def note(self, text):
        """A line that stays, below."""
        name = f"{self._course.name}: " if self._course.name else ""
        print(plain(name + text), flush=True)

    def close(self):
        """The line stays, without what lay ahead."""
        if self._line is not None and self._place:
            self._show()

    def _ahead(self) -> list[str]:
        return ["examining …"] if self._course.step == self._course.total else throughput(self._course)

    def _show(self, *more: str) -> None:
        steps = f"step {self._course.step:,} of {self._course.total:,}"
        self._write(", ".join(part for part in (f"{self._place}: {steps}", self._loss, self._metrics, *more) if part))

    def _write(self, line: str) -> None:
        from IPython.display import display

        said, self._last = plain(line), self._clock()
        # As text alone: every front end shows it, and nothing in it is taken for markup.
        if self._line is None:
            self._line = display({"text/plain": said}, raw=True, display_id=True)
        else:
            self._line.update({"text/plain": said}, raw=True)
