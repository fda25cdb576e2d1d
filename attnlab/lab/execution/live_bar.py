"""Progress of a run on a terminal: one live line for the present variant, with earlier lines above it."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from attnlab.lab.execution.display import Display

BAR = 40  # columns of the bar, at most


class Terminal(Display):
    """A `Progress` that shows one live line: name, bar, steps, loss, validation and time left, as far as there is room.

    Messages are printed above it. The line of a finished variant stays, so that the present one is always the last.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic):
        super().__init__(clock)
        self._console = console or Console(stderr=True)
        self._live: Live | None = None

    def waiting(self, what):
        """Show a spinner while the context is active."""
        return self._console.status(f"{what} …")

    def compiled(self, what, seconds):
        """Print a line that stays."""
        super().compiled(what, seconds)
        self.note(f"compiled {what} in {seconds:.1f} s")

    def show(self, last=False):
        """Draw the line of the present variant."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update("" if last else self.line(), refresh=True)
        if last:
            self._live.stop()
            self._live = None
            self._console.print(self.line())

    def write(self, line):
        """Print a message above the line."""
        self._console.print(line, markup=False, emoji=False, highlight=False)

    def line(self) -> Table:
        """Return the line. A narrow terminal shows fewer parts, and the ends of long ones are left out."""
        *speed, left = self.left or [""]
        eta = self.eta
        parts: tuple[tuple[int, bool, str | ProgressBar], ...] = (  # each with the least width of the terminal for it,
            # and whether it is kept whole if there is too little room for all
            (0, False, self.name),
            (100, False, ProgressBar(total=max(eta.total, 1), completed=eta.step, width=BAR)),
            (0, True, f"{eta.step}/{eta.total}"),
            (50, False, self.loss),
            (80, False, self.metrics),
            (100, True, "".join(speed)),
            (35, not self.activity, left),
        )
        shown = [(whole, part) for least, whole, part in parts if part and self._console.width >= least]
        line = Table.grid(*(Column(no_wrap=whole) for whole, _ in shown), padding=(0, 2, 0, 0))
        line.add_row(
            *(Text(part, no_wrap=True, overflow="ellipsis") if isinstance(part, str) else part for _, part in shown)
        )
        return line
