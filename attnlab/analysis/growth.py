"""How a cost grows with the length of a sequence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Growth:
    """cost ∝ T^exponent, fitted over `lengths`; `low` and `high` are None where the points allow no interval."""

    exponent: float
    low: float | None
    high: float | None
    lengths: tuple[int, ...]


def growth(costs: Mapping[int, Sequence[float]], largest: int | None = None) -> Growth | None:
    """The exponent of T in what was measured at each length, by least squares in log-log, with its 95% interval.

    Fitted over so many of the `largest` lengths (two at least); None: over the larger half, where what does not grow
    has stopped to matter. Every measurement is a point, so the interval holds both how they scatter and how far they
    are from a power of T. None where fewer than two lengths have measurements above zero.
    """
    # Imported where it is asked for: imports of the analysis stay light.
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
