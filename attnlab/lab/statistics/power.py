"""What a number of seeds can find: the power of the paired t test, by the noncentral t distribution."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from attnlab.lab.statistics.samples import check_level

POWER = 0.8
MOST = 1_000_000  # seeds; nobody trains more


def power(difference: float, spread: float, seeds: int, level: float = 0.95) -> float:
    """The probability that the paired t test over so many seeds finds a true mean difference.

    1 − F(t) + F(−t), F the noncentral t distribution with n − 1 degrees and noncentrality √n · difference / spread,
    t the quantile of the two-sided test at 1 − level. `spread` is the standard deviation of a seed's difference, in
    its units.

    Raises ValueError for fewer than two seeds, a spread below 0, and what is not finite.
    Cohen 1988, "Statistical Power Analysis", chapter 2.

    >>> round(power(1.0, 1.0, 10), 4)
    0.8031
    """
    _check(spread, level, seeds)
    if not math.isfinite(difference):
        raise ValueError(f"{difference=} must be a finite number")
    if difference == 0:
        return 1 - level
    return 1.0 if spread == 0 else _power(abs(difference) / spread * math.sqrt(seeds), seeds - 1, level)


def smallest(spread: float, seeds: int, level: float = 0.95, wanted: float = POWER) -> float:
    """The least true difference that so many seeds find with a power of `wanted`, in the units of `spread`.

    Raises ValueError as `power` does, and for a power that is not between 1 − level and 1.

    >>> round(smallest(1.0, 10), 4)
    0.996
    """
    _check(spread, level, seeds, wanted)
    return _noncentrality(seeds, level, wanted) * spread / math.sqrt(seeds)


def needed(difference: float, spread: float, level: float = 0.95, wanted: float = POWER) -> int | None:
    """The least number of seeds, two or more, that find a true difference with a power of `wanted`.

    None where it would be more than a million, as for no difference at all.
    Raises ValueError as `smallest` does.

    >>> needed(1.0, 1.0), needed(0.5, 1.0)
    (10, 34)
    """
    _check(spread, level, wanted=wanted)
    enough = lambda seeds: power(difference, spread, seeds, level) >= wanted
    low, high = 1, 2
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@cache
def _noncentrality(seeds: int, level: float, wanted: float) -> float:
    """That of the power wanted. Of two seeds each look takes milliseconds, and all variants of a study ask alike."""
    low, high = 0.0, 1.0
    while _power(high, seeds - 1, level) < wanted:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, seeds - 1, level) >= wanted else (middle, high)
    return high


def _power(noncentrality: float, degrees: int, level: float) -> float:
    from scipy.special import stdtrit

    quantile = float(stdtrit(degrees, (1 + level) / 2))
    if noncentrality > 40 * (1 + quantile):
        return 1.0  # beyond it there is nothing left that a double holds
    return 1 - _below(quantile, noncentrality, degrees) + _below(-quantile, noncentrality, degrees)


def _below(t: float, noncentrality: float, degrees: int) -> float:
    from scipy.special import chdtri, nctdtr, ndtr

    found = float(nctdtr(degrees, noncentrality, t))
    if math.isfinite(found):
        return found
    # At levels beyond .9999 and two seeds its series gives up: then the mean over the quantiles of the spread.
    shares = (np.arange(20_000) + 0.5) / 20_000
    return float(np.mean(ndtr(t * np.sqrt(chdtri(degrees, shares) / degrees) - noncentrality)))


def _check(spread: float, level: float, seeds: int = 2, wanted: float = POWER) -> None:
    check_level(level)
    if seeds < 2:
        raise ValueError(f"{seeds=} must be two or more: one shows no spread")
    if not 0 <= spread < math.inf:
        raise ValueError(f"{spread=} must be a finite number, 0 or more")
    if not 1 - level < wanted < 1:
        raise ValueError(f"{wanted=} must lie between 1 − level and 1: what chance alone finds needs no seeds")
