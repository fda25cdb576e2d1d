import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Softmax
from attnlab.modules.block import EncoderLayer, Sizes, Sublayer, climb, stack
from attnlab.modules.dense import Dense, child
from attnlab.modules.embed import Embed
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.position import Position

SIZES = Sizes(width=8, heads=2, feedforward=16, activation="relu", norm="layer", norm_first=True, dropout=0.5)
KEEP = jnp.ones(5, bool)


def layers(count):
    return stack(lambda key: EncoderLayer(key, SIZES, Softmax(), Position()), jax.random.key(0), count)


def test_scanned_layers_are_the_layers_one_after_another():
    several, x = layers(3), jax.random.normal(jax.random.key(1), (5, 8))
    scanned, _ = climb(several, x, lambda layer, x, key: layer(x, KEEP, key), None)
    for n in range(3):
        x, _ = jax.tree.map(lambda leaf, n=n: leaf[n], several)(x, KEEP)
    np.testing.assert_allclose(scanned, x, atol=1e-6)


def test_dropout_needs_a_key_and_differs_by_it():
    several, x = layers(2), jax.random.normal(jax.random.key(1), (5, 8))
    run = lambda key: climb(several, x, lambda layer, x, key: layer(x, KEEP, key), key)[0]
    np.testing.assert_array_equal(run(None), run(None))
    assert np.abs(run(jax.random.key(3)) - run(jax.random.key(4))).max() > 0.01


@pytest.mark.parametrize("first", [True, False])
def test_where_the_norm_stands(first):
    sublayer = Sublayer(Sizes(8, 2, 16, "relu", "layer", first, 0.0))
    x = 3 + jax.random.normal(jax.random.key(1), (5, 8))
    given = []
    y, _ = sublayer(x, lambda x: (given.append(x) or jnp.zeros_like(x), None), None)
    normed = given[0] if first else y
    np.testing.assert_allclose(normed.mean(axis=1), np.zeros(5), atol=1e-5)
    np.testing.assert_array_equal(y if first else given[0], x)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "swiglu"])
def test_every_activation_feeds_forward(activation):
    module = FeedForward(jax.random.key(0), 8, 16, activation, 0.0)
    x = jax.random.normal(jax.random.key(1), (5, 8))
    assert module(x).shape == (5, 8)
    assert (module.gate is not None) == (activation == "swiglu")


def test_a_part_starts_the_same_whatever_else_there_is():
    key = jax.random.key(0)
    np.testing.assert_array_equal(Dense(child(key, "q"), 4, 4).w[...], Dense(child(key, "q"), 4, 4).w[...])
    assert not np.array_equal(jax.random.key_data(child(key, "q")), jax.random.key_data(child(key, "k")))


def test_tied_scores_are_products_with_the_vectors_read():
    embed = Embed(jax.random.key(0), 7, 4)
    vectors = embed(jnp.arange(7), jnp.dtype("float32")) / 2
    x = jax.random.normal(jax.random.key(1), (3, 4))
    np.testing.assert_allclose(embed.attend(x), x @ vectors.T, atol=1e-6)
