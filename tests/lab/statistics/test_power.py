"""Compares power with published numbers, with simulated frequencies and with its own inverses."""

import math

import numpy as np
import pytest

from attnlab.lab.statistics import compare, minimum_detectable_difference, power, required_seeds

LEVELS = (0.8, 0.95, 0.9999)


def test_power_equals_the_published_values():
    # Values of Cohen's tables by G*Power 3.1, for the difference of two dependent means, two-sided, α = .05.
    assert power(0.5, 1.0, 34) == pytest.approx(0.8078, abs=1e-4)
    assert power(0.8, 1.0, 15) == pytest.approx(0.8213, abs=1e-4)
    assert [required_seeds(effect, 1.0) for effect in (0.2, 0.5, 0.8)] == [199, 34, 15]


@pytest.mark.parametrize("seeds", [2, 3, 10])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("difference", [1.3, 9.0])
def test_power_equals_the_simulated_frequency(seeds, level, difference):
    # Given s, the mean is normal. The probability is averaged over the quantiles of the distribution of s.
    from scipy.special import chdtri, ndtr, stdtrit

    shares = (np.arange(100_000) + 0.5) / 100_000
    reach = stdtrit(seeds - 1, (1 + level) / 2) * np.sqrt(chdtri(seeds - 1, shares) / (seeds - 1))
    shift = difference * math.sqrt(seeds)
    by_hand = np.mean(ndtr(shift - reach) + ndtr(-shift - reach))
    assert power(difference, 1.0, seeds, level) == pytest.approx(by_hand, abs=2e-5)
    assert power(-difference, 1.0, seeds, level) == power(difference, 1.0, seeds, level)


def test_power_counts_both_tails():
    # Power for a difference of 0, or close to 0, is 1 − level.
    assert power(0.0, 1.0, 5, 0.6) == pytest.approx(0.4)
    assert power(1e-9, 1.0, 5, 0.6) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("seeds", "level", "target_power"),
    [(2, 0.8, 0.8), (3, 0.95, 0.8), (3, 0.9999, 0.95), (10, 0.95, 0.95), (10, 0.5, 0.6), (1000, 0.95, 0.8)],
)
def test_the_detectable_difference_has_the_requested_power(seeds, level, target_power):
    least = minimum_detectable_difference(0.02, seeds, level, target_power)
    assert power(least, 0.02, seeds, level) == pytest.approx(target_power, abs=1e-6)


@pytest.mark.parametrize("effect", [0.05, 0.5, 2.0, 30.0])
@pytest.mark.parametrize("level", LEVELS)
def test_the_number_of_seeds_is_minimal(effect, level):
    count = required_seeds(effect, 1.0, level)
    assert power(effect, 1.0, count, level) >= 0.8
    assert count == 2 or power(effect, 1.0, count - 1, level) < 0.8


def test_extreme_values_give_finite_numbers():
    assert power(1e10, 1.0, 2) == 1.0
    assert power(1e-300, 1e300, 2) == pytest.approx(0.05)
    assert power(0.1, 0.0, 3) == 1.0
    assert 0 < power(4e5, 1.0, 2, 1 - 1e-6) < 1  # where the noncentral t distribution of scipy fails
    assert minimum_detectable_difference(0.0, 3) == 0.0
    assert required_seeds(0.0, 1.0) is None
    assert required_seeds(1e-6, 1.0) is None
    assert required_seeds(0.1, 0.0) == 2


def test_a_verdict_states_the_detectable_difference():
    # The differences 1, 2 and 6 have mean 3 and s = √7. The effect is g = J · 3/√7 with J = Γ(1)/(√1 · Γ(½)) = 1/√π.
    found = compare([1, 12, 26], [0, 10, 20], margin=0.5)
    assert found.spread == pytest.approx(math.sqrt(7))
    assert found.seeds == 3
    assert found.effect == pytest.approx(3 / math.sqrt(7) / math.sqrt(math.pi))
    assert found.minimum_detectable_difference == minimum_detectable_difference(found.spread, 3)
    assert found.seeds_for_difference == required_seeds(3, found.spread)
    assert found.seeds_for_margin == required_seeds(0.5, found.spread)


def test_the_effect_correction_equals_hedges_for_many_seeds():
    # J ≈ 1 − 3/(4ν − 1), ν = 19.
    differences = np.linspace(0, 1, 20)
    found = compare(differences, np.zeros(20), margin=0.1)
    assert found.effect == pytest.approx((1 - 3 / 75) * differences.mean() / differences.std(ddof=1), rel=1e-4)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 1.0, 1.0]])
def test_no_effect_from_two_seeds_or_without_spread(values):
    assert compare(values, [0.0] * len(values), margin=0.1).effect is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: power(1.0, 1.0, 1),
        lambda: power(1.0, -1.0, 3),
        lambda: power(math.nan, 1.0, 3),
        lambda: power(1.0, math.inf, 3),
        lambda: power(1.0, 1.0, 3, 1.0),
        lambda: minimum_detectable_difference(1.0, 3, target_power=1.0),
        lambda: minimum_detectable_difference(1.0, 3, target_power=0.05),
        lambda: required_seeds(1.0, math.nan),
    ],
)
def test_power_refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        call()
