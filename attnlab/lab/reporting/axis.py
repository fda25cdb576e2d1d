"""Axes: the position of a number between two ends, and the round numbers along it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.console.metric import Metric

ANY = Metric("")  # any number is possible
ROOM = 0.04  # the fraction of its length that an axis leaves empty at each end


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis."""

    low: float
    """The lower end."""
    high: float
    """The upper end."""
    ticks: tuple[float, ...]
    """The positions of the ticks."""
    log: bool = False
    """Whether the axis is logarithmic."""

    def share(self, value: float) -> float:
        """Return the position of a value, 0 … 1. Values beyond an end are clipped."""
        low, high, value = (_log(x) if self.log else x for x in (self.low, self.high, value))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def at(self, value: float) -> str:
        """Return the position as a percentage of the width."""
        return f"{100 * self.share(value):.2f}%"


def axis(numbers: Iterable[float], metric: Metric = ANY, marks: int = 4) -> Axis:
    """Return a linear axis that contains all numbers.

    It has about `marks` ticks and at least two. No tick is outside the metric's possible values.
    """
    found = list(numbers) or [0.0, 1.0]
    low, high = metric.clip(min(found), max(found))
    room = ROOM * (high - low) or 0.01 * (abs(high) or 1)
    first, last = metric.clip(low - room, high + room)
    ticks = []
    # A single tick would show no scale.
    for finer in (marks, 2 * marks, 4 * marks):
        if len(ticks) < 2:
            ticks = [tick for tick in _even(low - room, high + room, finer) if first - 1e-9 <= tick <= last + 1e-9]
    return Axis(low - room, high + room, tuple(ticks))


def log_axis(numbers: Iterable[float], marks: int = 5) -> Axis:
    """Return a logarithmic axis for positive numbers, with ticks at 1, 2 and 5 times powers of ten or at fewer.

    If fewer than two of them lie between the ends, the ticks are evenly spaced.
    """
    found = list(numbers)
    wide = _log(max(found)) - _log(min(found))
    room = max(ROOM * wide, 0.02)
    low, high = min(found) / 10**room, max(found) * 10**room
    powers = range(math.floor(_log(low)), math.ceil(_log(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [n * 10.0**power for power in powers for n in factors if low <= n * 10.0**power <= high]
        if len(ticks) <= marks:
            break
    ticks = ticks[:: -(-len(ticks) // marks)] if ticks else []
    for finer in (3, 5, 9):
        ticks = ticks if len(ticks) > 1 else _even(low, high, finer)
    return Axis(low, high, tuple(ticks), log=True)


def _even(low: float, high: float, marks: int) -> list[float]:
    step = _step((high - low) / marks)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _step(rough: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


def _log(value: float) -> float:
    return math.log10(value)
