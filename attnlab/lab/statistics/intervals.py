"""Intervals of a mean, and of a paired difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from attnlab.lab.statistics.samples import BySeed, Values, check_level, check_tried, checked, mean, paired, spread


def interval(values: Values, level: float = 0.95, tried: int = 1, higher: bool = True) -> tuple[float, float]:
    """Student's t interval of the mean over n seeds: mean ± t(n−1) · s/√n, s with n−1 in its denominator.

    Where the values are those of the best of `tried` learning rates, chosen by these seeds, the end away from the
    good side (the lower one, if `higher` is good) takes its t at an error of (1 − level)/2 `tried`; `choose` says why.

    The seeds are taken to be independent draws, and their mean to be about normal; `python -m tests.lab.coverage`
    counts how often it covers. Identical values give an interval of no width: these seeds show no spread, which is
    not to say that others would not.

    Raises ValueError for fewer than two values, for one that is not finite, for a level outside (0, 1), and for
    fewer tried than one.
    Student 1908, "The probable error of a mean".

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)
    """
    array = checked(values)
    return around(array.size, mean(array), spread(array), level, *(tried, 1) if higher else (1, tried))


def summary(values: Values, tried: int = 1, higher: bool = True) -> dict[str, Any]:
    """A metric over seeds as `result.json` holds it: {"mean", "low", "high", "values"}, `interval` at 95%.

    `low` and `high` are None for one seed, which has no interval.
    Raises ValueError where there is no value, or one that is not finite.
    """
    array = checked(values, least=1)
    low, high = interval(array, 0.95, tried, higher) if array.size > 1 else (None, None)
    return {"mean": mean(array), "low": low, "high": high, "values": array.tolist()}


def summaries(
    scores: Sequence[dict[str, float]], headline: str, higher: bool, contenders: int
) -> dict[str, dict[str, Any]]:
    """The `summary` of every metric over seeds.

    Args:
        scores: The metrics of each seed, by name.
        headline: The metric that chose the learning rate. Its parts ("exact_match.de") share its selection effect.
        higher: Whether a higher headline is better.
        contenders: How many learning rates the choice was among.

    Returns:
        For each metric {"mean", "low", "high", "values"}. A metric that is not finite for some seed has its values
        and no mean.
    """

    def one(name: str) -> dict[str, Any]:
        values = [each[name] for each in scores]
        if not all(map(math.isfinite, values)):
            return {"mean": None, "low": None, "high": None, "values": values}
        return summary(values, contenders if name.split(".")[0] == headline else 1, higher)

    return {name: one(name) for name in scores[0]} if scores else {}


def difference(a: BySeed, b: BySeed, level: float = 0.95) -> tuple[float, float, float]:
    """The mean of a − b and its interval (mean, low, high); a[n] and b[n] share a seed.

    Pairing removes what a seed does to both alike: its data order, its initial values. Given as {seed: value}, the
    two are paired by seed, in whatever order they stand.
    Raises ValueError as `interval` does, where the lengths differ, and where a seed is in one alone.
    """
    array = paired(a, b)
    centre = mean(array)
    return centre, *around(array.size, centre, spread(array), level)


def around(
    seeds: int, centre: float, width: float, level: float, below: int = 1, above: int = 1
) -> tuple[float, float]:
    """The interval of a mean, by the spread of its seeds; its ends widened for having been the best of so many."""
    # scipy.special imports in a tenth of scipy.stats' time, and only where it is asked for.
    from scipy.special import stdtrit

    check_level(level)
    check_tried(below, above)
    # (1 + level) / 2 is more exact than 1 − (1 − level) / 2.
    low, high = (stdtrit(seeds - 1, (1 + level) / 2 if n == 1 else 1 - (1 - level) / 2 / n) for n in (below, above))
    error = width / math.sqrt(seeds)
    return centre - float(low) * error, centre + float(high) * error
