"""Checks cumulative sums in twice the precision, and sums over later keys."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.later_sums import later_sums
from attnlab.ops.precise_sums import precise_cumsum

T = 4096


def test_differences_are_exact_to_rounding_after_a_large_sum():
    x = -np.abs(np.random.default_rng(0).normal(size=T)).astype(np.float32)
    x[0] = -1e6  # a plain float32 sum after it has an error of 0.06
    rows, columns = np.arange(T - 8, T), np.arange(T - 40, T - 8)
    found = jax.jit(lambda x: precise_cumsum(x).difference(rows, columns))(x)
    exact = [[math.fsum(x[j + 1 : i + 1].astype(float)) for j in columns] for i in rows]
    np.testing.assert_allclose(found, exact, rtol=5e-6)


def test_the_gradient_of_a_difference_is_one_between_its_ends_and_zero_elsewhere():
    x = jnp.asarray(np.random.default_rng(0).normal(size=30), jnp.float32)
    place = lambda n: jnp.array([n])
    slope = jax.jit(jax.grad(lambda x: precise_cumsum(x).difference(place(20), place(7))[0, 0]))(x)
    np.testing.assert_array_equal(slope, np.where((np.arange(30) > 7) & (np.arange(30) <= 20), 1, 0))


@pytest.mark.parametrize("S", [1, 2, 31, 32, 33, 64, 1025, 1100])
def test_later_sums_are_sums_over_later_keys(S):
    x = np.random.default_rng(S).normal(size=(3, S)).astype(np.float32)
    exact = np.cumsum(x[:, ::-1].astype(float), axis=1)[:, ::-1] - x
    np.testing.assert_allclose(later_sums(jnp.asarray(x)), exact, atol=1e-4)
    negative = -np.abs(x)
    exact = np.cumsum(negative[:, ::-1].astype(float), axis=1)[:, ::-1] - negative
    np.testing.assert_allclose(later_sums(jnp.asarray(negative)), exact, rtol=3e-6, atol=1e-6)
