"""The power of the paired t test over seeds, by the noncentral t distribution."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from attnlab.lab.statistics.samples import check_level

POWER = 0.8
MOST = 1_000_000  # seeds at which `required_seeds` gives up


def power(difference: float, spread: float, seeds: int, level: float = 0.95) -> float:
    """Return the probability that the paired t test detects a true mean difference.

        1 − F(t) + F(−t)

    F is the noncentral t distribution with n − 1 degrees of freedom and noncentrality √n · difference / spread. t is
    the quantile of the two-sided test at 1 − level.

    Args:
        difference: the true mean difference.
        spread: the standard deviation of the paired difference over seeds, in the same units.
        seeds: the number of seeds n, at least two.
        level: the confidence level, in (0, 1).

    Raises:
        ValueError: for fewer than two seeds, a spread below 0, or an argument that is not finite.

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


def minimum_detectable_difference(spread: float, seeds: int, level: float = 0.95, target_power: float = POWER) -> float:
    """Return the smallest true difference that the test detects with a given power.

    Args:
        spread: the standard deviation of the paired difference over seeds.
        seeds: the number of seeds, at least two.
        level: the confidence level, in (0, 1).
        target_power: the required power, between 1 − level and 1.

    Returns:
        The difference, in the units of `spread`.

    Raises:
        ValueError: as `power` does. Also if `target_power` is not between 1 − level and 1.

    >>> round(minimum_detectable_difference(1.0, 10), 4)
    0.996
    """
    _check(spread, level, seeds, target_power)
    return _noncentrality(seeds, level, target_power) * spread / math.sqrt(seeds)


def required_seeds(difference: float, spread: float, level: float = 0.95, target_power: float = POWER) -> int | None:
    """Return the smallest number of seeds, at least two, that detects a true difference with a given power.

    Args:
        difference: the true mean difference.
        spread: the standard deviation of the paired difference over seeds, in the same units.
        level: the confidence level, in (0, 1).
        target_power: the required power, between 1 − level and 1.

    Returns:
        The number of seeds, or None if it exceeds a million, for example for a difference of 0.

    Raises:
        ValueError: as `minimum_detectable_difference` does.

    >>> required_seeds(1.0, 1.0), required_seeds(0.5, 1.0)
    (10, 34)
    """
    _check(spread, level, target_power=target_power)
    enough = lambda seeds: power(difference, spread, seeds, level) >= target_power
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
def _noncentrality(seeds: int, level: float, target_power: float) -> float:
    """Return the noncentrality that gives the required power. Cached, because all variants of a study share it."""
    low, high = 0.0, 1.0
    while _power(high, seeds - 1, level) < target_power:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, seeds - 1, level) >= target_power else (middle, high)
    return high


def _power(noncentrality: float, degrees: int, level: float) -> float:
    """Return the power of the two-sided t test at a noncentrality."""
    from scipy.special import stdtrit

    quantile = float(stdtrit(degrees, (1 + level) / 2))
    if noncentrality > 40 * (1 + quantile):
        return 1.0  # the difference from 1 is below double precision
    return 1 - _below(quantile, noncentrality, degrees) + _below(-quantile, noncentrality, degrees)


def _below(t: float, noncentrality: float, degrees: int) -> float:
    """Return the noncentral t distribution function at t."""
    from scipy.special import chdtri, nctdtr, ndtr

    if t < 0 and noncentrality > 9:
        return 0.0  # at most Φ(−9) = 1e-19, where `nctdtr` often returns NaN
    found = float(nctdtr(degrees, noncentrality, t))
    if math.isfinite(found):
        return found
    # For two seeds at levels beyond .9999 the series of `nctdtr` does not converge. Then average over quantiles of the
    # sample spread.
    shares = (np.arange(20_000) + 0.5) / 20_000
    return float(np.mean(ndtr(t * np.sqrt(chdtri(degrees, shares) / degrees) - noncentrality)))


def _check(spread: float, level: float, seeds: int = 2, target_power: float = POWER) -> None:
    """Raise ValueError for an argument out of range."""
    check_level(level)
    if seeds < 2:
        raise ValueError(f"{seeds=} must be at least 2, because one seed has no spread")
    if not 0 <= spread < math.inf:
        raise ValueError(f"{spread=} must be a finite number of at least 0")
    if not 1 - level < target_power < 1:
        raise ValueError(f"{target_power=} must lie between 1 − level and 1; chance alone reaches a power of 1 − level")
