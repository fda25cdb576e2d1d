import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.mechanisms.position_state import PositionState, next_block
from attnlab.ops import decay
from attnlab.ops.gate_products import by_channels, by_tokens, chunk_sums, dyadic_sums, stack

K, V = 4, 3


def everything(T):
    """Returns the block of T tokens of one segment without padding."""
    return next_block(PositionState.start(), T, None, None, None)[0]


def draw(*shapes, seed=0, dtype=jnp.float64):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]


def recurrence(q, k, v, log_gates, state=0.0):
    """Computes S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t S_t, token by token in float64."""
    q, k, v, log_gates = (np.asarray(x, np.float64) for x in (q, k, v, log_gates))
    state, y = np.zeros((q.shape[1], v.shape[1])) + state, []
    for t in range(len(q)):
        state = np.exp(log_gates[t])[:, None] * state + np.outer(k[t], v[t])
        y.append(q[t] @ state)
    return np.array(y), state


def run(q, k, v, log_gates, size=8, state=None):
    state = jnp.zeros((q.shape[1], v.shape[1]), q.dtype) if state is None else state
    return jax.jit(decay.causal, static_argnums=6)(state, q, k, v, log_gates, everything(q.shape[0]), size)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("G", [1, K])
@pytest.mark.parametrize(("T", "size"), [(1, 8), (13, 1), (13, 5), (13, 64), (37, 16)])
def test_chunks_of_any_size_equal_the_recurrence(G, T, size):
    q, k, v, raw, state = draw((T, K), (T, K), (T, V), (T, G), (K, V))
    log_gates = -jnp.exp(raw)
    y, after = run(q, k, v, log_gates, size, state)
    expected, left = recurrence(q, k, v, log_gates, state)
    np.testing.assert_allclose(y, expected, atol=1e-12)
    np.testing.assert_allclose(after, left, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_one_gate_per_token_equals_the_same_gate_in_every_channel_and_open_gates_are_plain_sums():
    q, k, v, raw = draw((19, K), (19, K), (19, V), (19, 1))
    one, every = run(q, k, v, -jnp.exp(raw)), run(q, k, v, jnp.tile(-jnp.exp(raw), (1, K)))
    np.testing.assert_allclose(one[0], every[0], atol=1e-12)
    for G in (1, K):
        y, state = run(q, k, v, jnp.zeros((19, G)))
        np.testing.assert_allclose(y, np.tril(q @ k.T) @ v, atol=1e-12)
        np.testing.assert_allclose(state, k.T @ v, atol=1e-12)


@pytest.mark.parametrize("gate", [-5.0, -100.0, -1e4])
@pytest.mark.parametrize("G", [1, K])
def test_gates_that_overflow_as_exponentials_of_sums_give_finite_values_and_gradients(gate, G):
    q, k, v = draw((40, K), (40, K), (40, V), dtype=jnp.float32)
    log_gates = jnp.full((40, G), gate, jnp.float32)
    (y, _), back = jax.vjp(lambda *x: run(*x, size=64), q, k, v, log_gates)
    np.testing.assert_allclose(y, recurrence(q, k, v, log_gates)[0], atol=2e-6)
    assert all(np.isfinite(x).all() for x in back((jnp.ones_like(y), jnp.ones((K, V), jnp.float32))))


@pytest.mark.parametrize("G", [1, K])
@pytest.mark.parametrize("size", [64, 32])
def test_a_closed_gate_leaves_later_tokens_exact(G, size):
    # With one cumulative sum, the gates after one of e^−10000 would be accurate to 1e-3 only.
    q, k, v = draw((64, K), (64, K), (64, V), dtype=jnp.float32)
    log_gates = jnp.full((64, G), -0.0123, jnp.float32).at[jnp.array([5, 6, 20])].set(-12345.678)
    y, expected = run(q, k, v, log_gates, size=size)[0], recurrence(q, k, v, log_gates)[0]
    assert np.max(np.abs(y - expected)) <= 1e-6 * np.max(np.abs(expected))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("C", [1, 2, 3, 8, 11])
def test_splitting_scores_equals_every_pair_and_channel(C):
    q, k, raw = map(np.asarray, draw((2, C, K), (2, C, K), (2, C, K)))
    log_gates = -np.exp(3 * raw)
    sums = np.cumsum(log_gates, axis=1)
    gates = np.exp(np.minimum(sums[:, :, None] - sums[:, None], 0))
    both = jax.device_get(jax.jit(lambda q, k, gates: by_channels((q, k), k, dyadic_sums(gates)))(q, k, log_gates))
    for rows, found in zip((q, k), both, strict=True):
        expected = np.tril(np.einsum("ntk,nsk,ntsk->nts", rows, k, gates))
        np.testing.assert_allclose(found[:, :C, :C], expected, atol=1e-12)
    found = np.exp(jax.jit(lambda gates: by_tokens(dyadic_sums(gates)))(log_gates[:, :, :1]))[:, :C, :C]
    np.testing.assert_allclose(np.tril(found), np.tril(gates[..., 0]), atol=1e-12)


def test_dyadic_sums_double_their_length():
    gates = -jnp.arange(1.0, 6.0).reshape(1, 5, 1)
    sums = dyadic_sums(gates)
    assert [x.from_start.shape for x in sums] == [(8, 1, 1), (4, 2, 1), (2, 4, 1), (1, 8, 1)]
    np.testing.assert_array_equal(chunk_sums(sums, 5).from_start[0, :, 0], [-1, -3, -6, -10, -15])
    np.testing.assert_array_equal(chunk_sums(sums, 5).to_end[0, :, 0], [-14, -12, -9, -5, 0])
    np.testing.assert_array_equal(sums[1].from_start[:, :, 0], [[-1, -3], [-3, -7], [-5, -5], [0, 0]])


def test_squares_are_stacked_in_pairs():
    a, b, c = (np.full((1, 2, 2), x) for x in (1.0, 2.0, 3.0))
    found = stack(jnp.concatenate([a, b]), jnp.asarray(c))
    np.testing.assert_array_equal(found[0], [[1, 1, 0, 0], [1, 1, 0, 0], [3, 3, 2, 2], [3, 3, 2, 2]])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("G", [1, K])
def test_gradients_through_gates_agree_with_finite_differences(G):
    q, k, v, raw, state = draw((9, K), (9, K), (9, V), (9, G), (K, V))
    f = lambda q, k, v, raw, state: run(q, k, v, -jnp.exp(raw), 4, state)
    check_grads(f, (q, k, v, raw, state), order=1, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)


def products(jaxpr):
    """Yields the ranks of the factors of all products in a program and its loops."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield from (x.aval.ndim for x in equation.invars)
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            if hasattr(inner := getattr(inner, "jaxpr", inner), "eqns"):
                yield from products(inner)


@pytest.mark.parametrize("G", [1, K])
def test_products_stay_within_the_axis_limit_when_batched(G):
    # XLA 0.10.2 for CPUs aborts the process at a product of eight axes.
    q, k, v, log_gates = (jnp.zeros((130, width)) for width in (K, K, V, G))
    ranks = set(
        products(jax.make_jaxpr(jax.grad(lambda *x: run(*x, size=64)[0].sum(), (0, 1, 2, 3)))(q, k, v, log_gates).jaxpr)
    )
    assert ranks
    assert max(ranks) <= 4


def test_declared_flops_are_linear_in_length_beyond_a_chunk():
    costs = [decay.flops(T, 64, 64, 64, G) for T, G in itertools.product((64, 128, 256), (1, 64))]
    assert costs[2] == 2 * costs[0]
    assert costs[5] == 4 * costs[1]
