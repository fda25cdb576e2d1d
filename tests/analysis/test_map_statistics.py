"""Checks rank, entropy, reach and distance of attention maps against values known in advance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnlab.analysis.map_statistics import attention_distance, distance, effective_rank, entropy, max_entropy, mean

NAN = np.nan
MAPS = arrays(np.float64, (4, 6), elements=st.floats(0.0, 1.0))


def test_the_effective_rank_of_known_singular_values():
    # σ = 3, 1: shares ¾ and ¼.
    expected = np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    maps = np.stack([np.diag([3.0, 1.0]), np.diag([-1.0, 3.0]), np.diag([2.0, 2.0]), [[0.3, 0.7], [0.3, 0.7]]])
    np.testing.assert_allclose(effective_rank(maps), [expected, expected, 2, 1], rtol=1e-12)


def test_matrices_without_a_rank():
    maps = np.stack([np.zeros((2, 3)), np.full((2, 3), NAN), np.full((2, 3), np.inf), np.ones((2, 3))])
    np.testing.assert_allclose(effective_rank(maps), [NAN, NAN, NAN, 1])


@given(MAPS, st.floats(0.1, 10.0))
def test_the_effective_rank_lies_between_one_and_the_smaller_side_whatever_the_scale(weights, scale):
    found = effective_rank(weights)
    if weights.max() < 1e-100:  # squares underflow in the decomposition
        return
    assert 1 - 1e-9 <= found <= 4 + 1e-9
    assert effective_rank(weights * scale) == pytest.approx(found, rel=1e-6)


def test_the_entropy_of_a_row():
    rows = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4, [2.0] * 4, [-0.5, 0.5, 0, 0], [0] * 4, [NAN] * 4])
    np.testing.assert_allclose(entropy(rows), [np.log(2), 0, np.log(4), np.log(4), np.log(2), NAN, NAN], atol=1e-15)


def test_small_and_large_weights_have_an_entropy():
    np.testing.assert_allclose(entropy(np.array([[1e-320, 0], [1e308, 1e308]])), [0, np.log(2)])


@given(MAPS)
def test_the_entropy_is_at_most_that_of_equal_weights(weights):
    found, most = entropy(weights), max_entropy(weights > 0)
    both = ~np.isnan(found)
    np.testing.assert_array_equal(both, ~np.isnan(most))
    assert np.all(found[both] <= most[both] + 1e-9)
    assert np.all(found[both] >= 0)


def test_the_largest_entropy_and_rank_under_a_mask():
    allowed = np.tril(np.ones((3, 3), bool))
    np.testing.assert_allclose(max_entropy(allowed), [0, np.log(2), np.log(3)])
    assert np.isnan(max_entropy(np.zeros((1, 3), bool))).all()


def test_the_reach_of_a_row():
    # Row 0 reads token 0. Row 1 reads tokens 0 and 3. Row 2 reads token 2, and token 4 with twice the weight.
    weights = np.array([[1.0, 0, 0, 0, 0], [0.5, 0, 0, 0.5, 0], [0, 0, 1.0, 0, -2.0]])
    np.testing.assert_allclose(attention_distance(weights), [0, (1 + 2) / 2, 4 / 3])
    assert np.isnan(attention_distance(np.zeros((1, 3)))).all()


def test_the_distance_of_rows():
    a = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5], [2.0, 0, 0]])
    b = np.array([[0, 1.0, 0], [0.5, 0, 0.5], [0.2, 0.3, 0.5], [0, 2.0, 0]])
    np.testing.assert_allclose(distance(a, b), [1, 0.5, 0, 2])
    assert np.isnan(distance(np.full((1, 2), np.inf), np.full((1, 2), np.inf))).all()


def test_means_exclude_undefined_rows():
    np.testing.assert_array_equal(mean(np.array([[1.0, NAN, 3.0], [NAN] * 3])), [2.0, NAN])
