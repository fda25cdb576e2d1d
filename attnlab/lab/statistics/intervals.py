"""Confidence intervals of a mean over seeds, and of a paired difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from attnlab.lab.statistics.samples import BySeed, Values, check_level, check_tried, checked, mean, paired, spread


def interval(values: Values, level: float = 0.95, tried: int = 1, higher: bool = True) -> tuple[float, float]:
    """Compute Student's t interval of the mean over n seeds.

        mean ± t(n−1) · s/√n, with the sample standard deviation s (n−1 in the denominator).

    The interval assumes that seeds are independent and that their mean is about normal. `python -m tests.lab.coverage`
    measures its coverage. Identical values give an interval of zero width, although other seeds could still differ.

    Args:
        values: the values of a metric, one per seed, at least two.
        level: the confidence level, in (0, 1).
        tried: how many learning rates the reported one was chosen from, by these seeds. The end of the interval on
            the unfavourable side (the lower end if `higher`) then uses an error of (1 − level)/(2 · tried). `choose`
            explains why.
        higher: whether a higher value is better.

    Returns:
        (low, high), in the units of the values.

    Raises:
        ValueError: for fewer than two values, a value that is not a finite number, a level outside (0, 1), or a `tried`
            that is not an integer of at least 1.

    Student 1908, "The probable error of a mean".

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)
    """
    array = checked(values)
    check_tried(tried)
    return t_interval(array.size, mean(array), spread(array), level, *(tried, 1) if higher else (1, tried))


class Summary(TypedDict):
    """A metric over seeds, as `result.json` holds it.

    `mean`, `low` and `high` are None if a value is not finite.
    """

    mean: float | None
    """The mean over seeds."""
    low: float | None
    """The lower end of the 95% interval of the mean. None for one seed."""
    high: float | None
    """The upper end of the 95% interval of the mean. None for one seed."""
    values: list[float]
    """The values, one per seed."""


def summary(values: Values, tried: int = 1, higher: bool = True) -> Summary:
    """Summarise a metric over seeds in the form that `result.json` holds.

    Args:
        values: the values of the metric, one per seed.
        tried: how many learning rates the reported one was chosen from, as in `interval`.
        higher: whether a higher value is better.

    Returns:
        {"mean", "low", "high", "values"}, with the `interval` at 95%. "low" and "high" are None for a single seed.

    Raises:
        ValueError: if there is no value, or one is not finite.
    """
    array = checked(values, least=1)
    low, high = interval(array, 0.95, tried, higher) if array.size > 1 else (None, None)
    return {"mean": mean(array), "low": low, "high": high, "values": array.tolist()}


def summaries(scores: Sequence[dict[str, float]], primary: str, higher: bool, tried: int) -> dict[str, Summary]:
    """Summarise every metric over seeds with `summary`.

    Args:
        scores: the metrics of each seed, by name.
        primary: the metric that chose the learning rate. The intervals of its parts
            ("exact_match.de") are corrected for this choice too.
        higher: whether a higher value of it is better.
        tried: how many learning rates the choice was made from.

    Returns:
        For each metric {"mean", "low", "high", "values"}. If a metric is not finite for some seed, all but "values"
        are None.
    """

    def one(name: str) -> Summary:
        values = [each[name] for each in scores]
        if not all(map(math.isfinite, values)):
            return {"mean": None, "low": None, "high": None, "values": values}
        return summary(values, tried if f"{name}.".startswith(f"{primary}.") else 1, higher)

    return {name: one(name) for name in scores[0]} if scores else {}


def difference(a: BySeed, b: BySeed, level: float = 0.95) -> tuple[float, float, float]:
    """Compute the mean of the paired differences a − b and its t interval.

    Pairing removes the effects that a seed has on both variants alike, such as data order and initial values.

    Args:
        a: values in the order of the seeds, or {seed: value} in any order.
        b: values of the same seeds, in the same form.
        level: the confidence level, in (0, 1).

    Returns:
        (mean, low, high), in the units of the values.

    Raises:
        ValueError: as `interval` does. Also if lengths differ, or a seed is in only one of the two.
    """
    array = paired(a, b)
    centre = mean(array)
    return centre, *t_interval(array.size, centre, spread(array), level)


def t_interval(
    seeds: int, centre: float, width: float, level: float, below: int = 1, above: int = 1
) -> tuple[float, float]:
    """Compute the t interval of a mean from its summary statistics.

    Args:
        seeds: the number of values.
        centre: their mean.
        width: their standard deviation.
        level: the confidence level, in (0, 1).
        below: the number of candidates by which the error of the lower end is divided (Bonferroni).
        above: the same for the upper end.

    Returns:
        (low, high).
    """
    # scipy.special imports ten times faster than scipy.stats. It is imported only when an interval is computed.
    from scipy.special import stdtrit

    check_level(level)
    check_tried(below, above)
    # (1 + level) / 2 has less rounding error than 1 − (1 − level) / 2.
    low, high = (stdtrit(seeds - 1, (1 + level) / 2 if n == 1 else 1 - (1 - level) / 2 / n) for n in (below, above))
    error = width / math.sqrt(seeds)
    return centre - float(low) * error, centre + float(high) * error
