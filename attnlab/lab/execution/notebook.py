"""Progress of a run in a notebook: one line that is updated in place, with notes below it.

The display of rich would need ipywidgets, and a saved notebook would not show its last state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attnlab.console.escape import plain
from attnlab.lab.execution.display import Display

if TYPE_CHECKING:
    from IPython.display import DisplayHandle


class Notebook(Display):
    """A `Progress` with one line: variant, index, steps, loss, validation, speed and time left. Notes are printed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        super().__init__(clock)
        self._line: DisplayHandle | None = None

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the line while the context is active, then empty it."""
        self._draw(f"{what} …")
        try:
            yield
        finally:
            self._draw("")

    def show(self, last=False):
        """Update the line."""
        steps = f"{self.name}, {self.place}: step {self.eta.step:,} of {self.eta.total:,}"
        self._draw(", ".join(part for part in (steps, self.loss, self.metrics, *self.left) if part))

    def write(self, line):
        """Print a message below."""
        print(line, flush=True)

    def _draw(self, line: str) -> None:
        from IPython.display import display

        # Only plain text: every front end can show it, and nothing in it is interpreted as markup.
        data = {"text/plain": plain(line)}
        if self._line is None:
            self._line = display(data, raw=True, display_id=True)
        else:
            self._line.update(data, raw=True)
