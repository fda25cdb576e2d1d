"""Tests of the chosen learning rate, and of its effect on an interval."""

import math

import numpy as np
import pytest

from attnlab.lab.statistics import Choice, choose, compare, interval, leaders, lowest, summary


@pytest.mark.parametrize(
    ("scores", "higher", "choice"),
    [
        ([[0.9, 0.5]], True, Choice(0, (0, 1))),  # one seed excludes nothing
        ([[0.9, 0.5]], False, Choice(1, (0, 1))),
        ([[0.5, 0.5], [0.5, 0.5]], True, Choice(0, (0, 1))),
        ([[0.90, 0.50], [0.91, 0.52], [0.92, 0.51]], True, Choice(0, (0,))),
        ([[0.90, 0.50], [0.91, 0.52], [0.92, 0.51]], False, Choice(1, (1,))),
        ([[0.90, 0.86], [0.91, 0.95], [0.92, 0.90]], True, Choice(0, (0, 1))),
        ([[0.9, None], [0.8, 0.95]], True, Choice(0, (0,))),  # the better one diverged once
        ([[0.9, math.nan], [None, 0.95]], True, Choice(1, (0, 1))),
        ([[None, math.inf], [None, None]], True, Choice(0, (0, 1))),
        # Equal differences of one example each exclude nothing, as with a single seed.
        ([[0.99, 0.98], [0.98, 0.97], [0.99, 0.98]], True, Choice(0, (0, 1))),
        ([[3.0, -math.inf], [3.0, 1.0]], False, Choice(0, (0,))),
    ],
)
def test_choose_the_best_rate(scores, higher, choice):
    assert choose(scores, higher) == choice


@pytest.mark.parametrize(
    ("scores", "losses", "best"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], [[5.0, 1.0], [5.0, 2.0]], 1),
        ([[0.0, 0.0], [0.0, 0.0]], [[1.0, 5.0], [2.0, 5.0]], 0),
        ([[0.2, 0.4], [0.4, 0.2]], [[3.0, 1.0], [3.0, 1.0]], 1),  # equal means of unequal seeds
        ([[0.5, 0.4]], [[9.0, 1.0]], 0),  # no tie: the loss is not used
        ([[0.1, 0.5, 0.5]], [[0.1, 3.0, 2.0]], 2),  # the loss of the worse rate is the lowest, but is not used
        ([[None, 0.5, 0.5]], [[None, 3.0, 2.0]], 2),
        ([[0.5, 0.5]], [[math.nan, 9.0]], 1),  # a loss that is not finite is never the lowest
        ([[math.inf, math.inf]], [[3.0, 2.0]], 1),
        ([[0.5, 0.5]], [[2.0, 2.0]], 0),
    ],
)
@pytest.mark.parametrize("higher", [True, False])
def test_the_loss_decides_between_rates_with_equal_scores(scores, losses, best, higher):
    signed = [[x if x is None or higher else -x for x in row] for row in scores]
    assert choose(signed, higher, losses).best == best


def test_which_rates_share_the_best_score_and_the_lowest_loss():
    assert leaders([[0.3, 0.1, 0.3], [0.1, 0.1, 0.1]]) == (0, 2)
    assert leaders([[0.3, 0.1, 0.3], [0.1, 0.1, 0.1]], higher=False) == (1,)
    assert lowest([[2.0, 0.0, 1.0], [2.0, 0.0, 1.0]], (0, 2)) == (2,)


def test_a_rate_is_excluded_seed_by_seed():
    # Seeds differ by far more than rates do, and the difference between rates is similar in each seed.
    scores = [[seed, seed - 0.1 - 0.001 * n] for n, seed in enumerate([0.0, 5.0, 9.0, 20.0])]
    assert choose(scores) == Choice(0, (0,))


@pytest.mark.parametrize("scores", [[], [[]], [[1.0], [1.0, 2.0]]])
def test_choose_refuses_invalid_arguments(scores):
    with pytest.raises(ValueError, match="seeds, rates"):
        choose(scores)


def test_the_favourable_end_of_the_interval_is_widened():
    # For four rates: the quantile of t with 2 degrees of freedom at 1 − .025/4 is 8.8602 in a table.
    low, high = interval([1, 2, 3], tried=4)
    assert (low, high) == pytest.approx((2 - 8.8602 / math.sqrt(3), 2 + 4.30265 / math.sqrt(3)), abs=1e-4)
    worse = interval([1, 2, 3], tried=4, higher=False)
    assert worse == pytest.approx((4 - high, 4 - low))
    assert interval([1, 2, 3], tried=1, higher=False) == interval([1, 2, 3])
    assert (summary([1, 2, 3], 4)["low"], summary([1, 2, 3], 4)["high"]) == (low, high)


@pytest.mark.parametrize("higher", [True, False])
def test_evidence_for_the_side_with_more_tried_rates_counts_less(higher):
    a = np.array([0.02, 0.03, 0.025, 0.02, 0.03]) * (1 if higher else -1)
    b = np.array([0.0, 0.005, -0.005, 0.01, -0.01])
    plain = compare(a, b, 0.001, higher=higher)
    for_a = compare(a, b, 0.001, higher=higher, tried=(20, 1))
    for_b = compare(a, b, 0.001, higher=higher, tried=(1, 20))
    assert plain.verdict == "better"
    assert (for_a.p, for_b.p) == pytest.approx((20 * plain.p, plain.p))
    assert for_a.verdict == ("better" if 20 * plain.p <= 0.05 else "unclear")
    assert (for_a.low <= 0 <= for_a.high) == (for_a.verdict == "unclear")
    near, far = ("low", "high") if higher else ("high", "low")
    assert getattr(for_a, far) == getattr(plain, far)
    assert abs(getattr(for_a, near) - plain.difference) > abs(getattr(plain, near) - plain.difference)
    assert for_a.minimum_detectable_difference > plain.minimum_detectable_difference


def test_equivalence_accounts_for_tried_rates():
    differences = np.array([-0.01, 0.01, 0.0, 0.005, -0.005])
    plain = compare(differences, np.zeros(5), 0.012)
    assert plain.verdict == "same"
    assert compare(differences, np.zeros(5), 0.012, tried=(9, 9)).p_same == pytest.approx(9 * plain.p_same)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: interval([1, 2], tried=0), "tried=0 must be a whole number of at least 1"),
        (lambda: interval([1, 2], tried=1.5), "tried=1.5 must be a whole number of at least 1"),
        (lambda: compare([1, 2], [1, 2], 1, tried=(1, 0)), r"tried=\(1, 0\) must be a whole number of at least 1"),
        (lambda: compare([1, 2], [1, 2], 1, tried=3), "tried=3 must be a pair"),
        (lambda: compare([1, 2], [1, 2], 1, tried=(1, 2, 3)), r"tried=\(1, 2, 3\) must be a pair"),
    ],
)
def test_the_number_of_tried_rates_is_at_least_one(call, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        call()


@pytest.mark.parametrize("losses", [[[2.0, 1.0]], [[2.0], [1.0]], [[2.0, 1.0], [1.0]]])
def test_losses_have_the_shape_of_the_scores(losses):
    with pytest.raises(ValueError, match=r"^losses must be a table .* of the same shape as scores$"):
        choose([[0.5, 0.5], [0.5, 0.5]], losses=losses)
