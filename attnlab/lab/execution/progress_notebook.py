"""Progress of a run in a notebook: one line that is updated in place, with notes below it."""

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

EVERY = 0.5  # the minimum seconds between two updates of the line, since each is a message to a browser


def unasked() -> Progress:
    """Return the default progress of a run in Python: a `Notebook` in an IPython kernel, else `Silent`."""
    # A running kernel has imported IPython already, so this function need not import it.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return Silent() if getattr(shell, "kernel", None) is None else Notebook()


class Notebook:
    """A `Progress` with one line: variant, index, steps, loss, validation, speed and time left. Notes are printed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._course = clock, Course(clock)
        self._place, self._loss, self._metrics = "", "", ""
        self._line: Any = None
        self._last = clock()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the line while the context is active, then empty it."""
        self._write(f"{what} …")
        try:
            yield
        finally:
            self._write("")

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Show the name, index and number of steps of the variant."""
        self._course.variant(name, total_steps, done_steps, later_steps)
        self._place, self._loss, self._metrics = f"{name}, variant {index + 1} of {count}", "", ""
        self._show(beginning(done_steps))

    def compiling(self, what):
        """Show the compilation in place of the time left."""
        self._show(f"compiling {what} …")

    def compiled(self, what, seconds):
        """Show the line without the compilation."""
        self._show(*self._ahead())

    def advanced(self, step, loss, steps_per_second=None):
        """Update the line, at most every `EVERY` seconds."""
        self._course.advance(step, steps_per_second)
        self._loss = f"loss {loss:.4g}"
        if self._clock() - self._last >= EVERY or step == self._course.total:
            self._show(*self._ahead())

    def evaluated(self, step, metrics):
        """Show the metrics of the last evaluation after the loss."""
        self._metrics = measured(metrics)
        self._show(*self._ahead())

    def saved(self, step):
        """Show nothing, because the last checkpoint is reported if the run is interrupted."""

    def finished(self):
        """Show the line with the time that the variant took."""
        self._show(f"done in {duration(self._course.elapsed)}")
        self._place = ""

    def note(self, text):
        """Print a line below."""
        name = f"{self._course.name}: " if self._course.name else ""
        print(plain(name + text), flush=True)

    def close(self):
        """Leave the line without the time left."""
        if self._line is not None and self._place:
            self._show()

    def _ahead(self) -> list[str]:
        return ["evaluating …"] if self._course.step == self._course.total else throughput(self._course)

    def _show(self, *more: str) -> None:
        steps = f"step {self._course.step:,} of {self._course.total:,}"
        self._write(", ".join(part for part in (f"{self._place}: {steps}", self._loss, self._metrics, *more) if part))

    def _write(self, line: str) -> None:
        from IPython.display import display

        text, self._last = plain(line), self._clock()
        # Only plain text: every front end can show it, and nothing in it is interpreted as markup.
        if self._line is None:
            self._line = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._line.update({"text/plain": text}, raw=True)
