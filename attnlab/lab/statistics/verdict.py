"""Better, worse, the same within a margin, or unclear: what paired seeds say of two variants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Literal

import numpy as np

from attnlab.lab.statistics.intervals import around
from attnlab.lab.statistics.power import POWER, needed, smallest
from attnlab.lab.statistics.samples import BySeed, check_level, check_tried, mean, observed_scale, paired, resolution

Word = Literal["better", "worse", "same", "unclear"]


@dataclass(frozen=True)
class Verdict:
    """What `compare(a, b, margin)` concluded of a against b.

    `difference` is mean(a − b) in the units of the values, whichever direction is good, and `spread` the standard
    deviation of a − b over `seeds`. `p` belongs to the test that the true difference is 0, `p_same` to the test that
    it is `margin` or more either way. `low` and `high` bound it at `level`.

    As one of several `comparisons` that a study plans, `p` and `p_same` are adjusted for all of them, and `low` and
    `high` are at 1 − (1 − level)/comparisons. Learning rates `tried` for a and b widen the interval, each on its side.
    What is said of smallest differences and of seeds that are needed is for a test at 1 − (1 − level)/(comparisons ·
    max(tried)). Without a margin nothing is the same, and `p_same` is 1. `resolution` is what `compare` takes for a
    spread of 0, and 0 where there is one. `jump` is how far apart the two heaps of seeds lie that made `verdicts` ask
    more of the pairs, and 0 where nothing did.
    """

    verdict: Word
    difference: float
    low: float
    high: float
    margin: float | None
    level: float
    spread: float
    seeds: int
    p: float
    p_same: float
    comparisons: int = 1
    tried: tuple[int, int] = (1, 1)
    resolution: float = 0.0
    jump: float = 0.0

    @property
    def effect(self) -> float | None:
        """The standardised effect: Hedges' g of paired differences, J · difference / spread.

        J = Γ(ν/2) / (√(ν/2) Γ((ν−1)/2)) with ν = seeds − 1, which is near 1 − 3/(4ν − 1), takes away what few seeds
        add. None for two seeds, whose J is 0, and where there is no spread. Hedges 1981, J. Educ. Stat. 6:107.
        """
        half = (self.seeds - 1) / 2
        if half <= 0.5 or self.spread == 0:
            return None
        small = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
        return small * self.difference / self.spread

    @property
    def smallest(self) -> float:
        """The least true difference that the difference test over so many seeds finds in 80% of studies.

        The spread seen, or the grain where there is none, is taken for the true one, of which few seeds know little.
        """
        return smallest(self._width, self.seeds, self._alone)

    @property
    def seeds_for_difference(self) -> int | None:
        """The seeds with which the difference test would find the difference seen in 80% of studies.

        Difference and spread are taken as in `smallest`. None where it would be more than a million. Of a jump, so many
        at least as must agree to rule out its chance.
        """
        found = needed(self.difference, self._width, self._alone)
        return found and max(found, self.agreeing if self.jump else 2)

    @property
    def seeds_for_margin(self) -> int | None:
        """The seeds with which the difference test would find a true difference of `margin` in 80% of studies."""
        return None if self.margin is None else needed(self.margin, self._width, self._alone)

    @property
    def seeds_for_same(self) -> int | None:
        """The seeds with which two that are alike would be called the same in 80% of studies, or more.

        Each of the two one-sided tests is to miss a tenth at most. None without a margin.
        """
        level = 2 * self._alone - 1
        return None if self.margin is None or level <= 0 else needed(self.margin, self._width, level, (1 + POWER) / 2)

    @property
    def agreeing(self) -> int:
        """The least number of pairs that jump all one way by `chance` rarely enough."""
        return math.ceil((1 - math.log2(1 - self._alone)) / 2)

    @property
    def _width(self) -> float:
        """The spread that the tests reckon with."""
        return self.spread or self.resolution

    @property
    def _alone(self) -> float:
        return share(self.level, self.comparisons * max(self.tried))


def compare(
    a: BySeed,
    b: BySeed,
    margin: float | None,
    level: float = 0.95,
    higher: bool = True,
    tried: tuple[int, int] = (1, 1),
    step: float | None = None,
) -> Verdict:
    """Whether a is better than b, over paired seeds, where differences up to `margin` do not matter (None: all do).

    With α = 1 − level, d the mean of a − b:

    - same: the 1 − 2α interval of d lies inside (−margin, margin); that is two one-sided t tests, each at
      level α, against |d| ≥ margin (TOST). It is asked first: a difference may be significant and yet too
      small to matter, and the margin is the asker's own word for what does not matter.
    - better, worse: not the same, and the `level` interval of d leaves out 0. `higher` says whether more of
      the metric is better. The sign is then known; that the difference exceeds the margin is not.
    - unclear: neither.

    For equal a and b whose seeds scatter about like a normal distribution, at most α of studies end in better or worse.
    That is for one comparison: `verdicts` corrects for several. `tried`: of how many learning rates that of a and that
    of b was the best by these seeds (`choose`); what speaks for a then counts at 1/tried[0] of its error, what speaks
    for b at 1/tried[1]. Values given as {seed: value} are paired by seed.

    What is counted in examples ties: near 100% a few seeds often differ by the same in each, and show no spread of
    their differences. That is not certainty. Their standard deviation is then taken to be the least distance of any two
    of the values, or `step`, what one example more changes of the metric, where that is less.

    Raises ValueError as `difference` does, for a margin or a step that is not a finite number above 0, and
    for fewer tried than one. Schuirmann 1987, J. Pharmacokin. Biopharm. 15:657.

    >>> compare([0.9, 0.91, 0.92], [0.5, 0.52, 0.51], margin=0.01).verdict
    'better'
    """
    check_margin(margin)
    check_level(level)
    case = Case(paired(a, b), tried, higher, resolution(a, b, step))
    return conclude(case, margin, level, *p_values(case, margin))


@dataclass(frozen=True)
class Case:
    """Paired differences a − b, the rates tried for a and for b, whether more is better, the values' grain, and heaps.

    `bimodal_gaps` are the distances between the heaps in which seeds of a study's other variants lie, 0 of one heap.
    """

    pairs: np.ndarray
    tried: tuple[int, int] = (1, 1)
    higher: bool = True
    resolution: float = 0.0
    bimodal_gaps: tuple[float, ...] = ()

    def __post_init__(self):
        check_tried(*self.tried)

    @cached_property
    def centre(self) -> float:
        """The mean difference."""
        return mean(self.pairs)

    @cached_property
    def spread(self) -> float:
        """Their standard deviation; 0 where rounding alone makes one."""
        return observed_scale(self.pairs, self.resolution)

    @property
    def error(self) -> float:
        """The standard error of their mean, by the grain where they show no spread."""
        return (self.spread or self.resolution) / math.sqrt(self.pairs.size)

    @property
    def jump(self) -> float:
        """The widest distance between heaps that the mean difference is about as large as; 0 where there is none."""
        return max((apart for apart in self.bimodal_gaps if 0 < apart / 2 <= abs(self.centre) <= 2 * apart), default=0.0)

    @property
    def luck(self) -> tuple[int, int]:
        """Of how many the luckiest may have raised the differences, and of how many lowered them."""
        first, second = self.tried
        return (first, second) if self.higher else (second, first)


def p_values(case: Case, margin: float | None) -> tuple[float, ...]:
    """Of the test that the mean of the pairs is 0, and, of a margin, of the two that it is that or more either way."""
    from scipy.special import stdtr

    seeds, centre, error, (raised, lowered) = case.pairs.size, case.centre, case.error, case.luck
    if error == 0:
        return (float(centre == 0),) if margin is None else (float(centre == 0), float(abs(centre) >= margin))
    tail = lambda distance: float(stdtr(seeds - 1, distance / error))
    p = max(2 * min(raised * tail(-centre), lowered * tail(centre)), chance(seeds) if case.jump else 0.0)
    if margin is None:
        return (min(1.0, p),)
    p_same = max(raised * tail(-margin - centre), lowered * tail(centre - margin))
    return min(1.0, p), min(1.0, p_same)


def conclude(
    case: Case, margin: float | None, level: float, p: float, p_same: float = 1.0, *, comparisons: int = 1
) -> Verdict:
    """The verdict that these p-values allow, one of so many."""
    seeds, centre = case.pairs.size, case.centre
    low, high = around(seeds, centre, case.error * math.sqrt(seeds), share(level, comparisons), *case.luck)
    word: Word = "unclear"
    if p_same <= 1 - level:
        word = "same"
    elif p <= 1 - level:
        word = "better" if (centre > 0) == case.higher else "worse"
    found, fine = (case.spread, seeds), 0.0 if case.spread else case.resolution
    return Verdict(word, centre, low, high, margin, level, *found, p, p_same, comparisons, case.tried, fine, case.jump)


def chance(pairs: int) -> float:
    """How probable it is, at most, that of two alike one alone learned the task with every seed: 2 · 4^−n.

    Where a seed learns it with probability q in both, the one does and the other does not with q (1 − q), a quarter at
    most, and so where each seed has a q of its own; either of them may be the one.

    >>> chance(3)
    0.03125
    """
    return 2.0 ** (1 - 2 * pairs)


def share(level: float, comparisons: int) -> float:
    """The level of each of several, so that together they keep `level`: 1 − (1 − level)/comparisons (Bonferroni)."""
    return level if comparisons == 1 else 1 - (1 - level) / comparisons


def check_margin(margin: float | None) -> None:
    """Raise ValueError for a margin that is not a finite number above 0."""
    number = isinstance(margin, Real) and not isinstance(margin, bool)
    if margin is not None and not (number and 0 < float(margin) < math.inf):
        raise ValueError(f"{margin=} must be a finite number above 0: the difference that does not matter")
