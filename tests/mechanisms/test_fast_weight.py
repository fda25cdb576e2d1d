"""Checks the delta rule over a feature map: its equation, and that it overwrites the value of a key."""

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms.fast_weight import FastWeight
from attnlab.ops.feature import Dpfp, EluPlusOne, Favor, Identity, Narrow, Rebased, Taylor
from tests.mechanisms.contract import causal


def dpfp(x):
    r = np.maximum(np.concatenate([x, -x]), 0)
    return r * np.roll(r, 1)


def share(x):
    return x / x.sum() if x.sum() else x


def reference(q, k, v, beta):
    """Computes the rule token by token: reads what the key holds, and replaces it by a mixture of it and the value."""
    state = np.zeros((2 * q.shape[1], v.shape[1]))
    answers = []
    for q_t, k_t, v_t, raw in zip(q, k, v, beta, strict=True):
        key, strength = share(dpfp(k_t)), 1 / (1 + np.exp(-raw))
        held = key @ state
        new = strength * v_t + (1 - strength) * held
        state = state - np.outer(key, held) + np.outer(key, new)
        answers.append(share(dpfp(q_t)) @ state)
    return np.array(answers)


@pytest.mark.parametrize("chunk", [3, 64])
def test_it_is_the_published_recurrence(x64, chunk):
    draw = np.random.default_rng(0)
    q, k, v, beta = (draw.normal(size=shape) for shape in ((11, 4), (11, 4), (11, 3), (11,)))
    y = causal(FastWeight(chunk=chunk), q, k, v, beta=beta)
    np.testing.assert_allclose(y, reference(q, k, v, beta), atol=1e-12)


def test_the_authors_scale_divides_by_the_root_of_the_width(x64):
    """For 16 components it is a quarter, whatever the number of features."""
    draw = np.random.default_rng(1)
    q, k, v, beta = (draw.normal(size=shape) for shape in ((7, 16), (7, 16), (7, 3), (7,)))
    for nu in (1, 3):
        plain, scaled = (FastWeight(feature=Dpfp(nu=nu), scale_queries=scale) for scale in (False, True))
        found = causal(scaled, q, k, v, beta=beta)
        np.testing.assert_allclose(found, causal(plain, q, k, v, beta=beta) / 4, rtol=1e-12)


def test_a_key_of_one_feature_is_overwritten():
    """With one active feature the norm is one, and β = 1 replaces all that the key held."""
    x, v = jnp.array([[9.0, 9.0, 0.0], [9.0, 9.0, 0.0], [9.0, 9.0, 0.0]]), jnp.array([[1.0], [5.0], [-2.0]])
    y = causal(FastWeight(), x, x, v, beta=jnp.full(3, 30.0))
    np.testing.assert_allclose(y, v, atol=1e-5)


def test_a_token_without_features_writes_nothing():
    k = jnp.array([[1.0, 2.0], [0.0, 0.0]])
    y = causal(FastWeight(), jnp.ones((2, 2)), k, jnp.array([[3.0], [100.0]]), beta=jnp.zeros(2))
    np.testing.assert_allclose(y[0], y[1], atol=1e-6)


def test_invalid_features_are_refused():
    with pytest.raises(ValueError, match="has no sum: each row is known only up to a factor"):
        FastWeight(feature=Favor())
    for feature in (Identity(), Taylor(), Narrow(Rebased(), 2)):
        with pytest.raises(ValueError, match="may be negative"):
            FastWeight(feature=feature)
    with pytest.raises(ValueError, match="chunk=0 must be at least 1"):
        FastWeight(chunk=0)


def test_its_state_is_features_by_values():
    assert FastWeight(feature=Dpfp(nu=2)).init_memory(9, 4, 5, jnp.float32).shape == (16, 5)
    assert FastWeight(feature=EluPlusOne()).cost(8, 8, 4, 5).state_bytes == 4 * 4 * 5
