"""Verdicts on two variants with paired seeds: better, worse, the same within a margin, or unclear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Literal

import numpy as np

from attnlab.lab.statistics.intervals import t_interval
from attnlab.lab.statistics.power import POWER, minimum_detectable_difference, required_seeds
from attnlab.lab.statistics.samples import BySeed, check_level, check_tried, mean, observed_scale, paired, resolution

Word = Literal["better", "worse", "same", "unclear"]


@dataclass(frozen=True)
class Verdict:
    """The result of comparing variant a with variant b (`compare`, `verdicts`).

    If the verdict is one of several `comparisons` of a study, `p` and `p_same` are adjusted for all of them, and `low`
    and `high` are at level 1 − (1 − level)/comparisons. The properties on smallest differences and required seeds refer
    to a test at level 1 − (1 − level)/(comparisons · max(tried)).
    """

    verdict: Word
    """The verdict on a compared with b: better, worse, same or unclear."""
    difference: float
    """mean(a − b) in the units of the values, whichever direction is good."""
    low: float
    """The lower end of the interval of the true difference."""
    high: float
    """The upper end of the interval of the true difference."""
    margin: float | None
    """The difference that still counts as the same. If it is None, no verdict is "same"."""
    level: float
    """The confidence level of all comparisons of the study together."""
    spread: float
    """The standard deviation of a − b over the seeds, or 0 if only rounding error makes them differ."""
    seeds: int
    """The number of paired seeds."""
    p: float
    """The p-value of the test that the true difference is 0."""
    p_same: float
    """The p-value of the test that the true difference is `margin` or more in either direction. 1 without a margin."""
    comparisons: int = 1
    """The number of comparisons that the study plans."""
    tried: tuple[int, int] = (1, 1)
    """The numbers of learning rates from which those of a and b were chosen. Each widens the interval on its side."""
    resolution: float = 0.0
    """The standard deviation that was assumed because `spread` is 0. It is 0 if `spread` is not."""
    bimodal_gap: float = 0.0
    """The distance between two clusters of seeds that made `verdicts` raise the p-value, or 0 if none did."""

    @property
    def effect(self) -> float | None:
        """The standardised effect size, Hedges' g of paired differences.

            g = J · difference / spread, with J = Γ(ν/2) / (√(ν/2) Γ((ν−1)/2)) and ν = seeds − 1

        J is close to 1 − 3/(4ν − 1) and corrects the bias of few seeds. The value is None for two seeds, for which J is
        0, and if the spread is 0. Hedges 1981, J. Educ. Stat. 6:107.
        """
        half = (self.seeds - 1) / 2
        if half <= 0.5 or self.spread == 0:
            return None
        small = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
        return small * self.difference / self.spread

    @property
    def minimum_detectable_difference(self) -> float:
        """The smallest true difference that the test of difference over this many seeds detects in 80% of studies.

        The observed spread, or `resolution` if the spread is 0, is taken for the true one. A few seeds estimate it only
        roughly.
        """
        return minimum_detectable_difference(self._width, self.seeds, self._alone)

    @property
    def seeds_for_difference(self) -> int | None:
        """The number of seeds at which the test of difference detects the observed difference in 80% of studies.

        The observed difference and spread are taken for the true ones. None means more than a million seeds. With a
        `bimodal_gap` it is at least `min_pairs_if_bimodal`.
        """
        found = required_seeds(self.difference, self._width, self._alone)
        return found and max(found, self.min_pairs_if_bimodal if self.bimodal_gap else 2)

    @property
    def seeds_for_margin(self) -> int | None:
        """The number of seeds at which the test of difference detects a difference of `margin` in 80% of studies."""
        return None if self.margin is None else required_seeds(self.margin, self._width, self._alone)

    @property
    def seeds_for_same(self) -> int | None:
        """The number of seeds at which two equal variants are called the same in at least 80% of studies.

        Each of the two one-sided tests may miss at most a tenth. None without a margin, or if more than a million
        seeds are required.
        """
        level = 2 * self._alone - 1
        return (
            None
            if self.margin is None or level <= 0
            else required_seeds(self.margin, self._width, level, (1 + POWER) / 2)
        )

    @property
    def min_pairs_if_bimodal(self) -> int:
        """The least number of pairs at which `bimodal_p_bound` is small enough to rule out chance."""
        return math.ceil((1 - math.log2(1 - self._alone)) / 2)

    @property
    def _width(self) -> float:
        """The standard deviation that the tests use."""
        return self.spread or self.resolution

    @property
    def _alone(self) -> float:
        """The level of a single test, corrected for comparisons and tried learning rates."""
        return bonferroni_level(self.level, self.comparisons * max(self.tried))


def compare(
    a: BySeed,
    b: BySeed,
    margin: float | None,
    level: float = 0.95,
    higher: bool = True,
    tried: tuple[int, int] = (1, 1),
    metric_step: float | None = None,
) -> Verdict:
    """Judge whether a is better than b, worse, the same or unclear, over paired seeds.

    With α = 1 − level and d the mean of a − b:

    - same: the 1 − 2α interval of d lies inside (−margin, margin). This is two one-sided t tests (TOST), each at level
      α, against |d| ≥ margin. It is tested first, because a significant difference may be too small to matter.
    - better, worse: not the same, and the `level` interval of d excludes 0. The sign is then known, but not that the
      difference exceeds the margin.
    - unclear: none of these.

    If a and b are equal and seeds vary about normally, at most α of studies end in better or worse. This holds for one
    comparison. `verdicts` corrects for several.

    Metrics that count examples have ties. For example, near 100% the differences of a few seeds are often all equal and
    show no spread, which does not mean certainty. Their standard deviation is then taken as the `samples.resolution`.

    Args:
        a: values in the order of the seeds, or {seed: value}.
        b: values of the same seeds, in the same form.
        margin: the largest difference that does not matter, in the units of the values. None means that every
            difference matters.
        level: the confidence level, in (0, 1).
        higher: whether a higher value is better.
        tried: how many learning rates those of a and b were chosen from, by these seeds (`choose`). Evidence for a is
            then tested at 1/tried[0] of its error, evidence for b at 1/tried[1].
        metric_step: the change of the metric by one test example, if known. It bounds the resolution from above.

    Returns:
        The verdict on a compared with b.

    Raises:
        ValueError: as `difference` does. Also for a margin or a `metric_step` that is not a finite number above 0, and
            for `tried` below 1.

    Schuirmann 1987, J. Pharmacokin. Biopharm. 15:657.

    >>> compare([0.9, 0.91, 0.92], [0.5, 0.52, 0.51], margin=0.01).verdict
    'better'
    """
    check_margin(margin)
    check_level(level)
    case = Case(paired(a, b), tried, higher, resolution(a, b, metric_step))
    return conclude(case, margin, level, *p_values(case, margin))


@dataclass(frozen=True)
class Case:
    """The data of one comparison of a with b.

    Raises:
        ValueError: if `tried` is not a pair of integers of at least 1.
    """

    pairs: np.ndarray
    """The paired differences a − b, [seeds]."""
    tried: tuple[int, int] = (1, 1)
    """The numbers of learning rates from which those of a and b were chosen."""
    higher: bool = True
    """Whether a higher value is better."""
    resolution: float = 0.0
    """The smallest distance between values (`samples.resolution`). It replaces a standard deviation of 0."""
    bimodal_gaps: tuple[float, ...] = ()
    """`samples.bimodal_gap` of the study's other variants: the distance of two clusters of seeds, or 0 for one."""

    def __post_init__(self):
        if not isinstance(self.tried, Sequence) or len(self.tried) != 2:
            raise ValueError(f"tried={self.tried!r} must be a pair, the number of learning rates of a and that of b")
        check_tried(*self.tried)

    @cached_property
    def centre(self) -> float:
        """The mean difference."""
        return mean(self.pairs)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the differences, or 0 if it is only rounding error."""
        return observed_scale(self.pairs, self.resolution)

    @property
    def error(self) -> float:
        """The standard error of the mean difference, from `resolution` if the spread is 0."""
        return (self.spread or self.resolution) / math.sqrt(self.pairs.size)

    @property
    def bimodal_gap(self) -> float:
        """The widest of the `bimodal_gaps` g with g/2 ≤ |mean difference| ≤ 2 g, or 0 if there is none."""
        return max((gap for gap in self.bimodal_gaps if 0 < gap / 2 <= abs(self.centre) <= 2 * gap), default=0.0)

    @property
    def candidates(self) -> tuple[int, int]:
        """How many candidates chance may have chosen from to raise the differences, and to lower them."""
        first, second = self.tried
        return (first, second) if self.higher else (second, first)


def p_values(case: Case, margin: float | None) -> tuple[float, ...]:
    """Return the p-values of a comparison.

    Args:
        case: the comparison.
        margin: the difference that does not matter, or None.

    Returns:
        (p,) without a margin, else (p, p_same). `p` tests that the mean difference is 0. `p_same` is the larger of the
        two one-sided tests that the difference is `margin` or more in either direction.
    """
    from scipy.special import stdtr

    seeds, centre, error, (raised, lowered) = case.pairs.size, case.centre, case.error, case.candidates
    if error == 0:
        return (float(centre == 0),) if margin is None else (float(centre == 0), float(abs(centre) >= margin))
    tail = lambda distance: float(stdtr(seeds - 1, distance / error))
    p = max(
        2 * min(raised * tail(-centre), lowered * tail(centre)), bimodal_p_bound(seeds) if case.bimodal_gap else 0.0
    )
    if margin is None:
        return (min(1.0, p),)
    p_same = max(raised * tail(-margin - centre), lowered * tail(centre - margin))
    return min(1.0, p), min(1.0, p_same)


def conclude(
    case: Case, margin: float | None, level: float, p: float, p_same: float = 1.0, *, comparisons: int = 1
) -> Verdict:
    """Return the verdict that p-values allow.

    Args:
        case: the comparison.
        margin: the difference that does not matter, or None.
        level: the confidence level of all comparisons together.
        p: the p-value of the test of difference, adjusted for all comparisons.
        p_same: the p-value of the test of sameness, adjusted likewise.
        comparisons: the number of comparisons, for the interval.
    """
    seeds, centre = case.pairs.size, case.centre
    low, high = t_interval(
        seeds, centre, case.error * math.sqrt(seeds), bonferroni_level(level, comparisons), *case.candidates
    )
    word: Word = "unclear"
    if p_same <= 1 - level:
        word = "same"
    elif p <= 1 - level:
        word = "better" if (centre > 0) == case.higher else "worse"
    found, fine = (case.spread, seeds), 0.0 if case.spread else case.resolution
    return Verdict(
        word, centre, low, high, margin, level, *found, p, p_same, comparisons, case.tried, fine, case.bimodal_gap
    )


def bimodal_p_bound(pairs: int) -> float:
    """Return an upper bound of the probability that, of two equal variants, one always learns and the other never.

        2 · 4^−n for n pairs

    If a seed learns the task with probability q in both variants, the first learns and the second does not with
    probability q (1 − q) ≤ 1/4. The bound also holds if q differs between seeds. The factor 2 is for the two
    directions.

    >>> bimodal_p_bound(3)
    0.03125
    """
    return 2.0 ** (1 - 2 * pairs)


def bonferroni_level(level: float, comparisons: int) -> float:
    """Return the level of each of several comparisons: 1 − (1 − level)/comparisons (Bonferroni)."""
    return level if comparisons == 1 else 1 - (1 - level) / comparisons


def check_margin(margin: float | None) -> None:
    """Raise ValueError if a margin is neither None nor a finite number above 0."""
    number = isinstance(margin, Real) and not isinstance(margin, bool)
    if margin is not None and not (number and 0 < float(margin) < math.inf):
        raise ValueError(
            f"{margin=} must be a finite number above 0, or None; it is the largest difference that does not matter"
        )
