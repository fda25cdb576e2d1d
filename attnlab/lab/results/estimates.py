"""Estimates over seeds, read from `result.json`. A value that is not finite is never averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.console.format import number
from attnlab.console.metric import Metric
from attnlab.lab.statistics import summary, tied
from attnlab.storage.json_file import FolderError


@dataclass(frozen=True)
class Estimate:
    """A metric over seeds, as in `result.json`."""

    mean: float | None
    """The mean over seeds, or None."""
    low: float | None
    """The lower end of the 95% interval of the mean, or None."""
    high: float | None
    """The upper end of the interval, or None."""
    values: tuple[float | None, ...]
    """The value of each seed. None stands for one that was not finite."""

    @property
    def sound(self) -> bool:
        """Whether there is a mean that includes every seed."""
        return self.mean is not None and None not in self.values

    @property
    def all_equal(self) -> bool:
        """Whether there are two or more seeds and all have the same value. Other seeds might still differ."""
        values = [value for value in self.values if value is not None]
        return self.sound and tied(values)

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """The interval to show. None for one seed and for an interval without width, which would suggest certainty."""
        return None if self.low is None or self.high is None or self.all_equal else (self.low, self.high)

    def format_interval(self, metric: Metric) -> str:
        """Format the interval, or say why there is none: "98.7–99.5%", "one seed", "no spread"."""
        if self.shown_interval is not None:
            return metric.format_interval(*self.shown_interval)
        return "one seed" if len(self.values) == 1 else "no spread" if self.all_equal else "no interval"


@dataclass(frozen=True)
class Rate:
    """The result of a learning rate on validation, over the seeds that did not diverge."""

    learning_rate: float
    """The learning rate."""
    estimate: Estimate
    """The estimate of the primary metric."""
    diverged: int
    """The number of seeds that diverged."""


def estimate(entry: object, where: str) -> Estimate:
    """Convert a metric's entry in a file. Raises FolderError with a message that starts with `where`."""
    if not isinstance(entry, dict) or not isinstance(values := entry.get("values"), list):
        raise FolderError(f"{where}: must have the fields mean, low, high and values")
    mean, low, high = (number(entry.get(name)) for name in ("mean", "low", "high"))
    return Estimate(mean, low, high, tuple(number(value) for value in values))


def rates(entries: object, lost: Sequence[object], where: str) -> tuple[Rate, ...]:
    """Convert a file's list of learning rates, sorted from the smallest.

    Args:
        entries: The list.
        lost: The learning rates of the lanes that diverged.
        where: The start of an error message.

    Raises:
        FolderError: The list is malformed.
    """
    if not isinstance(entries, list) or not all(map(_is_rate, entries)):
        raise FolderError(f"{where}: every entry must have learning_rate and values")
    found = []
    for entry in entries:
        rate = float(entry["learning_rate"])
        diverged = sum(is_rate(other, rate) for other in lost)
        found.append(Rate(rate, _of_the_alive(entry["values"], diverged), diverged))
    return tuple(sorted(found, key=lambda rate: rate.learning_rate))


def is_rate(value: object, rate: float) -> bool:
    """Return whether a learning rate read from a file equals `rate`, up to rounding."""
    value = number(value)
    return value is not None and math.isclose(value, rate, rel_tol=1e-9)


def _is_rate(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("values"), list):
        return False
    return (number(entry.get("learning_rate")) or 0) > 0


def _of_the_alive(listed: Sequence[object], diverged: int) -> Estimate:
    """Summarize the seeds that did not diverge. There is no mean if another seed has no finite value either."""
    values = [number(value) for value in listed]
    for _ in range(diverged):
        if None in values:
            values.remove(None)
    whole = [value for value in values if value is not None]
    if not whole or len(whole) < len(values):
        return Estimate(None, None, None, tuple(values))
    found = summary(whole)
    return Estimate(found["mean"], found["low"], found["high"], tuple(values))
