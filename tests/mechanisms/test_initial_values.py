"""Checks initial values of learned arrays against the numbers of the papers and of their authors' code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.mechanisms.mesa import Mesa
from attnlab.modules.attention import Attention
from attnlab.modules.multi_head import MultiHead
from attnlab.ops.score import cosine
from tests.mechanisms.test_gates import softplus


def drawn(name, K=4, V=6, count=300):
    """Returns initial values of many keys."""
    keys = jax.random.split(jax.random.key(0), count)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key: MECHANISMS[name].initial(key, K, V)))(keys))


def test_numbers_that_are_not_drawn():
    rwkv = drawn("rwkv7", count=1)
    np.testing.assert_allclose(rwkv["removal"], np.full((1, 4), 0.85), rtol=1e-6)
    np.testing.assert_array_equal(rwkv["replacement"], np.ones((1, 4)))
    assert drawn("forgetting", count=1)["shift"] == 0
    three = drawn("mamba3", count=1)
    np.testing.assert_array_equal([three["q_bias"], three["k_bias"]], np.ones((2, 1, 4)))
    # A = 1 … K, the same for all value channels.
    rates = np.exp(drawn("mamba", count=1)["rate"][0])
    np.testing.assert_allclose(rates, np.tile([[1], [2], [3], [4]], 6), rtol=1e-6)
    np.testing.assert_allclose(0.25 + softplus(drawn("mesa", count=1)["ridge"]), np.ones((1, 4)), rtol=1e-6)
    floor = Mesa(floor=0.75).initial(jax.random.key(0), 4, 6)["ridge"]
    np.testing.assert_allclose(0.75 + softplus(np.asarray(floor)), np.full(4, 1.5), rtol=1e-6)
    factor = Softmax(score=cosine).initial(jax.random.key(0), 4, 6)["log_scale"]
    assert np.exp(factor) == pytest.approx(10, rel=1e-6)


def test_numbers_that_are_drawn():
    mixes = drawn("differential")
    for name in ("mix_q", "mix_k"):
        assert mixes[name].std() == pytest.approx(0.1, rel=0.1)
        assert abs(mixes[name].mean()) < 0.01
    gates = drawn("mlstm")
    np.testing.assert_array_equal(gates["write_shift"], np.full(300, -10))
    assert 3 <= gates["forget_shift"].min() < 3.1 < 5.9 < gates["forget_shift"].max() <= 6
    for name in ("mamba", "mamba3", "kda", "gated-delta", "log-linear"):
        # The logarithm of a step is uniform between those of 0.001 and 0.1.
        steps = np.log10(softplus(drawn(name)["shift"].astype(np.float64)))
        assert -3.001 < steps.min() < -2.9 < -1.1 < steps.max() < -0.999, name
        assert steps.mean() == pytest.approx(-2, abs=0.15), name


def test_a_value_residual_starts_as_the_mean_of_both_values():
    made = jax.jit(lambda: Attention(jax.random.key(0), 8, 2, Softmax(), layer=MultiHead(value_residual=True)))()
    np.testing.assert_array_equal(made.residual[...], jnp.full(2, 0.5))
