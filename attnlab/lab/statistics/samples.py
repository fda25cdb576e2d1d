"""The values of a metric, one a seed: checked before anything is made of them, their mean and their spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Values = Sequence[float] | np.ndarray
BySeed = Values | Mapping[int, float]
ROUNDING = 1e-12
HEAPS = 5.0  # times the rest: three normal seeds look like that three times in ten, five once in a hundred


def checked(values: Values, least: int = 2) -> np.ndarray:
    """The values as float64 [n]. Raises ValueError for fewer than `least`, and for one that is not finite."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size < least:
        needed = "two seeds or more: one has no interval" if least > 1 else "one seed or more"
        raise ValueError(f"values={short(values)} must list {needed}")
    if not np.isfinite(array).all():
        raise ValueError(f"values={short(values)} must all be finite numbers")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.ptp(array) * array.size):
            raise ValueError(f"values={short(values)} are too far apart for double precision")
    return array


def paired(a: BySeed, b: BySeed) -> np.ndarray:
    """The differences a − b, one a seed, as float64 [n].

    Both list their values in the order of the same seeds, or both give them by seed: {seed: value}.
    Raises ValueError as `checked` does, and where there is no partner.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if alone := [seed for seed in (*a, *b) if seed not in a or seed not in b]:
            raise ValueError(f"seed {alone[0]} is in one of a and b alone: they must pair, one a seed")
        b = [b[seed] for seed in a]
        a = [*a.values()]
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        raise ValueError("a and b must both be lists, or both give their values by seed")
    first, second = checked(a), checked(b)
    if first.size != second.size:
        raise ValueError(f"a has {first.size} values and b has {second.size}: they must pair, one a seed")
    with np.errstate(over="ignore"):
        apart = first - second
    # What rounding makes of equal numbers is no difference.
    alike = np.abs(apart) <= ROUNDING * np.maximum(np.abs(first), np.abs(second))
    return checked(np.where(alike, 0.0, apart))


def resolution(a: BySeed, b: BySeed, step: float | None = None) -> float:
    """How finely values are told apart: the least distance of any two of them, or `step`, one example's, where less.

    0 where all are one number and no step is given. Raises ValueError for a step that is not a finite number above 0.
    """
    if step is not None and not 0 < step < math.inf:
        raise ValueError(f"{step=} must be a finite number above 0: what one example more changes of the metric")
    both = np.sort(np.concatenate([_listed(a), _listed(b)]))
    apart = np.diff(both)
    # What rounding makes of equal numbers is no distance.
    apart = apart[apart > ROUNDING * np.max(np.abs(both))]
    least = [float(np.min(apart))] if apart.size else []
    return min(least + ([] if step is None else [step]), default=0.0)


def _listed(values: BySeed) -> np.ndarray:
    return checked([*values.values()] if isinstance(values, Mapping) else values)


def tied(values: Values) -> bool:
    """Whether two values or more are all one number, but for rounding: they show no spread."""
    array = np.asarray(values, np.float64)
    return array.size > 1 and bool(np.ptp(array) <= ROUNDING * np.max(np.abs(array)))


def bimodal_gap(values: BySeed) -> float:
    """How far apart two heaps lie in which values stand, as where each seed learns the task or does not; 0 of one.

    They are two where the widest gap is `HEAPS` times what the values spread over on its two sides together, or more.
    Two values are two heaps.
    """
    apart = np.diff(np.sort(_listed(values)))
    widest = float(np.max(apart))
    return widest if widest >= HEAPS * (float(np.sum(apart)) - widest) else 0.0


def mean(array: np.ndarray) -> float:
    """The mean."""
    # Counted from the first value, equal values have exactly that value for a mean, and no spread.
    return float(array[0]) + math.fsum(array - array[0]) / array.size


def spread(array: np.ndarray) -> float:
    """The standard deviation, with n − 1 in its denominator."""
    away = array - mean(array)
    # The squares of very large and very small numbers are no numbers.
    scale = float(np.max(np.abs(away)))
    return scale * math.sqrt(math.fsum((away / scale) ** 2) / (array.size - 1)) if scale else 0.0


def observed_scale(differences: np.ndarray, grain: float) -> float:
    """The spread of differences of values of that grain; 0 where rounding alone makes one."""
    found = spread(differences)
    return found if found > 1e-6 * grain else 0.0


def check_level(level: float) -> None:
    """Raise ValueError for a level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"{level=} must lie between 0 and 1, such as .95")


def check_tried(*tried: int) -> None:
    """Raise ValueError for a number of learning rates, of which the best was chosen, below one."""
    if any(n < 1 for n in tried):
        raise ValueError(f"tried={tried} must be at least 1: the one that was chosen")


def short(values: Any) -> str:
    """Values in an error's one line."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 80 else text[:79] + "…"
