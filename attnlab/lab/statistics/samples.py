"""The values of a metric, one per seed: validation, pairing, mean and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np

Values = Sequence[float] | np.ndarray
BySeed = Values | Mapping[int, float]
ROUNDING = 1e-12
# The ratio of the widest gap to the other gaps from which values count as bimodal. By chance, three normal seeds reach
# it three times in ten, and five seeds once in a hundred.
GAP_RATIO = 5.0


def checked(values: Values, least: int = 2) -> np.ndarray:
    """Return the values as float64 [n].

    Raises:
        ValueError: if the values are no list of numbers, or fewer than `least`. Also if one is not finite, or their
            range overflows a double.
    """
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        array = np.array(math.nan)
    if array.ndim != 1:
        raise ValueError(f"values={short(values)} must be a list with one number for each seed")
    if array.size < least:
        needed = "two seeds, because one has no interval" if least > 1 else "one seed"
        raise ValueError(f"values={short(values)} must contain at least {needed}")
    if not np.isfinite(array).all():
        raise ValueError(f"values={short(values)} must all be finite numbers")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.ptp(array) * array.size):
            raise ValueError(f"values={short(values)} are too far apart for double precision")
    return array


def paired(a: BySeed, b: BySeed) -> np.ndarray:
    """Return the paired differences a − b, one per seed, as float64 [n].

    Differences within rounding error count as 0.

    Args:
        a: values in the order of the seeds, or a mapping {seed: value}.
        b: values of the same seeds, in the same form.

    Raises:
        ValueError: as `checked` does. Also if lengths differ, a seed has no partner, or only one of the two is a
            mapping.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if alone := [seed for seed in (*a, *b) if seed not in a or seed not in b]:
            raise ValueError(f"seed {alone[0]} is in only one of a and b; both must have the same seeds")
        b = [b[seed] for seed in a]
        a = [*a.values()]
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        raise ValueError("a and b must both be lists, or both map seeds to values")
    first, second = checked(a), checked(b)
    if first.size != second.size:
        raise ValueError(f"a has {first.size} values and b has {second.size}; both must have one value for each seed")
    with np.errstate(over="ignore"):
        differences = first - second
    # Rounding error between equal numbers must not count as a difference.
    alike = np.abs(differences) <= ROUNDING * np.maximum(np.abs(first), np.abs(second))
    return checked(np.where(alike, 0.0, differences))


def resolution(a: BySeed, b: BySeed, metric_step: float | None = None) -> float:
    """Return the resolution of a metric: the smallest distance between any two different values of a and b.

    Args:
        a: values, or {seed: value}.
        b: values, or {seed: value}.
        metric_step: the change of the metric by one test example. It is returned if it is smaller than every distance.

    Returns:
        The resolution in the units of the values, or 0 if all values are equal and no `metric_step` is given.

    Raises:
        ValueError: if `metric_step` is not a finite number above 0.
    """
    if metric_step is not None and not 0 < metric_step < math.inf:
        raise ValueError(f"{metric_step=} must be a finite number above 0; one test example changes the metric by it")
    both = np.sort(np.concatenate([_listed(a), _listed(b)]))
    gaps = np.diff(both)
    # Rounding error between equal numbers must not count as a distance.
    gaps = gaps[gaps > ROUNDING * np.max(np.abs(both))]
    least = [float(np.min(gaps))] if gaps.size else []
    return min(least + ([] if metric_step is None else [metric_step]), default=0.0)


def _listed(values: BySeed) -> np.ndarray:
    """Return values, or the values of a mapping, as a checked array."""
    return checked([*values.values()] if isinstance(values, Mapping) else values)


def tied(values: Values) -> bool:
    """Return whether there are two or more values and all are equal up to rounding error."""
    array = np.asarray(values, np.float64)
    return array.size > 1 and bool(np.ptp(array) <= ROUNDING * np.max(np.abs(array)))


def bimodal_gap(values: BySeed) -> float:
    """Return the distance between two clusters of values, or 0 if the values form a single cluster.

    Two clusters appear if each seed either learns the task or does not. The values count as two clusters if the widest
    gap between neighbours is at least `GAP_RATIO` times the sum of all other gaps. Two different values are always two
    clusters.
    """
    gaps = np.diff(np.sort(_listed(values)))
    widest = float(np.max(gaps))
    return widest if widest >= GAP_RATIO * (float(np.sum(gaps)) - widest) else 0.0


def mean(array: np.ndarray) -> float:
    """Return the mean."""
    # Summing offsets from the first value makes the mean of equal values exact, so that their spread is exactly 0.
    return float(array[0]) + math.fsum(array - array[0]) / array.size


def spread(array: np.ndarray) -> float:
    """Return the sample standard deviation, with n − 1 in the denominator."""
    away = array - mean(array)
    # Scaling first keeps the squares of very large and very small numbers from overflowing or underflowing.
    scale = float(np.max(np.abs(away)))
    return scale * math.sqrt(math.fsum((away / scale) ** 2) / (array.size - 1)) if scale else 0.0


def observed_scale(differences: np.ndarray, resolution: float) -> float:
    """Return the standard deviation of differences, or 0 if it is only rounding error compared with the resolution."""
    found = spread(differences)
    return found if found > 1e-6 * resolution else 0.0


def check_level(level: float) -> None:
    """Raise ValueError if a confidence level lies outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"{level=} must lie between 0 and 1, for example 0.95")


def check_tried(*tried: int) -> None:
    """Raise ValueError if a number of learning rates that were tried is not an integer of at least 1."""
    if any(not isinstance(n, Integral) or n < 1 for n in tried):
        found = tried[0] if len(tried) == 1 else tried
        raise ValueError(f"tried={found} must be a whole number of at least 1, because the chosen learning rate counts")


def short(values: object) -> str:
    """Return the values as text of at most 80 characters on one line, for an error message."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 80 else text[:79] + "…"
