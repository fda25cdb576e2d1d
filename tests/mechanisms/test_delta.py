"""Checks delta, gated-delta and kda against their equations, token by token in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.delta import Delta
from attnlab.mechanisms.gated_delta import GatedDelta
from tests.mechanisms.contract import K, V, causal, causal_back, inputs
from tests.mechanisms.test_gates import packings, softplus

each = pytest.mark.parametrize("name", ["delta", "gated-delta", "kda"])
gated = pytest.mark.parametrize("name", ["gated-delta", "kda"])


def recurrence(name, q, k, v, extra, keep=None, segment=None):
    """Computes S_t = (I − β_t k_tᵀ k_t) diag(α_t) S_{t-1} + β_t k_tᵀ v_t, y_t = q_t S_t / √K; q and k have norm one."""
    q, k, v, extra = jax.tree.map(lambda x: np.asarray(x, np.float64), (q, k, v, extra))
    q, k = (np.array([row / math.sqrt(math.fsum(c * c for c in row) + 1e-6) for row in x]) for x in (q, k))
    q = q / math.sqrt(K)
    beta = np.exp(-softplus(-extra["beta"]))
    gates = np.ones(k.shape)
    if name != "delta":
        step = softplus(extra["dt"] + extra["shift"])
        gates = gates * np.exp(-np.exp(extra["rate"]) * step.reshape(len(q), -1))
    y, state, before = np.zeros(v.shape), np.zeros((k.shape[1], v.shape[1])), None
    for t in range(len(q)):
        if keep is not None and not keep[t]:
            continue
        if segment is not None and segment[t] != before:
            state, before = np.zeros_like(state), segment[t]
        erase = np.eye(k.shape[1]) - beta[t] * np.outer(k[t], k[t])
        state = erase @ (gates[t][:, None] * state) + beta[t] * np.outer(k[t], v[t])
        y[t] = q[t] @ state
    return y


def close(mechanism, name, q, k, v, extra):
    """Checks that values are within the limit of single precision, and that gradients are finite."""
    y, back = causal_back(mechanism, jnp.ones(v.shape, v.dtype), q, k, v, extra)
    expected = recurrence(name, q, k, v, extra)
    assert np.max(np.abs(y - expected)) <= 5e-6 * np.max(np.abs(expected))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(back))


@pytest.mark.usefixtures("x64")
@each
def test_the_equation_with_random_padding_and_packing(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 150)
    for keep, segment in packings(150, 5):
        y = causal(mechanism, q, k, v, keep=jnp.asarray(keep), segment=jnp.asarray(segment, jnp.int32), **extra)
        np.testing.assert_allclose(y, recurrence(name, q, k, v, extra, keep, segment), atol=1e-10)


@each
def test_single_precision_over_4096_tokens(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 4096, dtype=jnp.float32)
    expected = recurrence(name, q, k, v, extra)
    assert np.max(np.abs(causal(mechanism, q, k, v, **extra) - expected)) <= 5e-6 * np.max(np.abs(expected))


@each
def test_extreme_strengths_gates_and_keys(name):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 70, dtype=jnp.float32)
    some = jnp.arange(70) % 7
    for n in mechanism.tokens:
        at = some.reshape(-1, *[1] * (extra[n].ndim - 1))
        extra[n] = jnp.where(at == 3, 1e4, jnp.where(at == 5, -1e4, extra[n]))
    close(mechanism, name, q, k, v, extra)
    close(mechanism, name, q, jnp.where(some[:, None] == 2, 0, k), v, extra)
    close(mechanism, name, q, jnp.tile(k[:1], (70, 1)), v, extra)
    close(mechanism, name, q, k[:1] + 1e-6 * k, v, extra)
    close(mechanism, name, q, 1e4 * k, v, extra)


def test_strength_zero_writes_nothing():
    q, k, v, _ = inputs(MECHANISMS["delta"], 70)
    assert not np.any(causal(MECHANISMS["delta"], q, k, v, beta=jnp.full(70, -1e4)))


@pytest.mark.usefixtures("x64")
def test_strength_one_returns_the_last_value_of_a_key():
    equation = Delta(scale_queries=False, epsilon=0.0)
    # Each of four orthonormal keys is written repeatedly and read immediately: no older value remains.
    order = np.random.default_rng(0).integers(0, K, 150)
    _, _, v, _ = inputs(MECHANISMS["delta"], 150)
    k = 3 * jnp.eye(K)[order]
    y = causal(equation, k, k, v, beta=jnp.full(150, 1e4))
    np.testing.assert_allclose(y, v, atol=1e-12)
    # As in the authors' code, scaled queries give half of the value (K = 4), and a key of norm √ε is normalised to √½.
    np.testing.assert_allclose(causal(Delta(epsilon=0.0), k, k, v, beta=jnp.full(150, 1e4)), v / 2, atol=1e-12)
    first = causal(Delta(), 1e-3 * k[:1] / 3, 1e-3 * k[:1] / 3, v[:1], beta=jnp.full(1, 1e4))
    np.testing.assert_allclose(first, v[:1] / 4, atol=1e-12)


@pytest.mark.usefixtures("x64")
@gated
def test_open_gates_equal_the_delta_rule(name):
    q, k, v, extra = inputs(MECHANISMS[name], 70)
    y = causal(MECHANISMS[name], q, k, v, **extra | {"dt": jnp.full_like(extra["dt"], -1e4)})
    np.testing.assert_allclose(y, causal(MECHANISMS["delta"], q, k, v, beta=extra["beta"]), atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_equal_gates_in_all_channels_equal_one_gate_per_token():
    q, k, v, extra = inputs(MECHANISMS["gated-delta"], 70)
    every = {"dt": jnp.tile(extra["dt"][:, None], (1, K)), "shift": jnp.tile(extra["shift"], K)}
    one = causal(MECHANISMS["gated-delta"], q, k, v, **extra)
    np.testing.assert_allclose(causal(MECHANISMS["kda"], q, k, v, **extra | every), one, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_decay_is_applied_before_erasing():
    # The gate halves the first value, and the erasure halves it again. The write of the second value is not gated.
    _, _, v, extra = inputs(MECHANISMS["gated-delta"], 2)
    extra |= {"beta": jnp.array([1e4, 0.0]), "rate": jnp.log(jnp.log(2.0)), "shift": jnp.asarray(np.log(np.e - 1))}
    k = jnp.tile(jnp.eye(K)[:1], (2, 1))
    y = causal(GatedDelta(scale_queries=False, epsilon=0.0), k, k, v, **extra | {"dt": jnp.zeros(2)})
    # α = ½, β = ½: y_2 = (1 − ½) ½ v_1 + ½ v_2.
    np.testing.assert_allclose(y[1], 0.25 * v[0] + 0.5 * v[1], atol=1e-12)


@each
def test_invalid_fields_are_refused(name):
    with pytest.raises(ValueError, match="chunk=0 must be at least 1"):
        type(MECHANISMS[name])(chunk=0)
    with pytest.raises(ValueError, match=r"epsilon=-1e-06 must be 0 or more"):
        type(MECHANISMS[name])(epsilon=-1e-6)
    assert MECHANISMS[name].init_memory(9, K, V, jnp.bfloat16).dtype == jnp.float32
