"""Axes: where a number stands between two ends, and which round numbers are written along them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.console.format import within

ROOM = 0.04  # of its length, that an axis leaves empty at either end


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, equal steps or (`log`) equal factors, with a mark at each of `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value stands, 0 … 1; past an end, at the end."""
        low, high, value = (_log(x) if self.log else x for x in (self.low, self.high, value))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def at(self, value: float) -> str:
        """The same in per cent of the width."""
        return f"{100 * self.share(value):.2f}%"


def axis(numbers: Iterable[float], metric: str = "", marks: int = 4) -> Axis:
    """An axis that shows all numbers, with about so many marks, two at least, none where the metric cannot be."""
    found = list(numbers) or [0.0, 1.0]
    low, high = within(metric, min(found), max(found))
    room = ROOM * (high - low) or 0.01 * (abs(high) or 1)
    first, last = within(metric, low - room, high + room)
    ticks = []
    # One mark alone tells no distance.
    for finer in (marks, 2 * marks, 4 * marks):
        if len(ticks) < 2:
            ticks = [tick for tick in _even(low - room, high + room, finer) if first - 1e-9 <= tick <= last + 1e-9]
    return Axis(low - room, high + room, tuple(ticks))


def log_axis(numbers: Iterable[float], marks: int = 5) -> Axis:
    """The same by factors, for numbers above 0: marks at 1, 2 and 5 times powers of ten, or at these powers alone.

    Where no two of them lie between the ends, the marks are at even steps.
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
    """The smallest of 1, 2, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


def _log(value: float) -> float:
    return math.log10(value)
