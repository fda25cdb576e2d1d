import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops import linear

pytestmark = pytest.mark.usefixtures("x64")
T, M, V = 5, 3, 2


def drawn(seed=0):
    """Returns a state, features of queries and keys, and values."""
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=s)) for s in ((M, V), (T, M), (T, M), (T, V))]


def test_a_chunk_equals_the_recurrence():
    state, q, k, v = map(np.asarray, drawn())
    pairs, all_ = np.tril(np.ones((T, T), bool)), np.ones(T, bool)
    y, after = linear.chunk(*drawn(), pairs, all_, all_, np.array(True))
    for t in range(T):
        state = state + np.outer(k[t], v[t])
        np.testing.assert_allclose(y[t], q[t] @ state, atol=1e-12)
    np.testing.assert_allclose(after, state, atol=1e-12)


def test_a_chunk_weights_the_incoming_state():
    state, q, k, v = drawn()
    rng = np.random.default_rng(1)
    pairs, sees, stays = (jnp.asarray(rng.normal(size=s)) for s in ((T, T), (T,), (T,)))
    y, after = linear.chunk(state, q, k, v, pairs, sees, stays, jnp.asarray(0.5))
    np.testing.assert_allclose(y, (q @ k.T * pairs) @ v + sees[:, None] * (q @ state), atol=1e-12)
    np.testing.assert_allclose(after, 0.5 * state + (k * stays[:, None]).T @ v, atol=1e-12)
    # No query sees the state, no token enters it, and it does not survive: no number in them matters.
    none = np.zeros(T, bool)
    _, after = linear.chunk(state * jnp.nan, q, k, v, pairs, none, none, np.array(False))
    assert not np.any(after)


def visibility_of(keep, run, before=0):
    """Returns the visibility within the given runs, with padding where `keep` is false."""
    keep, run = np.array(keep, bool), np.array(run)
    pairs = np.tril(run[:, None] == run[None, :]) & keep[:, None] & keep[None, :]
    return linear.Visibility(pairs, keep & (run == before), keep & (run == run[-1]), np.array(run[-1] == before))


@pytest.mark.parametrize(
    ("keep", "run"), [([1] * 5, [0] * 5), ([0, 1, 1, 0, 1], [0] * 5), ([1, 1, 0, 1, 1], [0, 0, 0, 1, 1])]
)
def test_scaled_keys_equal_unscaled_keys_up_to_one_factor_per_query(keep, run):
    state, q, k, v = drawn()
    scale, peak = jnp.asarray(np.random.default_rng(2).normal(size=T) * 3), jnp.asarray(1.5)
    visible = visibility_of(keep, run)
    plain, plain_after = linear.chunk(state * jnp.exp(peak), q, k * jnp.exp(scale)[:, None], v, *visible)
    relative, after_peak = linear.relative_visibility(scale, peak, visible)
    y, after = linear.chunk(state, q, k, v, *relative)
    seen = [
        max(
            [float(peak)] * bool(visible.state_visible[t]) + [float(scale[j]) for j in range(T) if visible.pairs[t, j]],
            default=0,
        )
        for t in range(T)
    ]
    np.testing.assert_allclose(y * np.exp(seen)[:, None], plain, atol=1e-12)
    np.testing.assert_allclose(after * jnp.exp(after_peak), plain_after, atol=1e-12)


def test_scales_of_any_size_and_of_later_keys_change_nothing():
    scale = jnp.array([-1e9, 3e9, 0.0, -1e9, 1e9])
    visible = visibility_of([1] * 5, [0] * 5)
    weights, peak = linear.relative_visibility(scale, jnp.asarray(linear.NO_SCALE), visible)
    assert all(np.isfinite(x).all() for x in weights)
    assert peak == 3e9
    # The first query sees its own key with weight 1, although later keys are much larger.
    np.testing.assert_array_equal(weights.pairs[:2], [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    assert not np.any(linear.relative_visibility(scale, peak, visibility_of([0] * 5, [0] * 5))[0].pairs)


def test_rescaling_is_relative_to_the_largest_allowed_key():
    scale = jnp.array([0.0, 2.0, 900.0])
    allowed = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0]], bool)
    faded = linear.relative_decay(scale, allowed)
    np.testing.assert_allclose(faded, [[np.exp(-2), 1, 0], [0, 0, 1], [0, 0, 0]], atol=1e-300)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_negligible_weight_is_zero_with_a_finite_gradient(dtype):
    total = jnp.array([[0.0], [1e-310], [3e-38], [-1e-35], [2e-30], [-2.0]]).astype(dtype)
    # The values are near three, so the numerator is as small as the denominator.
    y, back = jax.vjp(linear.divide_by_total, total * jnp.full((1, 4), 3, dtype), total)
    gradients = back(jnp.full((6, 4), 100, dtype))
    assert all(np.isfinite(g).all() for g in gradients)
    counted = np.abs(total[:, 0]) > (2e-31 if dtype == "float32" else 4e-301)
    np.testing.assert_allclose(y[counted], np.full((counted.sum(), 4), 3), rtol=1e-6)
    assert not np.any(y[~counted])
    assert not any(np.any(g[~counted]) for g in gradients)


def test_a_column_of_ones_gives_the_denominator():
    _, q, k, v = drawn()
    q, k = jnp.abs(q), jnp.abs(k)
    y = linear.normalise(q @ linear.sum_outer_products(k, linear.append_ones(v)))
    weights = q @ k.T
    np.testing.assert_allclose(y, weights / weights.sum(1, keepdims=True) @ v, atol=1e-12)
