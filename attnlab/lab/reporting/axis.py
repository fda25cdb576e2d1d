"""Axes: the position of a number between two ends, and the round numbers along it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.console.metric import Metric

ANY = Metric("")  # any number is possible
ROOM = 0.04  # the fraction of its length that an axis leaves empty at each end
STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Axis:
    """A linear axis."""

    low: float
    """The lower end."""
    high: float
    """The upper end."""
    ticks: tuple[float, ...]
    """The positions of the ticks."""

    def share(self, value: float) -> float:
        """Return the position of a value, 0 … 1. Values beyond an end are clipped."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def at(self, value: float) -> str:
        """Return the position as a percentage of the width."""
        return f"{100 * self.share(value):.2f}%"


def axis(numbers: Iterable[float], metric: Metric = ANY, marks: int = 4) -> Axis:
    """Return a linear axis that contains all numbers.

    It has about `marks` ticks and at least two. No tick is outside the metric's possible values.

    Args:
        numbers: The numbers, or none for an axis around 0 … 1.
        metric: The metric of the numbers, whose possible values limit the ticks. By default any number is possible.
        marks: The approximate number of ticks. Default: 4.
    """
    from matplotlib.ticker import MaxNLocator

    found = list(numbers) or [0.0, 1.0]
    low, high = metric.clip(min(found), max(found))
    room = ROOM * (high - low) or 0.01 * (abs(high) or 1)
    first, last = metric.clip(low - room, high + room)
    ticks: list[float] = []
    # A single tick would show no scale.
    for finer in (marks, 2 * marks, 4 * marks):
        if len(ticks) < 2:
            every = MaxNLocator(finer, steps=STEPS).tick_values(low - room, high + room)
            ticks = [tick for tick in map(float, every) if max(first, low - room) - 1e-9 <= tick <= last + 1e-9]
    return Axis(low - room, high + room, tuple(ticks))


def log_ticks(low: float, high: float, marks: int) -> list[float]:
    """Return the ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, or fewer if they are more than `marks`.

    If fewer than two of them lie between the ends, the ticks are evenly spaced.

    Args:
        low: The lower end of the axis, above 0.
        high: The upper end.
        marks: The largest number of ticks.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    powers = [LogLocator(subs=factors, numticks=marks) for factors in ((1, 2, 5), (1, 3), (1,))]
    ticks: list[float] = []
    for locator in (*powers, *(MaxNLocator(finer, steps=STEPS) for finer in (3, 5, 9))):
        ticks = [tick for tick in map(float, locator.tick_values(low, high)) if low <= tick <= high]
        if 2 <= len(ticks) <= marks:
            break
    return ticks
