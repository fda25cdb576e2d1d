"""Which learning rate a variant is reported at, and how many rates that choice was among."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.lab.statistics.samples import ROUNDING, mean, observed_scale, resolution

CERTAIN = 0.99  # of a rate's being worse, before it counts as one that could not have been chosen


@dataclass(frozen=True)
class Choice:
    """Places in the list of rates: the `best` one, and the `contenders`, itself among them, that may be as good."""

    best: int
    contenders: tuple[int, ...]


Scores = Sequence[Sequence[float | None]]


def choose(scores: Scores, higher: bool = True, losses: Scores | None = None) -> Choice:
    """One learning rate for all seeds, by their scores on validation [seeds, rates].

    A rate is the better the fewer seeds diverged at it, then by the mean of the rest. Of rates that are equal in both
    (`leaders`), the one with the lowest mean loss is taken, by `losses` [seeds, rates], and the first where losses are
    not given, or equal too. None, and any number that is not finite, is a lane that diverged: it counts against its
    rate and is never averaged.

    Choosing flatters: of rates that are about alike, the one is taken that was lucky with these seeds, and on test
    the same seeds are lucky again. So choosing is put inside the interval. The luckiest of m rates errs to the good
    side at most m times as often as one, and to the other side no more often than one; `interval`, `summary`,
    `compare` and `verdicts` take m as `tried`, and give the good side 1/m of its error (Bonferroni). The mean itself
    is left as it is, and is a little too good. What is covered is the true mean at the rate that was chosen.

    m counts the contenders: rates at which no more seeds diverged, and whose paired t interval of the difference from
    the best does not leave out 0 at 99% (differences that show no spread have the scores' `resolution`, as in
    `compare`). One that is far behind never had a chance, and costs nothing.

    To choose each seed's rate by the other seeds instead has no bias. But seeds that tune for each other are not
    independent: where rates are alike, an interval over such values covers far less than it says.

    Raises ValueError where there is no seed or no rate, and for rows of different lengths.

    >>> choose([[0.90, 0.50, 0.88], [0.91, 0.52, 0.93], [0.92, 0.51, 0.91]])
    Choice(best=0, contenders=(0, 2))
    """
    table, sizes, means = _ranked(scores, higher)
    best, *others = _equals(sizes, means)
    if others and losses is not None:
        best = lowest(losses, (best, *others))[0]
    near = [n for n in range(sizes.size) if n == best or (sizes[n] == sizes[best] and _near(table[:, [best, n]]))]
    return Choice(best, tuple(near))


def leaders(scores: Scores, higher: bool = True) -> tuple[int, ...]:
    """The places of the rates that share the best score, as `choose` takes scores; more than one is a tie.

    >>> leaders([[0.0, 0.0, 0.0], [0.0, 0.0, None]]), leaders([[0.5, 0.7]])
    ((0, 1), (1,))
    """
    _, sizes, means = _ranked(scores, higher)
    return _equals(sizes, means)


def lowest(losses: Scores, places: Sequence[int]) -> tuple[int, ...]:
    """Those of the places with the lowest mean loss, by losses [seeds, rates]; all where no loss is finite.

    The fewer seeds diverged at a rate, the better, whatever its loss.

    >>> lowest([[2.0, 1.0, 0.5]], (0, 1))
    (1,)
    """
    table = [[row[place] for place in places] for row in losses]
    return tuple(places[n] for n in leaders(table, higher=False))


def _ranked(scores: Scores, higher: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scores, more being better and NaN where a lane diverged; of each rate how many did not, and their mean."""
    if not len(scores) or not len(scores[0]) or len({len(row) for row in scores}) > 1:
        raise ValueError("scores must be a table [seeds, rates], with a seed and a rate at least")
    table = np.array([[math.nan if score is None else score for score in row] for row in scores], np.float64)
    table = np.where(np.isfinite(table), table if higher else -table, math.nan)
    sound = ~np.isnan(table)
    sizes = sound.sum(0)
    return table, sizes, np.where(sound, table, 0).sum(0) / np.maximum(sizes, 1)


def _equals(sizes: np.ndarray, means: np.ndarray) -> tuple[int, ...]:
    """The best rate and those that equal it, but for rounding."""
    best = max(range(sizes.size), key=lambda rate: (sizes[rate], means[rate]))
    same = (sizes == sizes[best]) & (np.abs(means - means[best]) <= ROUNDING * np.abs(means[best]))
    return tuple(int(n) for n in np.flatnonzero(same))


def _near(pair: np.ndarray) -> bool:
    """Whether the second of two rates [seeds, 2] may be as good as the first."""
    from scipy.special import stdtrit

    first, second = pair[~np.isnan(pair).any(1)].T
    behind = first - second
    if behind.size < 2:
        return True
    fine = resolution(first, second)
    reach = stdtrit(behind.size - 1, (1 + CERTAIN) / 2) * (observed_scale(behind, fine) or fine)
    return mean(behind) <= reach / math.sqrt(behind.size)
