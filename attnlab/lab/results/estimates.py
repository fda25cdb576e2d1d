"""What seeds came to, read from `result.json`: nothing averaged that is not a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.console.format import number, span
from attnlab.lab.statistics import summary, tied
from attnlab.storage.json_file import FolderError


@dataclass(frozen=True)
class Estimate:
    """A metric over seeds, as `result.json` holds it. A value of None is one that was not finite."""

    mean: float | None
    low: float | None
    high: float | None
    values: tuple[float | None, ...]

    @property
    def sound(self) -> bool:
        """Whether there is a mean, and every seed is in it."""
        return self.mean is not None and None not in self.values

    @property
    def still(self) -> bool:
        """Whether its seeds show no spread: two or more came to one number, which is not to say that others would."""
        values = [value for value in self.values if value is not None]
        return self.sound and tied(values)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval that may be shown: none of one seed, and none of no width, which would pass for certainty."""
        return None if self.low is None or self.high is None or self.still else (self.low, self.high)

    def reach(self, metric: str) -> str:
        """The interval as a person reads it, or why there is none: "98.7–99.5%", "one seed", "no spread"."""
        if self.ends is not None:
            return span(metric, *self.ends)
        return "one seed" if len(self.values) == 1 else "no spread" if self.still else "no interval"


@dataclass(frozen=True)
class Rate:
    """What a learning rate came to on validation, over the seeds that did not diverge at it."""

    learning_rate: float
    estimate: Estimate
    diverged: int


def estimate(entry: Any, where: str) -> Estimate:
    """A metric as a file holds it. Raises FolderError, beginning with `where`."""
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(values, list):
        raise FolderError(f"{where}: must hold mean, low, high and values")
    mean, low, high = (number(entry.get(name)) for name in ("mean", "low", "high"))
    return Estimate(mean, low, high, tuple(number(value) for value in values))


def rates(entries: Any, lost: Sequence[Any], where: str) -> tuple[Rate, ...]:
    """The learning rates as a file holds them, the smallest first; `lost` are the rates of lanes that diverged.

    Raises FolderError, beginning with `where`.
    """
    if not isinstance(entries, list) or not all(map(_is_rate, entries)):
        raise FolderError(f"{where}: must list learning_rate and values")
    found = []
    for entry in entries:
        rate = float(entry["learning_rate"])
        diverged = sum(is_rate(other, rate) for other in lost)
        found.append(Rate(rate, _of_the_alive(entry["values"], diverged), diverged))
    return tuple(sorted(found, key=lambda rate: rate.learning_rate))


def is_rate(value: Any, rate: float) -> bool:
    """Whether a learning rate read from a file is the one meant."""
    value = number(value)
    return value is not None and math.isclose(value, rate, rel_tol=1e-9)


def _is_rate(entry: Any) -> bool:
    known = isinstance(entry, dict) and isinstance(entry.get("values"), list)
    return known and (number(entry.get("learning_rate")) or 0) > 0


def _of_the_alive(listed: list[Any], diverged: int) -> Estimate:
    """Of the seeds that did not diverge; where another has no number either, there is no mean."""
    values = [number(value) for value in listed]
    for _ in range(diverged):
        if None in values:
            values.remove(None)
    whole = [value for value in values if value is not None]
    if not whole or len(whole) < len(values):
        return Estimate(None, None, None, tuple(values))
    told = summary(whole)
    return Estimate(told["mean"], told["low"], told["high"], tuple(values))
