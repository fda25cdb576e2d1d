import math
from dataclasses import replace
from typing import get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.cost import operations
from attnlab.mechanisms import Softmax
from attnlab.models import Transformer
from attnlab.modules.block import Context, DecoderLayer, EncoderLayer
from attnlab.modules.dense import INITIALISERS, Dense, fold_key, fused_projection
from attnlab.modules.embed import Embed
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.stack import scan_layers, stack_layers
from attnlab.ops.mask import KeyPadding, QueryPadding

SIZES = LayerConfig(width=8, heads=2, feedforward=16, activation="relu", norm="layer", norm_first=True, dropout=0.5)
KEEP = jnp.ones(5, bool)


def layers(count):
    make = lambda: stack_layers([lambda key: EncoderLayer(key, SIZES, Softmax())], jax.random.key(0), count)
    return jax.jit(make)()


@jax.jit
def up(layers, x, key=None, places=None):
    return scan_layers(layers, x, KEEP, key=key, places=places)[0]


def test_scanned_layers_equal_a_loop_over_layers():
    several, x = layers(3), jax.random.normal(jax.random.key(1), (5, 8))
    places = jax.random.normal(jax.random.key(2), (3, 5, 8))
    one = jax.jit(lambda layer, x, p: layer(x, KEEP, place=p)[0])
    np.testing.assert_array_equal(up(several, x), up(several, x, places=0 * places))
    for p in (0 * places, places):
        y = x
        for n in range(3):
            y = one(jax.tree.map(lambda leaf, n=n: leaf[n], several), y, p[n])
        np.testing.assert_allclose(up(several, x, places=p), y, atol=1e-6)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_a_place_is_added_to_the_inputs_of_the_attention_and_not_to_the_residual(kind, parallel):
    x, place = (jax.random.normal(jax.random.key(n), (5, 8)) for n in (1, 2))
    layer = kind(jax.random.key(0), replace(SIZES, feedforward=16 if parallel else 0, parallel=parallel), Softmax())
    y = jax.jit(lambda layer: layer(x, KEEP, place=place)[0])(layer)
    inputs = layer.around_attention.norm(x)
    attend = layer.attention.causal if kind is DecoderLayer else lambda x, keep: layer.attention.attend(x)
    expected = x + attend(inputs + place, KEEP)[0] + (layer.feedforward(inputs, None) if parallel else 0)
    np.testing.assert_allclose(y, expected, atol=1e-6)
    assert np.abs(y - layer(x, KEEP)[0]).max() > 0.01


def test_a_place_reaches_values_for_later_layers():
    x, place = (jax.random.normal(jax.random.key(n), (5, 8)) for n in (1, 2))
    layer = EncoderLayer(jax.random.key(0), SIZES, Softmax())
    inputs = layer.around_attention.norm(x) + place
    np.testing.assert_allclose(layer.values(x, place), layer.attention.values(inputs), atol=1e-6)


def test_dropout_needs_a_key_and_differs_by_it():
    several, x = layers(2), jax.random.normal(jax.random.key(1), (5, 8))
    np.testing.assert_array_equal(up(several, x), up(several, x))
    assert np.abs(up(several, x, jax.random.key(3)) - up(several, x, jax.random.key(4))).max() > 0.01


@pytest.mark.parametrize("first", [True, False])
def test_pre_norm_and_post_norm(first):
    residual = LayerConfig(8, 2, 16, "relu", "layer", first, 0.0).residual()
    x = 3 + jax.random.normal(jax.random.key(1), (5, 8))
    given, y = residual.before(x), residual.after(x, jnp.zeros_like(x), None)
    np.testing.assert_allclose((given if first else y).mean(axis=1), np.zeros(5), atol=1e-5)
    np.testing.assert_array_equal(y if first else given, x)


def test_without_a_feed_forward_width_a_layer_is_its_attention_alone():
    x = jax.random.normal(jax.random.key(1), (5, 8))
    layer = EncoderLayer(jax.random.key(0), replace(SIZES, feedforward=0), Softmax())
    whole = EncoderLayer(jax.random.key(0), SIZES, Softmax())
    normed = layer.around_attention.norm(x)
    expected = x + layer.attention.attend(normed, None, KeyPadding(KEEP) & QueryPadding(KEEP))[0]
    np.testing.assert_allclose(jax.jit(lambda layer: layer(x, KEEP)[0])(layer), expected, atol=1e-6)
    # All other parts of the layer are equal.
    shared = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(whole)}
    for path, leaf in jax.tree.leaves_with_path(layer):
        np.testing.assert_array_equal(leaf, shared[jax.tree_util.keystr(path)])
    assert not any("feedforward" in jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(layer))


def test_a_decoder_layer_takes_a_memory_only_with_cross_attention():
    x, context = (jax.random.normal(jax.random.key(n), (5, 8)) for n in (1, 2))
    both = DecoderLayer(jax.random.key(0), SIZES, Softmax(), Softmax())
    alone = DecoderLayer(jax.random.key(0), SIZES, Softmax())
    run = jax.jit(lambda layer, context: layer(x, KEEP, context=Context(context, KEEP)))
    y, looks = run(both, context)
    assert set(looks) == {"decoder", "cross"}
    assert np.abs(y - run(both, 2 * context)[0]).max() > 1e-3
    assert set(jax.jit(lambda layer: layer(x, KEEP))(alone)[1]) == {"decoder"}
    assert len(jax.tree.leaves(alone)) < len(jax.tree.leaves(both))
    missing = "expected a context, because the layer has cross-attention"
    needless = "expected no context, because the layer has no cross-attention"
    for layer, given, line in ((both, None, missing), (alone, Context(context, KEEP), needless)):
        with pytest.raises(ValueError, match=line):
            layer(x, KEEP, context=given)


def test_a_decoder_layer_needs_no_padding_mask():
    x, context = (jax.random.normal(jax.random.key(n), (5, 8)) for n in (1, 2))
    layer = DecoderLayer(jax.random.key(0), SIZES, Softmax(), Softmax())
    run = jax.jit(lambda layer, keep: layer(x, keep, context=Context(context, KEEP))[0])
    np.testing.assert_allclose(run(layer, None), run(layer, KEEP), atol=1e-6)


SIGMOID = lambda x: 1 / (1 + math.exp(-x))
GELU = lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2
# For each activation, the function and whether a second projection gates the hidden layer.
ACTIVATIONS = {
    "relu": (lambda x: max(x, 0.0), False),
    "gelu": (GELU, False),
    "gelu_tanh": (lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), False),
    "silu": (lambda x: x * SIGMOID(x), False),
    "glu": (SIGMOID, True),
    "reglu": (lambda x: max(x, 0.0), True),
    "geglu": (GELU, True),
    "swiglu": (lambda x: x * SIGMOID(x), True),
}


def test_every_activation_is_tested():
    assert [*ACTIVATIONS] == [*get_args(get_type_hints(Transformer)["activation"])]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_feeds_forward(activation):
    module = FeedForward(jax.random.key(0), 8, 16, activation, 0.0)
    function, gated = ACTIVATIONS[activation]
    x = jax.random.normal(jax.random.key(1), (5, 8))
    through = lambda dense, x: (
        np.asarray(x, np.float64) @ np.asarray(dense.w[...], np.float64) + np.asarray(dense.b[...])
    )
    hidden = np.vectorize(function)(through(module.inner, x))
    if gated:
        hidden = hidden * through(module.gate, x)
    np.testing.assert_allclose(module(x), through(module.outer, hidden), atol=1e-5)
    assert (module.gate is not None) == gated


def test_initial_parameters_of_a_part_do_not_depend_on_other_parts():
    key = jax.random.key(0)
    np.testing.assert_array_equal(Dense(fold_key(key, "q"), 4, 4).w[...], Dense(fold_key(key, "q"), 4, 4).w[...])
    assert not np.array_equal(jax.random.key_data(fold_key(key, "q")), jax.random.key_data(fold_key(key, "k")))


@pytest.mark.parametrize(("name", "deviation"), [("gaussian", 0.02), ("xavier", (2 / 300) ** 0.5), ("kaiming", 0.1)])
def test_initial_weights(name, deviation):
    dense = Dense(jax.random.key(0), 200, 100, False, name)
    assert dense.b is None
    assert float(dense.w[...].std()) == pytest.approx(deviation, rel=0.03)
    assert abs(float(dense.w[...].mean())) < deviation / 50
    assert name in INITIALISERS


def test_bias_and_init_options_reach_every_part():
    sizes = LayerConfig(8, 2, 16, "swiglu", "rms", True, 0.0, biases=False, initialiser="gaussian")
    layer = DecoderLayer(jax.random.key(0), sizes, Softmax(), Softmax())
    shapes = [leaf.shape for leaf in jax.tree.leaves(layer)]
    # Two attentions with four projections each, three projections of the feed-forward layer, and three norms.
    assert len(shapes) == 2 * 4 + 3 + 3
    assert all(float(leaf.std()) < 0.03 for leaf in jax.tree.leaves(layer))


def test_invalid_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="initialiser='zeros' must be one of gaussian, xavier, kaiming"):
        Dense(jax.random.key(0), 4, 4, True, "zeros")
    with pytest.raises(ValueError, match="activation='tanh' must be one of relu, "):
        FeedForward(jax.random.key(0), 4, 4, "tanh", 0.0)
    with pytest.raises(ValueError, match="x has width 3, expected 4"):
        Dense(jax.random.key(0), 4, 4)(jnp.ones((2, 3)))


def test_tied_logits_are_products_with_the_embeddings():
    embed = Embed(jax.random.key(0), 7, 4)
    vectors = embed(jnp.arange(7), jnp.dtype("float32")) / 2
    x = jax.random.normal(jax.random.key(1), (3, 4))
    np.testing.assert_allclose(embed.attend(x), x @ vectors.T, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_fused_projections_are_one_product(bias):
    key, x = jax.random.key(0), jax.random.normal(jax.random.key(1), (3, 4))
    maps = [Dense(fold_key(key, str(n)), 4, n, bias) for n in (2, 5, 1)]
    for n, one in enumerate(maps):
        if one.b is not None:
            one.b[...] = jnp.full(one.b.shape, float(n))
    for y, one in zip(fused_projection(maps, x), maps, strict=True):
        np.testing.assert_allclose(y, one(x), rtol=1e-6, atol=1e-6)
    products = [each for each in operations(lambda x: fused_projection(maps, x), x) if each.name == "dot_general"]
    assert [each.sizes for each in products] == [(1, 3, 4, 8)]
