"""Checks retention, lightning, ssd and gated-linear against their equations, token by token in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.gated_linear import GatedLinear
from attnlab.mechanisms.lightning import Lightning
from attnlab.mechanisms.retention import Retention
from tests.mechanisms.contract import V, causal, causal_back, inputs

NAMES = ["retention", "lightning", "ssd", "gated-linear"]
each = pytest.mark.parametrize("name", NAMES)


def softplus(x):
    return np.logaddexp(0, x)


def gates(name, K, extra):
    """Returns (the factor of a write, the log gates [T K or 1]) of raw extras, by the equations of the papers."""
    one = {"retention": np.log(1 - 2.0**-6), "lightning": -(2.0**-8)}  # constants of the second of two heads
    if name in one:
        return 1, np.full((1, 1), one[name])
    if name == "ssd":
        step = softplus(extra["dt"] + extra["shift"])[:, None]
        return step, -np.exp(extra["rate"]) * step
    return 1, -softplus(-extra["gate"]) / 16


def recurrence(name, q, k, v, extra, keep=None, segment=None):
    """Computes S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t S_t. Padding is skipped, and segments start from zero."""
    q, k, v, extra = jax.tree.map(lambda x: np.asarray(x, np.float64), (q, k, v, extra))
    write, log_gates = gates(name, k.shape[1], extra)
    k, log_gates = k * write, np.broadcast_to(log_gates, k.shape)
    q = q / np.sqrt(k.shape[1]) if name in ("retention", "gated-linear") else q
    y, state, before = np.zeros(v.shape), 0, None
    for t in range(len(q)):
        if keep is not None and not keep[t]:
            continue
        if segment is not None and segment[t] != before:
            state, before = np.zeros((k.shape[1], v.shape[1])), segment[t]
        state = np.exp(log_gates[t])[:, None] * state + np.outer(k[t], v[t])
        y[t] = q[t] @ state
    return y


def packings(T, count):
    """Yields random padding, and segments whose ids recur."""
    rng = np.random.default_rng(T)
    for _ in range(count):
        yield rng.random(T) < 0.8, np.cumsum(rng.random(T) < 0.05) % 3


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


@pytest.mark.parametrize("name", ["ssd", "gated-linear"])
@pytest.mark.parametrize("raw", [1e4, -1e4])
def test_extreme_gates(name, raw):
    mechanism = MECHANISMS[name]
    q, k, v, extra = inputs(mechanism, 70, dtype=jnp.float32)
    (gate,) = mechanism.tokens
    extra |= {gate: jnp.where(jnp.arange(70).reshape(-1, *[1] * (extra[gate].ndim - 1)) % 7 == 3, raw, extra[gate])}
    y, back = causal_back(mechanism, jnp.ones((70, V), jnp.float32), q, k, v, extra)
    expected = recurrence(name, q, k, v, extra)
    assert np.max(np.abs(y - expected)) <= 5e-6 * np.max(np.abs(expected))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(back))


def test_decays_by_head_are_those_of_the_papers():
    rates = Retention().heads(8)["rate"]
    np.testing.assert_allclose(np.exp(-rates), [1 - 2.0 ** (-5 - h) for h in range(8)], rtol=1e-7)
    # The thirtieth head decays too, although 1 − 2^−34 is 1 in single precision.
    np.testing.assert_allclose(Retention().heads(30)["rate"][-1], 2.0**-34, rtol=1e-6)
    np.testing.assert_allclose(MECHANISMS["lightning"].heads(8)["rate"], 2.0 ** -np.arange(1.0, 9.0), rtol=1e-6)


@pytest.mark.usefixtures("x64")
def test_a_decay_per_head_is_used():
    q, k, v, _ = inputs(Retention(), 5)
    y = causal(Retention(), q, k, v, rate=jnp.asarray(0.5))
    distance = np.arange(5)[:, None] - np.arange(5)
    expected = np.tril(np.asarray(q @ k.T) / 2 * np.exp(-0.5 * np.maximum(distance, 0))) @ v
    np.testing.assert_allclose(y, expected, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_rows_of_the_decay_mask_over_the_root_of_their_sum():
    """Computes the mask pair by pair, as RetNet's code does. Padding forms no pair, and each segment starts anew."""
    rate, T = np.log(2.0), 150
    mechanism = Retention(normalise_decay=True, chunk=16)
    q, k, v, _ = inputs(mechanism, T)
    for keep, segment in packings(T, 3):
        runs, expected = np.cumsum(np.r_[False, np.diff(_filled(segment, keep)) != 0]), np.zeros(v.shape)
        for t in np.flatnonzero(keep):
            past = [s for s in range(t + 1) if keep[s] and runs[s] == runs[t]]
            mask = [0.5 ** (len(past) - 1 - n) for n in range(len(past))]
            for s, fades in zip(past, mask, strict=True):
                expected[t] += fades / np.sqrt(sum(mask)) * (q[t] @ k[s] / 2) * v[s]
        given = {"keep": jnp.asarray(keep), "segment": jnp.asarray(segment, jnp.int32), "rate": jnp.asarray(rate)}
        for block in (None, 7):
            np.testing.assert_allclose(causal(mechanism, q, k, v, block=block, **given), expected, atol=1e-10)
    # The state has one number more than that of the equation alone.
    assert mechanism.cost(9, 9, 4, 6).state_bytes == Retention().cost(9, 9, 4, 6).state_bytes + 4


def _filled(segment, keep):
    """Returns the segments, where padding has the id of the last kept token before it."""
    filled, last = segment.copy(), 0
    for t in range(len(segment)):
        last = segment[t] if keep[t] else last
        filled[t] = last
    return filled


def test_slopes_for_heads_that_are_no_power_of_two():
    """Computed by hand: 2^−2 … 2^−8 for four heads, then 2^−1 and 2^−3 of eight heads. The formula gives 2^(−8h/6)."""
    of_code = [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    np.testing.assert_allclose(Lightning().heads(6)["rate"], of_code, rtol=1e-6)
    found = Lightning(slopes="formula").heads(6)["rate"]
    np.testing.assert_allclose(found, [0.39685026, 0.15749013, 1 / 16, 0.02480314, 0.00984313, 1 / 256], rtol=1e-6)
    other = Lightning()
    object.__setattr__(other, "slopes", "other")  # types are checked in tests only
    with pytest.raises(ValueError, match="slopes='other' must be one of alibi, formula"):
        other.__post_init__()


@pytest.mark.usefixtures("x64")
def test_the_papers_gated_linear_attention_does_not_scale_queries():
    q, k, v, extra = inputs(GatedLinear(), 20)
    found = causal(GatedLinear(scale_queries=False), q, k, v, **extra)
    np.testing.assert_allclose(found, recurrence("gated-linear", 2 * q, k, v, extra), atol=1e-12)


def test_invalid_fields_are_refused():
    with pytest.raises(ValueError, match="chunk=0 must be at least 1"):
        Retention(chunk=0)
    with pytest.raises(ValueError, match=r"temperature=0\.0 must be positive"):
        GatedLinear(temperature=0.0)


def test_initial_steps_and_rates_are_those_of_mamba_2():
    learned = jax.vmap(lambda key: MECHANISMS["ssd"].initial(key, 4, 6))(jax.random.split(jax.random.key(0), 200))
    steps, rates = softplus(learned["shift"]), np.exp(learned["rate"])
    assert 0.9e-3 < steps.min() < steps.max() < 0.11
    assert 1 <= rates.min() < 2 < 15 < rates.max() <= 16.001


def test_initial_rates_of_gated_delta_are_in_0_to_16_and_none_is_the_logarithm_of_0():
    draw = lambda key: MECHANISMS["gated-delta"].initial(key, 4, 6)["rate"]
    rates = np.exp(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 2**16)))
    assert 0 < rates.min() < 0.01
    assert 15.99 < rates.max() <= 16.001
    # Rates are uniform: the counts in all sixteenths agree within five standard errors.
    counts = np.histogram(rates, 16, (0, 16))[0]
    assert np.abs(counts - 2**12).max() < 5 * np.sqrt(2**12)
    # Kimi's rates start from 1, as Mamba-2's do.
    draw = lambda key: MECHANISMS["kda"].initial(key, 4, 6)["rate"]
    assert np.exp(jax.vmap(draw)(jax.random.split(jax.random.key(0), 200))).min() >= 1
