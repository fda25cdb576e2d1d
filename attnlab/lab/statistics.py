"""What a few seeds allow one to say: intervals of a mean, and a verdict on a paired difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Word = Literal["better", "worse", "same", "unclear"]


@dataclass(frozen=True)
class Verdict:
    """What `compare(a, b, margin)` concluded of a against b.

    `difference` is mean(a − b) in the units of the values, whichever direction is good; `low` and `high`
    bound it at `level`.
    """

    verdict: Word
    difference: float
    low: float
    high: float
    margin: float
    level: float


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's t interval of the mean over n seeds: mean ± t(n−1) · s/√n, s with n−1 in its denominator.

    The seeds are taken to be independent draws, and their mean to be about normal. Identical values give an
    interval of no width: these seeds show no spread, which is not to say that others would not.

    Raises ValueError for fewer than two values, for one that is not finite, and for a level outside (0, 1).
    Student 1908, "The probable error of a mean".

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)
    """
    array = _seeds(values)
    _check_level(level)
    mean, reach = _mean(array), _reach(array, level)
    return mean - reach, mean + reach


def summary(values: Sequence[float]) -> dict[str, Any]:
    """A metric over seeds as `result.json` holds it: {"mean", "low", "high", "values"}, at 95%.

    `low` and `high` are None for one seed, which has no interval.
    Raises ValueError where there is no value, or one that is not finite.
    """
    array = _seeds(values, least=1)
    low, high = interval(values) if array.size > 1 else (None, None)
    return {"mean": _mean(array), "low": low, "high": high, "values": array.tolist()}


def difference(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The mean of a − b and its interval (mean, low, high); a[n] and b[n] share a seed.

    Pairing removes what a seed does to both alike: its data order, its initial values.
    Raises ValueError as `interval` does, and where the lengths differ.
    """
    pairs = _pairs(a, b)
    return _mean(pairs), *interval(pairs.tolist(), level)


def compare(a: Sequence[float], b: Sequence[float], margin: float, level: float = 0.95, higher: bool = True) -> Verdict:
    """Whether a is better than b, over paired seeds, where differences up to `margin` do not matter.

    With α = 1 − level, d the mean of a − b:

    - same: the 1 − 2α interval of d lies inside (−margin, margin); that is two one-sided t tests, each at
      level α, against |d| ≥ margin (TOST). It is asked first: a difference may be significant and yet too
      small to matter, and the margin is the asker's own word for what does not matter.
    - better, worse: not the same, and the `level` interval of d leaves out 0. `higher` says whether more of
      the metric is better. The sign is then known; that the difference exceeds the margin is not.
    - unclear: neither.

    For equal a and b, at most α of studies end in better or worse. That is for one comparison: a study of
    several needs a correction.

    Raises ValueError as `difference` does, and for a margin that is not a finite number above 0.
    Schuirmann 1987, J. Pharmacokin. Biopharm. 15:657.

    >>> compare([0.9, 0.91, 0.92], [0.5, 0.52, 0.51], margin=0.01).verdict
    'better'
    """
    if not 0 < margin < math.inf:
        raise ValueError(f"{margin=} must be a finite number above 0: the difference that does not matter")
    centre, low, high = difference(a, b, level)
    reach = _reach(_pairs(a, b), max(2 * level - 1, 0))
    return Verdict(_word(centre, reach, low, high, margin, higher), centre, low, high, margin, level)


def _word(centre: float, reach: float, low: float, high: float, margin: float, higher: bool) -> Word:
    if -margin < centre - reach and centre + reach < margin:
        return "same"
    if low <= 0 <= high:
        return "unclear"
    return "better" if (low > 0) == higher else "worse"


def _reach(array: np.ndarray, level: float) -> float:
    """Half the width of the interval."""
    # scipy.special imports in a tenth of scipy.stats' time, and only where it is asked for.
    from scipy.special import stdtrit

    count = array.size
    return float(stdtrit(count - 1, (1 + level) / 2) * _spread(array) / math.sqrt(count))


def _mean(array: np.ndarray) -> float:
    # Counted from the first value, equal values have exactly that value for a mean, and no spread.
    return float(array[0]) + math.fsum(array - array[0]) / array.size


def _spread(array: np.ndarray) -> float:
    centre = _mean(array)
    return math.sqrt(math.fsum((array - centre) ** 2) / (array.size - 1))


def _seeds(values: Sequence[float], least: int = 2) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size < least:
        needed = "two seeds or more: one has no interval" if least > 1 else "one seed or more"
        raise ValueError(f"values={_short(values)} must list {needed}")
    if not np.isfinite(array).all():
        raise ValueError(f"values={_short(values)} must all be finite numbers")
    return array


def _pairs(a: Sequence[float], b: Sequence[float]) -> np.ndarray:
    first, second = _seeds(a), _seeds(b)
    if first.size != second.size:
        raise ValueError(f"a has {first.size} values and b has {second.size}: they must pair, one a seed")
    return first - second


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"{level=} must lie between 0 and 1, such as .95")


def _short(values: Any) -> str:
    text = " ".join(repr(values).split())
    return text if len(text) <= 80 else text[:79] + "…"
