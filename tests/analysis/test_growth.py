import numpy as np
import pytest
from scipy import stats

from attnlab.analysis.growth import growth


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_an_exact_power_law_has_an_interval_of_no_width(exponent):
    found = growth({T: [3e-6 * T**exponent] * 3 for T in (512, 1024, 2048, 4096)})
    assert found.exponent == pytest.approx(exponent)
    assert found.high - found.low == pytest.approx(0, abs=1e-6)
    assert found.lengths == (2048, 4096)


def test_constant_costs_are_excluded_with_the_smaller_half():
    found = growth({T: [1.0 + 1e-6 * T**2] for T in (64, 128, 256, 8192, 16384, 32768)})
    assert found.lengths == (8192, 16384, 32768)
    assert found.exponent == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("repeats", [1, 4, 30])
def test_the_interval_equals_the_textbook_formula(repeats):
    generator = np.random.default_rng(0)
    costs = {T: list(T**1.5 * np.exp(generator.normal(0, 0.1, repeats))) for T in (100, 200, 400)}
    found = growth({50: [1.0], 60: [1.0], 70: [1.0], **costs})
    x = np.log([T for T in costs for _ in range(repeats)])
    fit = stats.linregress(x, np.log(np.concatenate(list(costs.values()))))
    reach = stats.t.ppf(0.975, 3 * repeats - 2) * fit.stderr
    assert found.exponent == pytest.approx(fit.slope)
    assert (found.low, found.high) == pytest.approx((fit.slope - reach, fit.slope + reach), rel=1e-9)


def test_only_the_requested_number_of_largest_lengths_is_used():
    costs = {T: [1.0 + 1e-6 * T**2] for T in (64, 128, 256, 8192, 16384, 32768)}
    for largest, lengths in ((6, 6), (9, 6), (4, 4), (2, 2), (1, 2)):
        assert growth(costs, largest).lengths == tuple(costs)[-lengths:]
    # With all lengths, the constant part of the costs bends the line, which widens the interval.
    every, half = growth(costs, 6), growth(costs)
    assert every.exponent < half.low
    assert every.high - every.low > 5 * (half.high - half.low)


def test_too_few_points():
    assert growth({}) is None
    assert growth({512: [1.0, 1.1]}) is None
    assert growth({512: [1.0], 1024: [0.0]}) is None
    two = growth({512: [1.0], 1024: [2.0]})
    assert (two.exponent, two.low, two.high) == (pytest.approx(1), None, None)
