"""The contract: gradients are correct, finite, and never depend on the future."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms.stick_breaking import StickBreaking
from attnlab.ops.mask import Causal, Edges, KeyPadding
from tests.mechanisms.contract import (
    BLOCKS,
    SMALL,
    N,
    V,
    attend_back,
    causal_back,
    every,
    inputs,
    near,
    packed,
    per_token,
    refusal,
    stateful,
)

pytestmark = pytest.mark.usefixtures("x64")
TARGET = np.random.default_rng(9).normal(size=(N, V))
STRICTLY_PAST = StickBreaking()  # the mechanism whose queries do not see their own key
ALL = {"keep": np.ones(N, bool), "segment": np.zeros(N, np.int32)}


@stateful
@pytest.mark.parametrize("block", BLOCKS)
def test_no_token_has_any_gradient_to_an_earlier_output(name, block):
    mechanism = SMALL[name]
    own = []
    for t in range(N):
        row = np.where(np.arange(N)[:, None] == t, TARGET, 0)
        _, (dq, dk, dv, dextra) = packed(mechanism, row, block=block)
        reached = [dk, dv, *(dextra[n] for n in mechanism.tokens)]
        assert not any(np.any(x[t + 1 :]) for x in reached), "a later token reached an earlier output"
        others = np.delete(dq, t, axis=0) if mechanism.traits.row_independent else dq[t + 1 :]
        assert not np.any(others), "another query reached this output"
        own.append(np.any(dv[t]))
    # Some tokens may have no weight on themselves, where features are zero, but not all tokens.
    assert any(own) != (mechanism == STRICTLY_PAST), "a token reads its own value, unless declared otherwise"


@every
def test_gradients_agree_with_finite_differences(name):
    mechanism = SMALL[name]
    arguments = inputs(mechanism, N)
    rng = np.random.default_rng(1)
    masks = [KeyPadding(np.arange(N) % 3 < 2), Causal(), Edges(rng.random((N, N)) < 0.6)]
    runs = [
        lambda *x, mask=mask: attend_back(mechanism, TARGET, *x, mask)
        for mask in masks
        if refusal(mechanism, mask, N, N) is None
    ]
    if mechanism.traits.decodes:
        runs.append(lambda *x: causal_back(mechanism, TARGET, *x, block=2, **ALL))
    assert runs
    for run in runs:
        _, gradients = run(*arguments)
        for _ in range(3):
            way = jax.tree.map(lambda x: rng.normal(size=x.shape), arguments)
            ahead, behind = (jax.tree.map(lambda x, d, h=h: x + h * d, arguments, way) for h in (1e-6, -1e-6))
            slope = np.sum((run(*ahead)[0] - run(*behind)[0]) * TARGET) / 2e-6
            told = sum(np.sum(g * d) for g, d in zip(*map(jax.tree.leaves, (gradients, way)), strict=True))
            assert abs(slope - told) <= 1e-6 * max(1, abs(told))


def _finite_with(mechanism, change):
    """Checks that values and gradients of every form are finite in float32 after `change` is applied to the inputs."""
    q, k, v, extra = inputs(mechanism, N, dtype=jnp.float32)
    tokens = {n: change(x) if n in per_token(mechanism) else x for n, x in extra.items()}
    target = TARGET.astype(np.float32)
    found = []
    if refusal(mechanism, KeyPadding(np.ones(N, bool)), N, N) is None:
        found.append(attend_back(mechanism, target, change(q), change(k), v, tokens))
    if mechanism.traits.decodes:
        found += [causal_back(mechanism, target, change(q), change(k), v, tokens, block=b, **ALL) for b in BLOCKS]
    assert found
    for y, back in found:
        assert np.isfinite(y).all()
        assert all(np.isfinite(g).all() for g in jax.tree.leaves(back))


@every
def test_extremes_stay_finite(name):
    for scale in (0.0, 1e-30, 1e-10, 1e3, 1e4, -1e4):
        _finite_with(SMALL[name], lambda x, scale=scale: x * np.float32(scale))


@every
def test_small_features_and_closed_gates_keep_finite_gradients(name):
    for shift in (-10.0, -23.0, -30.0, -60.0, -1e4, 1e4):
        _finite_with(SMALL[name], lambda x, shift=shift: x + np.float32(shift))


@every
def test_gradients_in_two_forms_agree(name):
    mechanism = SMALL[name]
    if not mechanism.traits.decodes:
        pytest.skip("has one form")
    _, one = packed(mechanism, TARGET)
    _, other = packed(mechanism, TARGET, block=2)
    near(one, other)
    if refusal(mechanism, Causal(), N, N) is None:
        near(attend_back(mechanism, TARGET, *inputs(mechanism, N), Causal())[1], one)
