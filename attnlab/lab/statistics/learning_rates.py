"""The choice of the learning rate at which a variant is reported, and its contenders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.lab.statistics.samples import ROUNDING, mean, observed_scale, resolution

CERTAIN = 0.99  # the confidence that a rate is worse from which on it is no contender


@dataclass(frozen=True)
class Choice:
    """The chosen learning rate and its contenders, as indices into the list of rates."""

    best: int
    """The index of the chosen rate."""
    contenders: tuple[int, ...]
    """The indices of the rates that may be as good, including `best`."""


Scores = Sequence[Sequence[float | None]]


def choose(scores: Scores, higher: bool = True, losses: Scores | None = None) -> Choice:
    """Choose one learning rate for all seeds by their scores on validation.

    Rates are ranked by how few seeds diverged, then by the mean score of the other seeds. Among rates equal in both
    (`leaders`), the one with the lowest mean loss is chosen. If there are no losses, or they are equal too, the first
    is chosen.

    Selection bias. Of about equal rates, the choice takes the one that was lucky with these seeds, and the same seeds
    are lucky again on test. The interval accounts for this. The luckiest of m rates errs to the good side at most m
    times as often as a single rate, and to the other side no more often. `interval`, `summary`, `compare` and
    `verdicts` therefore take m as `tried` and give the good side 1/m of its error (Bonferroni). The mean itself is not
    corrected and is slightly too good. The interval covers the true mean at the chosen rate.

    m is the number of contenders. A contender has no more diverged seeds than the best rate, and the paired 99% t
    interval of its difference from the best does not exclude 0. Differences without spread use the scores'
    `resolution`, as in `compare`. A rate that is far worse had no chance of being chosen and does not count.

    Choosing each seed's rate by the other seeds would have no bias. But such values are not independent: if rates are
    alike, an interval over them covers far less than its level.

    Args:
        scores: the primary metric on validation, [seeds, rates]. None, or a number that is not finite, marks a lane
            that diverged. It counts against its rate and is never averaged.
        higher: whether a higher score is better.
        losses: the loss on validation, [seeds, rates], to break ties.

    Returns:
        The chosen rate and the contenders.

    Raises:
        ValueError: if there is no seed or no rate, or rows differ in length. Also if `losses` has another shape.

    >>> choose([[0.90, 0.50, 0.88], [0.91, 0.52, 0.93], [0.92, 0.51, 0.91]])
    Choice(best=0, contenders=(0, 2))
    """
    if losses is not None and [*map(len, losses)] != [*map(len, scores)]:
        raise ValueError("losses must be a table [seeds, rates] of the same shape as scores")
    table, sizes, means = _ranked(scores, higher)
    best, *others = _equals(sizes, means)
    if others and losses is not None:
        best = lowest(losses, (best, *others))[0]
    near = [n for n in range(sizes.size) if n == best or (sizes[n] == sizes[best] and _near(table[:, [best, n]]))]
    return Choice(best, tuple(near))


def leaders(scores: Scores, higher: bool = True) -> tuple[int, ...]:
    """Return the indices of the rates that share the best score, for scores as in `choose`. More than one is a tie.

    >>> leaders([[0.0, 0.0, 0.0], [0.0, 0.0, None]]), leaders([[0.5, 0.7]])
    ((0, 1), (1,))
    """
    _, sizes, means = _ranked(scores, higher)
    return _equals(sizes, means)


def lowest(losses: Scores, places: Sequence[int]) -> tuple[int, ...]:
    """Return those of the rates at the given indices that have the lowest mean loss.

    A rate with fewer diverged seeds is better, whatever its loss. If no loss is finite, all indices are returned.

    Args:
        losses: losses [seeds, rates].
        places: indices of rates.

    >>> lowest([[2.0, 1.0, 0.5]], (0, 1))
    (1,)
    """
    table = [[row[place] for place in places] for row in losses]
    return tuple(places[n] for n in leaders(table, higher=False))


def _ranked(scores: Scores, higher: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores (negated unless `higher`, NaN for diverged lanes), and per rate the finite count and mean."""
    if not len(scores) or not len(scores[0]) or len({len(row) for row in scores}) > 1:
        raise ValueError("scores must be a table [seeds, rates] with at least one seed and one rate")
    table = np.array([[math.nan if score is None else score for score in row] for row in scores], np.float64)
    table = np.where(np.isfinite(table), table if higher else -table, math.nan)
    sound = ~np.isnan(table)
    sizes = sound.sum(0)
    return table, sizes, np.where(sound, table, 0).sum(0) / np.maximum(sizes, 1)


def _equals(sizes: np.ndarray, means: np.ndarray) -> tuple[int, ...]:
    """Return the best rate and those that equal it up to rounding error."""
    best = max(range(sizes.size), key=lambda rate: (sizes[rate], means[rate]))
    same = (sizes == sizes[best]) & (np.abs(means - means[best]) <= ROUNDING * np.abs(means[best]))
    return tuple(int(n) for n in np.flatnonzero(same))


def _near(pair: np.ndarray) -> bool:
    """Return whether the second of two rates [seeds, 2] may be as good as the first."""
    from scipy.special import stdtrit

    first, second = pair[~np.isnan(pair).any(1)].T
    differences = first - second
    if differences.size < 2:
        return True
    fine = resolution(first, second)
    scale = observed_scale(differences, fine) or fine
    half_width = stdtrit(differences.size - 1, (1 + CERTAIN) / 2) * scale / math.sqrt(differences.size)
    return mean(differences) <= half_width
