"""Checks that a model computes the same for a sequence without padding, with and without a mask."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, ShortConvolution
from attnlab.models import Language
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.tasks.base.shapes import Tokens

MODELS = {
    "attention": Language(width=8, heads=2, layers=2),
    "behind a convolution": Language(width=8, heads=2, layers=2, mechanism=ShortConvolution(MECHANISMS["gated-delta"])),
    "gru": RecurrentLanguage(width=8),
    "lstm": RecurrentLanguage(width=8, cell="lstm"),
    "convolution": ConvolutionalLanguage(width=8, layers=2),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_padding_equals_all_tokens_kept(name):
    model = MODELS[name].create(jax.random.key(0), Tokens(7, 9))
    tokens = jnp.arange(9, dtype=jnp.int32) % 7

    @jax.jit
    def answers(model, keep):
        scored = lambda model: jnp.sum(jnp.sin(model(tokens, keep)))
        return model(tokens, keep), jax.grad(scored)(model)

    found, wanted = answers(model, None), answers(model, jnp.ones(9, bool))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
