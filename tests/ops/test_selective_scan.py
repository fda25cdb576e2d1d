import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops import selective_scan
from attnlab.ops.token_block import TokenBlock

K, V, T = 3, 5, 19


def draw():
    rng = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape))
    steps, rate = jnp.asarray(rng.uniform(0, 0.5, (T, V))), jnp.asarray(rng.uniform(0, 3, (K, V)))
    return normal(K, V), normal(T, K), normal(T, K), normal(T, V), steps, rate


def packed():
    """Returns tokens with padding in the middle and at the end, and with a segment that begins within a chunk."""
    keep = np.ones(T, bool)
    keep[[4, 5, T - 1]] = False
    run = np.where(np.arange(T) < 10, 0, 1)
    return TokenBlock(keep, np.arange(T, dtype=np.int32), run.astype(np.int32), np.array(0, np.int32))


def recurrence(state, q, k, v, dt, rate, block):
    state, y, run = np.array(state), np.zeros((T, V)), block.before
    for t in np.flatnonzero(block.keep):
        state = state * (block.run[t] == run)
        run = block.run[t]
        for i, j in np.ndindex(K, V):
            state[i, j] = state[i, j] * np.exp(-rate[i, j] * dt[t, j]) + k[t, i] * v[t, j]
        y[t] = sum(q[t, i] * state[i] for i in range(K))
    return y, state


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("size", [1, 4, 64])
def test_the_form_of_every_backend_computes_the_recurrence(backend, size, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    arrays, block = draw(), packed()
    y, state = selective_scan.causal(*arrays, block, size)
    expected, last = recurrence(*map(np.asarray, arrays), block)
    np.testing.assert_allclose(np.where(block.keep[:, None], y, 0), expected, atol=1e-12)
    np.testing.assert_allclose(state, last, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("argument", range(6))
def test_the_forms_have_equal_gradients(argument, monkeypatch):
    def gradient(backend):
        monkeypatch.setattr(jax, "default_backend", lambda: backend)

        def loss(x):
            arrays = list(draw())
            arrays[argument] = x
            y, state = selective_scan.causal(*arrays, packed(), 4)
            return jnp.sum(jnp.sin(y)) + jnp.sum(jnp.cos(state))

        return jax.grad(loss)(draw()[argument])

    found = gradient("cpu")
    assert np.any(found)
    np.testing.assert_allclose(found, gradient("gpu"), atol=1e-12)
