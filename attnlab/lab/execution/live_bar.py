"""Progress of a run on a terminal: one live line for the present variant, with earlier lines above it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from attnlab.console.escape import plain
from attnlab.console.format import duration
from attnlab.lab.execution.eta import Course, beginning, throughput
from attnlab.lab.execution.log_lines import labelled, measured

GAP = "  "
SHORTEST, LONGEST = 8, 40  # columns of a bar. With less room there is no bar
NAME = 12  # columns that a name keeps if other parts need room


class Terminal:
    """A `Progress` that shows one live line: name, bar, steps, loss, validation and time left, as far as there is room.

    Events are printed above it. The line of a finished variant stays, so that the present one is always the last.
    """

    def __init__(self, console: Any = None, clock: Callable[[], float] = time.monotonic):
        self._console = console or Console(stderr=True)
        self._course, self._shown = Course(clock), False
        self._loss, self._metric, self._left = "", "", [""]
        self._live = Live(get_renderable=self._line, console=self._console, refresh_per_second=4, transient=True)

    def waiting(self, what):
        """Show a spinner while the context is active."""
        return self._console.status(f"{what} …")

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Begin a new line. The line of a previous variant that did not finish stays above it."""
        self._leave()
        self._course.variant(plain(name), total_steps, done_steps, later_steps)
        self._loss, self._metric, self._left, self._shown = "", "", [beginning(done_steps)], True
        self._live.start()
        self._live.refresh()

    def compiling(self, what):
        """Show the compilation in place of the time left."""
        self._left = [plain(f"compiling {what} …")]
        self._live.refresh()

    def compiled(self, what, seconds):
        """Print a line that stays."""
        self._left = self._ahead()
        self.note(f"compiled {what} in {seconds:.1f} s")

    def advanced(self, step, loss, steps_per_second=None):
        """Move the bar."""
        self._course.advance(step, steps_per_second)
        self._loss, self._left = f"loss {loss:.4g}", self._ahead()

    def evaluated(self, step, metrics):
        """Show the metrics of the last evaluation next to the bar."""
        self._metric = measured(metrics)

    def saved(self, step):
        """Print nothing, because a line for each checkpoint would push the events off the screen."""

    def finished(self):
        """Print the final line of the variant, with the time that it took."""
        self._left = [f"done in {duration(self._course.elapsed)}"]
        self._leave()

    def note(self, text):
        """Print a line above the bar."""
        self._console.print(plain(labelled(self._course.name, text)), markup=False, emoji=False, highlight=False)

    def close(self):
        """Leave the line without the time left, and restore the cursor."""
        self._left = [""]
        self._leave()
        self._live.stop()

    def _ahead(self) -> list[str]:
        return ["evaluating …"] if self._course.step >= self._course.total else throughput(self._course)

    def _leave(self) -> None:
        """Print the live line, if there is one, so that it stays."""
        if self._shown:
            line, self._shown = self._line(), False
            self._live.refresh()
            self._console.print(line)

    def _line(self) -> Text:
        if not self._shown:
            return Text("")
        course = self._course
        return fitted(
            course.name, (course.step, course.total), self._loss, self._metric, self._left, self._console.width
        )


def fitted(name: str, steps: tuple[int, int], loss: str, metric: str, left: list[str], width: int) -> Text:
    """Fit a line into `width` columns: name, bar, "step/total", loss, metric and `left`.

    If there is not enough room, parts are dropped in this order: the bar, the metric, the speed (all of `left` but its
    last part), the end of the name, the loss, and the rest of `left`.

    >>> fitted("softmax", (3, 12), "loss 0.5", "", ["2 steps/s", "5 s left"], 60).plain
    'softmax  ━━━───────────  3/12  loss 0.5  2 steps/s, 5 s left'
    >>> fitted("softmax", (3, 12), "loss 0.5", "bleu 3.0", ["2 steps/s", "5 s left"], 40).plain
    'softmax  3/12  loss 0.5  5 s left'
    """
    done = f"{steps[0]}/{steps[1]}"
    full_name = [[loss, metric, ", ".join(left)], [loss, ", ".join(left)]]
    short_name = [[loss, *left[-1:]], left[-1:]]
    options = [*((parts, len(name)) for parts in full_name), *((parts, NAME) for parts in short_name), ([], 0)]
    for parts, least in options:
        rest = GAP.join([done, *filter(None, parts)])
        room = width - len(rest) - len(GAP)
        if room >= min(least, len(name)):
            break
    name = name if room >= len(name) else name[: max(room - 1, 0)] + "…"
    bar = min(width - len(name) - len(rest) - 2 * len(GAP), LONGEST)
    line = Text(name + GAP, no_wrap=True, overflow="ellipsis", end="")
    if bar >= SHORTEST:
        full = bar * steps[0] // max(steps[1], 1)
        line.append("━" * full, "green").append("─" * (bar - full), "bright_black").append(GAP)
    return line.append(rest)
