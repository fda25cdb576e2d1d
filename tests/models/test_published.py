"""Checks published language models, built from the parts of `Language`: decoding equals the parallel form."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.cost import parameters
from attnlab.lab.study import serialize
from attnlab.models import MODELS, Language
from attnlab.models.published import PUBLISHED
from attnlab.tasks.base.shapes import Tokens
from tests.modules.test_multi_head import randomised

TOKENS = jnp.arange(9) % 5
published = pytest.mark.parametrize("name", PUBLISHED)


def shapes(config):
    return jax.eval_shape(lambda: config.create(jax.random.key(0), Tokens(5, 12)))


@pytest.mark.slow
@published
def test_decoding_step_by_step_equals_the_whole_and_every_parameter_learns(name, x64):
    config = replace(PUBLISHED[name], dtype="float64")
    model = randomised(config.create(jax.random.key(0), Tokens(5, 12)))
    state, found = model.start(len(TOKENS)), []
    step = jax.jit(lambda model, state, token: model.step(state, token))
    for token in TOKENS:
        logits, state = step(model, state, token)
        found.append(logits)
    np.testing.assert_allclose(jnp.stack(found), jax.jit(lambda m: m(TOKENS))(model), atol=1e-9)
    slopes = jax.jit(jax.grad(lambda model: jnp.sum(model(TOKENS) ** 2)))(model)
    for path, slope in jax.tree_util.tree_leaves_with_path(slopes):
        assert np.isfinite(slope).all(), path
        assert np.any(np.asarray(slope)), path


@published
def test_it_is_registered_and_saved_with_what_was_changed(name):
    assert MODELS[name] == PUBLISHED[name]
    assert isinstance(MODELS[name], Language)
    changed = replace(PUBLISHED[name], width=128)
    assert serialize.read(serialize.write(changed), type(changed)) == changed


D, H, K = 64, 4, 16
SWIGLU = 3 * D * 176  # 8/3 · 64, rounded up to a multiple of 8


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("transformer++", (2 * D * D + 2 * D * 2 * K, SWIGLU)),
        ("gated-softmax", (3 * D * D + 2 * D * 2 * K + 2 * K, SWIGLU)),
        ("retnet", (2 * D * D + 3 * D * 2 * D + 2 * 2 * D, 2 * D * 2 * D)),
        # q and k of half the width, gates of rank 16 with a bias, and a scale of the norm.
        ("gla", (2 * D * 32 + 3 * D * D + D * 16 + 16 * 32 + 32 + K, SWIGLU)),
        ("deltanet", (4 * D * D + D * H + 4 * 3 * D + K, SWIGLU)),
        ("gated-deltanet", (2 * D * D + 3 * D * 2 * D + 2 * D * H + 2 * H + 4 * 4 * D + 2 * K, SWIGLU)),
        # Query and key of one head and 8 values of 16, then steps, rates and shifts of 8 heads, a convolution with a
        # bias, and a skip.
        ("mamba-2", (2 * D * 16 + 3 * D * 128 + D * 8 + 2 * 8 + 5 * 160 + 128 + 8, 0)),
    ],
)
def test_a_layer_has_as_many_parameters_as_its_equations(name, layer):
    stacked = shapes(PUBLISHED[name]).decoder
    assert (parameters(stacked.attention), parameters(stacked.feedforward)) == tuple(2 * count for count in layer)


def test_hybrids_have_the_layers_of_their_pattern():
    for name, linear in (("qwen3-next", "GatedDelta"), ("kimi-linear", "Kda")):
        period = shapes(replace(PUBLISHED[name], layers=8)).decoder.layers
        assert [type(layer.attention.mechanism).__name__ for layer in period] == [linear] * 3 + ["Softmax"]
