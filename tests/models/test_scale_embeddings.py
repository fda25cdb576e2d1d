"""Checks models that scale embeddings by the root of their width, or do not scale them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.lab.study import serialize
from attnlab.models import ConvolutionalLanguage, RecurrentLanguage, Seq2Seq
from attnlab.tasks.base.shapes import Pairs, Tokens

TOKENS, KEEP = jnp.array([3, 4, 5, 4]), jnp.ones(4, bool)
PAIRS, TEXT = Pairs(9, 9, 4, 4, False), Tokens(9, 4)
# A model, the shape of its data, and the width of its embeddings.
CASES = {
    "sutskever": (Seq2Seq(width=4, embedding=3), PAIRS, 3),
    "bahdanau": (Seq2Seq(width=4, embedding=3, attention="bahdanau", cell="gru"), PAIRS, 3),
    "luong": (Seq2Seq(width=4, attention="luong", input_feeding=True), PAIRS, 4),
    "recurrent": (RecurrentLanguage(width=5, layers=1), TEXT, 5),
    "convolutional": (ConvolutionalLanguage(width=5, layers=1), TEXT, 5),
}
every = pytest.mark.parametrize("case", CASES)


def tables(model):
    """Returns the embedding tables of a model."""
    return [getattr(model, name).table for name in ("source", "target", "embed") if hasattr(model, name)]


def scores(model):
    """Returns the teacher-forced logits, and the logits of the first two symbols when decoding."""
    pairs = hasattr(model, "source")
    whole = model(TOKENS, TOKENS, KEEP, KEEP) if pairs else model(TOKENS, KEEP)
    state = model.start(TOKENS, KEEP, 4) if pairs else model.start(4)
    first, state = model.step(state, TOKENS[0])
    return whole, jnp.stack([first, model.step(state, TOKENS[1])[0]])


@every
def test_unscaled_embeddings_are_used_unchanged(case):
    config, shape, width = CASES[case]
    scaled = config.create(jax.random.key(0), shape)
    expected = jax.jit(scores)(scaled)
    plain = replace(config, scale_embeddings=False).create(jax.random.key(0), shape)
    for table, of in zip(tables(plain), tables(scaled), strict=True):
        table[...] = of[...] * np.sqrt(width)
    for found, one in zip(jax.jit(scores)(plain), expected, strict=True):
        np.testing.assert_allclose(found, one, atol=1e-6)
    np.testing.assert_allclose(expected[0][:2], expected[1], atol=1e-6)


@every
def test_unscaled_embeddings_have_small_initial_values(case):
    config, shape, _ = CASES[case]
    wide = replace(shape, **{name: 4000 for name in vars(shape) if "vocabulary" in name})
    for table in tables(replace(config, scale_embeddings=False).create(jax.random.key(0), wide)):
        assert float(table[...].std()) == pytest.approx(0.02, rel=0.05)


@every
def test_older_runs_keep_scaled_embeddings(case):
    config = CASES[case][0]
    assert config.scale_embeddings
    written = serialize.write(config)
    del written["fields"]["scale_embeddings"]
    assert serialize.read(written, type(config)).scale_embeddings
