"""The part that all displays of progress share: the state of the present variant, in words."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping

from attnlab.console.escape import plain
from attnlab.console.format import duration
from attnlab.lab.execution.eta import Eta
from attnlab.training.problem import Metric
from attnlab.training.progress import Progress

EVERY = 0.5  # the minimum seconds between two updates during training


class Display(Progress):
    """A `Progress` that keeps the state of the present variant. Subclasses show it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.eta = clock, Eta(clock)
        self.name, self.place = "", ""  # of the present variant. Between variants they are empty
        self.loss, self.metrics = "", ""
        self.activity = ""  # what a variant does instead of training steps, or how it ended
        self.updated = clock()

    @abstractmethod
    def show(self, last: bool = False) -> None:
        """Show the present state. `last` is whether the variant ends, so that its line stays."""

    @abstractmethod
    def write(self, line: str) -> None:
        """Print a message."""

    @property
    def left(self) -> list[str]:
        """The activity, or during training the speed and the time left."""
        return [self.activity] if self.activity else self.eta.words()

    def variant(self, name, index, count, total_steps, done_steps=0, later_steps=0):
        """Show the next variant."""
        self.eta.begin(total_steps, done_steps, later_steps)
        self.name, self.place = plain(name), f"variant {index + 1} of {count}"
        self.loss, self.metrics = "", ""
        self.update(f"reading the checkpoint of step {done_steps} …" if done_steps else "creating the models …")

    def compiling(self, what):
        """Show the compilation in place of the time left."""
        self.update(plain(f"compiling {what} …"))

    def compiled(self, what, seconds):
        """Show the time left again."""
        self.update()

    def advanced(self, step, loss, steps_per_second=None):
        """Show the step and the loss."""
        self.eta.advance(step, steps_per_second)
        self.loss = f"loss {loss:.4g}"
        self.update()

    def evaluated(self, step, metrics):
        """Show the metrics of the last evaluation."""
        self.metrics = measured(metrics)
        self.update()

    def finished(self):
        """Show the time that the variant took."""
        self.end(f"done in {duration(self.eta.elapsed)}")

    def failed(self, variant, reason):
        """Print the reason."""
        self.end()
        self.note(f"variant {variant} failed: {reason}")

    def note(self, text):
        """Print a line, which begins with the name of the present variant."""
        self.write(plain(labelled(self.name, text)))

    def close(self):
        """Leave the line of a variant that did not finish, without the time left."""
        self.end()

    def update(self, activity: str = "") -> None:
        """Show a new activity at once, and other changes at most every `EVERY` seconds."""
        if not activity and self.eta.step >= self.eta.total:
            activity = "evaluating …"
        if activity != self.activity or self.clock() - self.updated >= EVERY:
            self.activity, self.updated = activity, self.clock()
            self.show()

    def end(self, activity: str = "") -> None:
        """Show the last state of the present variant, if there is one. Later messages do not carry its name."""
        if self.name:
            self.eta.speed, self.activity = (self.eta.speed, activity) if activity else (None, "")
            self.show(last=True)
        self.name, self.activity = "", ""


def labelled(variant: str, text: str) -> str:
    """Return a line about a variant that begins with its name.

    >>> labelled("gru", "saved at step 8"), labelled("gru", "gru: the maps were not saved")
    ('gru: saved at step 8', 'gru: the maps were not saved')
    """
    return text if not variant or text.startswith(f"{variant}: ") else f"{variant}: {text}"


def measured(metrics: Mapping[Metric, float]) -> str:
    """Return metrics in words, each with its formatted value."""
    return plain(", ".join(f"{metric.title} {metric.format(value)}" for metric, value in metrics.items()))
