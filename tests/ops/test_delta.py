import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.ops import delta, triangle
from attnlab.ops.layer import l2_normalize
from tests.ops.test_decay import K, V, draw, everything, products

inverse = jax.jit(triangle.inverse)


def recurrence(q, k, v, log_gates, beta, state=0.0):
    """Computes S_t = (I − β_t k_tᵀ k_t) diag(a_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t, token by token in float64."""
    q, k, v, log_gates, beta = (np.asarray(x, np.float64) for x in (q, k, v, log_gates, beta))
    state, y = np.zeros((q.shape[1], v.shape[1])) + state, []
    for t in range(len(q)):
        erase = np.eye(q.shape[1]) - beta[t] * np.outer(k[t], k[t])
        state = erase @ (np.exp(log_gates[t])[:, None] * state) + beta[t] * np.outer(k[t], v[t])
        y.append(q[t] @ state)
    return np.array(y), state


def run(q, k, v, log_gates, beta, size=8, state=None):
    state = jnp.zeros((q.shape[1], v.shape[1]), q.dtype) if state is None else state
    beta = beta[:, None]
    call = jax.jit(delta.causal, static_argnums=7)
    return call(state, q, k, beta * v, beta * k, log_gates, everything(q.shape[0]), size)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("C", [1, 2, 7, 8, 9, 32, 50])
def test_the_inverse_ignores_entries_above_the_diagonal(C):
    square = np.asarray(draw((2, C, C))[0]) / C
    expected = np.linalg.inv(np.eye(C) + np.tril(square, -1))
    np.testing.assert_allclose(inverse(square), expected, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_gradients_of_the_inverse():
    (square,) = draw((2, 11, 11))
    check_grads(inverse, (square / 4,), order=1, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)


def test_the_inverse_takes_no_powers():
    # One key is written 512 times. Powers of this triangle reach 1e150, and its inverse does not exceed 1.
    found = inverse(np.tril(np.ones((1, 512, 512), np.float32), -1))
    np.testing.assert_array_equal(found[0], np.eye(512) - np.eye(512, k=-1))


def test_l2_normalized_rows_have_norm_one_and_zero_stays_zero_with_a_finite_gradient():
    x = jnp.array([[3.0, 4.0], [3e-11, 4e-11], [0.0, 0.0], [1e-30, 0.0]])
    y, back = jax.vjp(l2_normalize, x)
    np.testing.assert_allclose(y, [[0.6, 0.8], [0.6, 0.8], [0, 0], [1e-18, 0]], rtol=1e-6)
    for cotangent in (jnp.ones_like(x), y):
        assert np.isfinite(back(cotangent)[0]).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("G", [1, K])
@pytest.mark.parametrize(("T", "size"), [(1, 8), (13, 1), (13, 5), (13, 64), (37, 16)])
def test_chunks_of_any_size_equal_the_recurrence(G, T, size):
    q, k, v, raw, state, strength = draw((T, K), (T, K), (T, V), (T, G), (K, V), (T,))
    given = q, l2_normalize(k), v, -jnp.exp(raw), jax.nn.sigmoid(strength)
    y, after = run(*given, size, state)
    expected, left = recurrence(*given, state)
    np.testing.assert_allclose(y, expected, atol=1e-12)
    np.testing.assert_allclose(after, left, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("G", [1, K])
def test_gradients_through_gates_and_strengths_agree_with_finite_differences(G):
    q, k, v, raw, state, strength = draw((9, K), (9, K), (9, V), (9, G), (K, V), (9,))

    def f(q, k, v, raw, strength, state):
        return run(q, l2_normalize(jnp.asarray(k)), v, -jnp.exp(raw), jax.nn.sigmoid(strength), 4, state)

    check_grads(f, (q, k, v, raw, strength, state), order=1, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)


def test_strength_one_replaces_the_value_of_a_key():
    # Four orthonormal keys are each written twice. Reading gives the last value.
    order = np.array([0, 1, 2, 3, 2, 0, 3, 1])
    k = jnp.eye(K)[order]
    (v,) = draw((8, V), dtype=jnp.float32)
    read, nothing = jnp.eye(K), jnp.zeros((K, V))
    q = jnp.concatenate([jnp.zeros((8, K)), read])
    y, _ = run(
        q,
        jnp.concatenate([k, jnp.zeros((K, K))]),
        jnp.concatenate([v, nothing]),
        jnp.zeros((12, 1)),
        jnp.ones(12),
        size=16,
    )
    last = [np.flatnonzero(order == key)[-1] for key in range(K)]
    np.testing.assert_allclose(y[8:], np.asarray(v)[last], atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_orthogonal_keys_are_linear_attention():
    q, v = draw((K, K), (K, V))
    k = jnp.linalg.qr(draw((K, K), seed=1)[0])[0]
    y, state = run(q, k, v, jnp.zeros((K, 1)), jnp.ones(K))
    np.testing.assert_allclose(y, np.tril(q @ k.T) @ v, atol=1e-12)
    np.testing.assert_allclose(state, k.T @ v, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_strength_zero_leaves_the_state_unchanged():
    q, k, v, state = draw((9, K), (9, K), (9, V), (K, V))
    y, after = run(q, l2_normalize(k), v, jnp.zeros((9, K)), jnp.zeros(9), 4, state)
    np.testing.assert_allclose(y, q @ state, atol=1e-14)
    np.testing.assert_allclose(after, state, atol=1e-14)


@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-3])
def test_equal_and_nearly_equal_keys_keep_precision(spread):
    q, noise, v = draw((256, K), (256, K), (256, V), dtype=jnp.float32)
    k = l2_normalize(jnp.ones((256, K), jnp.float32) + spread * noise)
    given = q, k, v, jnp.zeros((256, 1), jnp.float32), jnp.ones(256, jnp.float32)
    (y, _), back = jax.vjp(lambda *x: run(*x, size=64), *given)
    expected = recurrence(*given)[0]
    assert np.max(np.abs(y - expected)) <= 5e-6 * np.max(np.abs(expected))
    assert all(np.isfinite(x).all() for x in back((jnp.ones_like(y), jnp.ones((K, V), jnp.float32))))


@pytest.mark.parametrize("G", [1, K])
def test_products_stay_within_the_axis_limit_when_batched(G):
    given = (*(jnp.zeros((130, width)) for width in (K, K, V, G)), jnp.zeros(130))
    ranks = set(products(jax.make_jaxpr(jax.grad(lambda *x: run(*x, size=64)[0].sum(), (0, 1, 2, 3, 4)))(*given).jaxpr))
    assert ranks
    assert max(ranks) <= 4
