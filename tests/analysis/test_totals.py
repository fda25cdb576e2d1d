"""Checks the denominators inside a model, by which the weights of linear attention are divided."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.analysis.totals import denominators, has_denominator, undivided_weights
from attnlab.mechanisms import Linear, ShortConvolution, Softmax, weights
from attnlab.mechanisms.position_state import initial_block
from attnlab.mechanisms.window import Local
from attnlab.models import Transformer
from attnlab.modules.position import Rotary
from attnlab.ops.feature import EluPlusOne, Favor, Identity, Relu
from attnlab.ops.mask import Causal
from attnlab.tasks.base.shapes import Pairs
from tests.analysis.filled import filled
from tests.mechanisms.contract import inputs

PAIRS = Pairs(9, 9, 6, 5)
SOURCE, TARGET = np.array([3, 4, 5, 6, 0, 0], np.int32), np.array([1, 4, 5, 0, 0], np.int32)
PAIR = (SOURCE, TARGET, SOURCE != 0, TARGET != 0)


@pytest.mark.parametrize("feature", [Identity(), Relu()])
def test_a_row_s_sum_is_its_denominator(feature):
    mechanism = Linear(feature=feature)
    q, k = map(jnp.asarray, inputs(mechanism, 6)[:2])
    found = np.asarray(undivided_weights(mechanism, q, k, Causal())).sum(axis=1)
    phi, psi = feature.query(q, np.arange(6)).rows, feature.key(k, np.arange(6)).rows
    allowed = np.tril(np.ones((6, 6), bool))
    np.testing.assert_allclose(found, np.where(allowed, phi @ psi.T, 0).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("mechanism", [Softmax(), Local(2, 1), Linear(feature=Favor()), Linear(normalise=False)])
def test_weights_of_mechanisms_without_denominator_are_unchanged(mechanism):
    assert not has_denominator(mechanism)
    q, k, _, extra = inputs(mechanism, 5)
    expected = weights(mechanism, q, k, Causal(), **extra)
    np.testing.assert_array_equal(undivided_weights(mechanism, q, k, Causal(), **extra), expected)


def test_denominators_of_every_attention_that_divides():
    config = Transformer(width=8, heads=2, layers=2, mechanism=Linear(), cross=Softmax())
    model = filled(config, PAIRS)
    found = denominators(config, model, *PAIR)
    assert {name: seen.shape for name, seen in found.items()} == {"encoder": (2, 2, 6), "decoder": (2, 2, 5)}
    # elu + 1 is positive. So are its sums wherever there is a key.
    assert (np.asarray(found["encoder"])[:, :, :4] > 0).all()
    assert set(attention_maps(model, *PAIR)) >= set(found)


def test_denominators_with_rotary_features_are_those_of_unrotated_features():
    feature = EluPlusOne()
    mechanism = Linear().with_rotary(Rotary())
    assert has_denominator(mechanism)
    q, k = map(jnp.asarray, inputs(Linear(), 6)[:2])
    found = undivided_weights(mechanism, q, k, Causal()).sum(axis=1)
    counted = np.tril(feature.query(q, np.arange(6)).rows @ feature.key(k, np.arange(6)).rows.T).sum(axis=1)
    np.testing.assert_allclose(found, counted, rtol=1e-5)


def test_denominators_after_a_short_convolution():
    mechanism = ShortConvolution(Linear(), 2)
    assert has_denominator(mechanism)
    assert not has_denominator(ShortConvolution(Softmax()))
    q, k, _, extra = jax.tree.map(jnp.asarray, inputs(mechanism, 6))
    before = mechanism.convolved(q, k, initial_block(6, None, None, None), extra)
    expected = undivided_weights(Linear(), *before[:2], Causal())
    np.testing.assert_allclose(undivided_weights(mechanism, q, k, Causal(), **extra), expected, rtol=1e-5)


def test_a_model_without_denominators():
    config = Transformer(width=8, heads=2, layers=1)
    assert denominators(config, filled(config, PAIRS), *PAIR) == {}
