"""Checks the map of a mechanism with extra inputs as wide as the values: it is the mean over channels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import weights
from attnlab.ops.mask import Causal, Full, Window
from tests.gated import Gated

K, V = 5, 3


def drawn(T, S=None):
    rng = np.random.default_rng(T)
    q, k = rng.normal(size=(T, K)), rng.normal(size=(S or T, K))
    extra = {"gate": rng.normal(size=(S or T, V)), "out": rng.normal(size=(S or T, V)), "w": rng.normal(size=V)}
    return jax.tree.map(jnp.asarray, (q, k, extra))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(q, k, extra, sees, gated):
    """Computes the map of every channel, one number at a time, and returns their mean."""
    q, k, extra = jax.tree.map(lambda x: np.asarray(x, np.float64), (q, k, extra))
    found = np.zeros((len(q), len(k)))
    for t in range(len(q)):
        for s in range(len(k)):
            for c in range(V):
                weight = sum(q[t, n] * k[s, n] for n in range(K)) * sigmoid(extra["gate"][s, c]) * extra["w"][c]
                weight *= sigmoid(extra["out"][t, c]) if gated else 1
                found[t, s] += weight / V if sees(t, s) else 0
    return found


@pytest.mark.parametrize("T", [1, 2, 3, 7])  # fewer tokens than channels, as many, and more
def test_the_map_is_the_mean_over_the_channels(T):
    q, k, extra = drawn(T)
    found = weights(Gated(), q, k, Causal(), **extra)
    np.testing.assert_allclose(found, by_hand(q, k, extra, lambda t, s: s <= t, gated=True), atol=1e-5)
    found = weights(Gated(), q, k, Window(2, 1), **extra)
    np.testing.assert_allclose(found, by_hand(q, k, extra, lambda t, s: -1 < t - s < 2, gated=False), atol=1e-5)
    q, k, extra = drawn(T, T + 2)
    found = weights(Gated(), q, k, Full(), **extra)
    np.testing.assert_allclose(found, by_hand(q, k, extra, lambda t, s: True, gated=False), atol=1e-5)


def test_maps_work_under_jit_and_by_heads():
    q, k, extra = drawn(4)
    look = jax.vmap(lambda q: weights(Gated(), q, k, Causal(), **extra))
    found = jax.jit(look)(jnp.stack([q, 2 * q]))
    np.testing.assert_allclose(found[1], 2 * found[0], atol=1e-5)
    np.testing.assert_allclose(found[0], by_hand(q, k, extra, lambda t, s: s <= t, gated=True), atol=1e-5)
