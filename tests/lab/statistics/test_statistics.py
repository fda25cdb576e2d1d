"""Compares intervals with values by hand and by scipy, and verdicts with their definition and simulations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.lab.statistics import (
    compare,
    difference,
    interval,
    minimum_detectable_difference,
    required_seeds,
    summary,
    tied,
    verdicts,
)

values = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=9)
pairs = st.lists(st.tuples(*[st.floats(-9, 9).map(lambda x: round(x, 2))] * 2), min_size=2, max_size=9)
close = {"rel": 1e-9, "abs": 1e-9}


def test_interval_by_hand():
    # Mean 2, s = 1 and s/√3 = .57735. In a table, t with 2 degrees of freedom is 4.30265 at 97.5% and 2.919986 at 95%.
    assert interval([1, 2, 3]) == pytest.approx((2 - 4.30265 * 0.57735, 2 + 4.30265 * 0.57735), abs=1e-5)
    narrow = interval([1, 2, 3], level=0.9)
    assert narrow == pytest.approx((2 - 2.919986 * 0.57735, 2 + 2.919986 * 0.57735), abs=1e-5)
    # For two values, s/√2 is half their distance. t with 1 degree of freedom is 12.7062.
    assert interval([0.0, 2.0]) == pytest.approx((1 - 12.7062, 1 + 12.7062), abs=1e-4)


@given(values)
@settings(max_examples=30)
def test_interval_equals_scipy(numbers):
    from scipy import stats

    low, high = interval(numbers)
    scale = stats.sem(numbers)
    if scale > 0:
        theirs = stats.t.interval(0.95, len(numbers) - 1, np.mean(numbers), scale)
        assert (low, high) == pytest.approx(theirs, **close)


@given(values, st.floats(-5, 5), st.floats(0.1, 5))
@settings(max_examples=30)
def test_interval_is_equivariant_to_shift_and_scale(numbers, shift, scale):
    low, high = interval(numbers)
    moved = interval([scale * x + shift for x in numbers])
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), rel=1e-6, abs=1e-6)
    assert interval(numbers[::-1]) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("number", [0.1, 0.9935, 1 / 3, 0.0])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_equal_values_have_an_interval_of_no_width(number, count):
    assert interval([number] * count) == (number, number)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_large_values_do_not_overflow(scale):
    assert interval([scale * x for x in (1, 2, 3)]) == pytest.approx(
        tuple(scale * x for x in interval([1, 2, 3])), rel=1e-9, abs=0
    )


@pytest.mark.parametrize("bad", [[-1e308, 1e308], [], [1.0], [1.0, math.nan], [math.inf, 1.0], [1.0, None]])
def test_no_interval_from_one_seed_or_nonfinite_values(bad):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        interval(bad)


@pytest.mark.parametrize("bad", [{0: 1.0, 1: 2.0}, {1.0, 2.0}, ["a", "b"], [[1, 2], [3, 4]], 3.0, None, [1j, 2.0]])
def test_values_are_a_list_of_numbers(bad):
    for call in (lambda: interval(bad), lambda: summary(bad)):
        with pytest.raises(ValueError, match=r"^values=.* must be a list with one number for each seed$"):
            call()


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan])
def test_levels_lie_between_0_and_1(level):
    with pytest.raises(ValueError, match="level"):
        interval([1.0, 2.0], level)


def test_summary_of_values():
    assert summary([0.5]) == {"mean": 0.5, "low": None, "high": None, "values": [0.5]}
    two = summary([0.0, 2.0])
    assert (two["mean"], two["values"]) == (1.0, [0.0, 2.0])
    assert (two["low"], two["high"]) == interval([0.0, 2.0])
    for bad in ([], [math.nan], [1.0, math.inf]):
        with pytest.raises(ValueError, match="values"):
            summary(bad)


def test_difference_pairs_by_seed():
    # The effect of a seed (0, 10, 20) is common to both sides and cancels. The differences are 1, 2 and 3.
    assert difference([1, 12, 23], [0, 10, 20]) == (2.0, *interval([1, 2, 3]))


def test_values_by_seed_are_paired_by_seed():
    a, b = {0: 1.0, 1: 12.0, 2: 23.0}, {2: 20.0, 0: 0.0, 1: 10.0}
    assert difference(a, b) == difference([1, 12, 23], [0, 10, 20])
    assert compare(a, b, 0.1) == compare([1, 12, 23], [0, 10, 20], 0.1)


@pytest.mark.parametrize(
    ("differences", "margin", "verdict"),
    [
        ([0.10, 0.11, 0.12], 0.05, "better"),
        ([-0.10, -0.11, -0.12], 0.05, "worse"),
        ([0.010, 0.011, 0.012], 0.05, "same"),  # significant, but within the margin
        ([0.0, 0.0, 0.0], 0.01, "same"),
        ([0.2, 0.2, 0.2], 0.01, "better"),
        ([-0.1, 0.1, 0.0], 0.05, "unclear"),
        ([0.04, 0.05, 0.06], 0.05, "better"),  # exactly at the margin: not within it, and not 0
    ],
)
def test_verdicts_of_known_values(differences, margin, verdict):
    base = np.array([0.3, 0.5, 0.4])
    found = compare(base + differences, base, margin, metric_step=1e-3)
    assert found.verdict == verdict
    assert found.difference == pytest.approx(np.mean(differences))
    turned = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert compare(base + differences, base, margin, higher=False, metric_step=1e-3).verdict == turned


def test_equivalence_uses_the_narrower_interval():
    # t·s/√3 of (−1, 0, 1) is 1.686 at 90% and 2.484 at 95%. A margin in between shows that TOST is used.
    assert compare([-1, 0, 1], [0, 0, 0], margin=1.7).verdict == "same"
    assert compare([-1, 0, 1], [0, 0, 0], margin=1.6).verdict == "unclear"


@given(pairs, st.floats(0.01, 3))
@settings(max_examples=30)
def test_p_values_equal_scipy(both, margin):
    from scipy import stats

    a, b = map(np.array, zip(*both, strict=True))
    if np.ptp(a - b) > 1e-9:
        found = compare(a, b, margin)
        below, above = (stats.ttest_1samp(a - b, side * margin).statistic for side in (-1, 1))
        assert found.p == pytest.approx(stats.ttest_rel(a, b).pvalue, **close)
        assert found.p_same == pytest.approx(
            max(stats.t.sf(below, len(a) - 1), stats.t.cdf(above, len(a) - 1)), **close
        )
        assert (found.p <= 0.05) == (not found.low < 0 < found.high)


@pytest.mark.parametrize("shift", [0.0, 0.002, 0.05])
def test_equal_values_have_the_uncertainty_of_their_resolution(shift):
    from scipy import stats

    base = np.array([0.998, 0.999, 0.998, 1.0])
    found = compare(base - shift, base, 0.01)
    assert found.spread == 0
    # The standard deviation of the differences is taken as .001, the smallest distance of two values.
    t = stats.t(df=3, scale=0.001 / 2)
    assert (found.low, found.high) == pytest.approx((-shift + t.ppf(0.025), -shift + t.ppf(0.975)))
    assert found.p == pytest.approx(2 * t.cdf(-shift))
    assert found.p_same == pytest.approx(max(t.cdf(-0.01 - shift), t.cdf(shift - 0.01)))
    # The detectable difference and the numbers of seeds follow from the same test.
    assert found.minimum_detectable_difference == pytest.approx(minimum_detectable_difference(0.001, 4))
    assert found.seeds_for_difference == required_seeds(shift, 0.001)
    assert found.seeds_for_margin == required_seeds(0.01, 0.001)
    assert found.effect is None


def test_equal_values_do_not_make_the_detectable_difference_zero():
    found = compare([0.501] * 3, [0.5] * 3, 0.0005, metric_step=0.001)
    assert found.verdict == "unclear"
    assert found.minimum_detectable_difference > 0.001
    assert found.seeds_for_difference > 3


def test_values_that_differ_by_rounding_are_tied():
    assert all(map(tied, ([1.0, 1.0], [0.1 + 0.2, 0.3], [0.0, 0.0, 0.0], [-3.0, -3.0])))
    assert not any(map(tied, ([1.0], [], [0.998, 0.999], [1e-30, 2e-30], [-1.0, 1.0])))


def test_rounding_errors_are_no_difference():
    found = compare([0.3] * 3, [0.1 + 0.2] * 3, None)
    assert (found.verdict, found.difference, found.p) == ("unclear", 0.0, 1.0)


def test_the_known_resolution_is_used_if_values_are_further_apart():
    ones, none = [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]
    assert compare(ones, none, 0.01).verdict == "unclear"
    assert compare(ones, none, 0.01, metric_step=1 / 256).verdict == "better"
    assert compare(ones, ones, 0.01).verdict == "same"
    assert compare(ones, ones, 0.01, metric_step=0.1).verdict == "unclear"


def test_an_observed_spread_is_used():
    # This holds for any differences between seeds, and for a metric step larger than the spread.
    base, apart = np.array([0.1, 0.5, 0.9]), np.array([0.0100, 0.0101, 0.0099])
    assert compare(base + apart, base, 0.005, metric_step=0.1).spread == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("variants", "seeds", "examples", "share"), [(1, 2, 1000, 0.999), (6, 3, 256, 0.995), (1, 5, 256, 0.99)]
)
def test_ties_of_counts_are_not_certainty(variants, seeds, examples, share):
    # A/A studies of equal variants near the best value. Without the resolution, a tenth of the first two make a claim.
    random, wrong, studies = np.random.default_rng(0), 0, 1000
    for study in random.binomial(examples, share, size=(studies, variants + 1, seeds)) / examples:
        base, *others = study
        names = {str(n): (other, base) for n, other in enumerate(others)}
        found = verdicts(names, None, metric_steps=dict.fromkeys(names, 1 / examples))
        wrong += any(one.verdict in ("better", "worse") for one in found.values())
    assert wrong <= 0.05 * studies + 3 * math.sqrt(0.05 * 0.95 * studies)


@given(pairs, st.floats(0.01, 3))
@settings(max_examples=60)
def test_verdict_is_antisymmetric(both, margin):
    a, b = zip(*both, strict=True)
    there, back = compare(a, b, margin), compare(b, a, margin)
    turned = {"better": "worse", "worse": "better"}
    assert turned.get(there.verdict, there.verdict) == back.verdict
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), **close)
    assert there.low <= there.difference <= there.high


@pytest.mark.parametrize(
    "call",
    [
        lambda: compare([1, 2], [1, 2, 3], 0.1),
        lambda: compare([1], [2], 0.1),
        lambda: compare({0: 1, 1: 2}, {0: 1, 2: 2}, 0.1),
        lambda: compare({0: 1, 1: 2}, {0: 1, 1: 2, 2: 3}, 0.1),
        lambda: compare({0: 1, 1: 2}, [1, 2], 0.1),
        lambda: compare([1e308, 0], [-1e308, 0], 0.1),
        lambda: compare([1, 2], [1, math.nan], 0.1),
        lambda: compare([1, 2], [1, 2], 0),
        lambda: compare([1, 2], [1, 2], -0.1),
        lambda: compare([1, 2], [1, 2], math.nan),
        lambda: compare([1, 2], [1, 2], math.inf),
        lambda: compare([1, 2], [1, 2], "a"),
        lambda: compare([1, 2], [1, 2], True),
        lambda: compare([1, 2], [1, 2], 0.1, metric_step=0),
        lambda: compare([1, 2], [1, 2], 0.1, metric_step=math.inf),
    ],
)
def test_compare_refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        call()


def test_a_difference_at_the_margin_is_rarely_called_equivalent():
    # If the true difference equals the margin, TOST calls 5% (± 3 standard errors of 600) "same".
    draws = np.random.default_rng(1).normal(0, 0.03, (600, 5)) + 0.05
    same = np.mean([compare(row, np.zeros(5), margin=0.05).verdict == "same" for row in draws])
    assert 0.015 <= same <= 0.077
