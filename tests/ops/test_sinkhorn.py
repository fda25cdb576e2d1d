import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops import sinkhorn

pytestmark = pytest.mark.usefixtures("x64")
balance = jax.jit(sinkhorn.balance, static_argnums=3)


def every(A, B):
    return jnp.ones(A, bool), jnp.ones(B, bool)


def test_a_square_becomes_doubly_stochastic():
    scores = jax.random.normal(jax.random.key(0), (5, 5))
    s = balance(scores, *every(5, 5), 50)
    np.testing.assert_allclose(s.sum(axis=0), np.ones(5), atol=1e-12)
    np.testing.assert_allclose(s.sum(axis=1), np.ones(5), atol=1e-12)
    # Balancing preserves the cross ratios.
    ratio = lambda x: x[1:, 1:] + x[:-1, :-1] - x[1:, :-1] - x[:-1, 1:]
    np.testing.assert_allclose(ratio(jnp.log(s)), ratio(scores), atol=1e-10)


def test_two_by_two_by_hand():
    # The result is doubly stochastic, [[p, 1−p], [1−p, p]] with p²/(1−p)² = e^1.
    p = 1 / (1 + np.exp(-0.5))
    found = balance(jnp.array([[1.0, 0], [0, 0]]), *every(2, 2), 60)
    np.testing.assert_allclose(found, [[p, 1 - p], [1 - p, p]], atol=1e-12)


def test_columns_of_a_rectangle_have_equal_sums():
    s = balance(jax.random.normal(jax.random.key(0), (2, 5)), *every(2, 5), 60)
    np.testing.assert_allclose(s.sum(axis=1), np.ones(2), atol=1e-12)
    np.testing.assert_allclose(s.sum(axis=0), np.full(5, 2 / 5), atol=1e-10)


def test_masked_entries_are_zero():
    scores = jax.random.normal(jax.random.key(0), (4, 5))
    rows, columns = jnp.array([1, 0, 1, 1], bool), jnp.array([1, 1, 0, 1, 0], bool)
    spoilt = jnp.where(rows[:, None] & columns[None, :], scores, 1e300)
    alone = balance(scores[rows][:, columns], *every(3, 3), 4)
    s, back = jax.vjp(lambda scores: balance(scores, rows, columns, 4), spoilt)
    np.testing.assert_allclose(s[rows][:, columns], alone, atol=1e-12)
    assert not np.any(s[~rows])
    assert not np.any(s[:, ~columns])
    gradient = back(jnp.ones_like(s).at[0, 0].set(3.0))[0]
    assert np.isfinite(gradient).all()
    assert not np.any(gradient[~rows])
    assert not np.any(balance(scores, rows & False, columns, 4))


@pytest.mark.parametrize("scale", [1e-30, 1e3, 1e30])
def test_extreme_scores_stay_finite(scale):
    scores = jax.random.normal(jax.random.key(0), (4, 4), jnp.float32) * jnp.float32(scale)
    s, back = jax.vjp(lambda scores: balance(scores, *every(4, 4), 8), scores)
    np.testing.assert_allclose(s.sum(axis=1), np.ones(4), atol=1e-5)
    assert np.isfinite(back(s)[0]).all()
