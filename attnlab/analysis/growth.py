"""How a cost grows with the sequence length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Growth:
    """A fitted power law, cost ∝ T^exponent."""

    exponent: float
    """The fitted exponent."""
    low: float | None
    """Lower end of the 95% interval, or None if there are too few points for one."""
    high: float | None
    """Upper end of the 95% interval, or None if there are too few points for one."""
    lengths: tuple[int, ...]
    """The lengths over which the law was fitted."""


def growth(costs: Mapping[int, Sequence[float]], largest: int | None = None) -> Growth | None:
    """Fits the exponent of T by least squares in log-log scale, with its 95% interval.

    Every measurement is a point. So the interval covers both the scatter of measurements and their deviation from a
    power of T.

    Args:
      costs: measurements at each length T. Values that are not above zero are ignored.
      largest: how many of the largest lengths to use, at least two. None (the default) uses the larger half, where
        costs that do not grow no longer matter.

    Returns:
      The fit, or None if fewer than two lengths have measurements above zero.
    """
    # Imported here, because scipy is slow to import and most uses of this package do not need it.
    from scipy.special import stdtrit

    measured = {T: [x for x in costs[T] if x > 0] for T in sorted(costs)}
    lengths = [T for T, values in measured.items() if values]
    if len(lengths) < 2:
        return None
    lengths = lengths[-max(2, math.ceil(len(lengths) / 2) if largest is None else largest) :]
    x, y = np.array([(math.log(T), math.log(value)) for T in lengths for value in measured[T]]).T
    x -= x.mean()
    exponent = float(x @ y / (x @ x))
    degrees = len(x) - 2
    if degrees < 1:
        return Growth(exponent, None, None, tuple(lengths))
    error = math.sqrt(max(0.0, float(np.sum((y - y.mean() - exponent * x) ** 2))) / degrees / float(x @ x))
    reach = error * float(stdtrit(degrees, 0.975))
    return Growth(exponent, exponent - reach, exponent + reach, tuple(lengths))
