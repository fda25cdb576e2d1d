import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.tasks.base.shapes import Pairs, Tokens

from .training import filled, overfitted

SHAPE = Tokens(17, 8)
TOKENS = jnp.array([9, 4, 5, 6, 3, 7, 0])
SMALL = {"width": 6, "feedforward": 5}


@jax.jit
def forms(model):
    """Returns the parallel form for changed padding and for padding in front, and decoding token by token."""
    whole = jax.vmap(lambda tokens: model(tokens, TOKENS != 0))(jnp.stack([TOKENS, TOKENS.at[6].set(7)]))
    step = lambda state, token: model.step(state, token)[::-1]
    turned = jnp.roll(TOKENS, 1)
    return whole, model(turned, turned != 0), jax.lax.scan(step, model.start(len(TOKENS)), TOKENS)[1]


@pytest.mark.parametrize(("kernel", "growth"), [(3, 1), (2, 3), (1, 1)])
def test_token_by_token_equals_the_whole_and_padding_changes_nothing(kernel, growth):
    whole, behind, steps = forms(filled(ConvolutionalLanguage(**SMALL, kernel=kernel, growth=growth), SHAPE))
    assert whole.shape == (2, 7, 17)
    np.testing.assert_allclose(steps[:6], whole[0, :6], atol=1e-5)
    np.testing.assert_array_equal(whole[1, :6], whole[0, :6])
    np.testing.assert_allclose(behind[1:], whole[0, :6], atol=1e-5)


def test_a_layer_is_its_equation():
    model = filled(ConvolutionalLanguage(width=4, layers=1, kernel=2, growth=1, feedforward=3), SHAPE)
    value = lambda x: np.asarray(x[...], np.float64)
    dense = lambda layer, x: x @ value(layer.w) + value(layer.b)
    scaled = lambda norm, x: (x - x.mean()) / np.sqrt(x.var() + 1e-6) * value(norm.scale) + value(norm.shift)
    (layer,), x = model.layers, value(model.embed.table)[np.asarray(TOKENS)] * 2
    normed = [np.zeros(4), *(scaled(layer.norm, row) for row in x)]
    windows = [np.concatenate([before, now]) for before, now in itertools.pairwise(normed)]
    hidden = [row + dense(layer.outer, np.maximum(dense(layer.inner, w), 0)) for row, w in zip(x, windows, strict=True)]
    expected = [dense(model.output, scaled(model.norm, row)) for row in hidden]
    np.testing.assert_allclose(model(TOKENS, jnp.ones(7, bool)), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("layers", "kernel", "growth", "reach"), [(2, 3, 1, 5), (2, 2, 3, 5), (3, 2, 2, 8), (1, 1, 1, 1)]
)
def test_the_receptive_field_has_its_declared_size(layers, kernel, growth, reach):
    config = ConvolutionalLanguage(width=6, feedforward=24, layers=layers, kernel=kernel, growth=growth)
    assert config.receptive_field == reach
    model = filled(config, SHAPE)
    x = jnp.arange(3, 15)
    moved = jax.jit(jax.vmap(lambda n: jnp.abs(model(x.at[n].set(2), x > 0) - model(x, x > 0)).max(axis=1)))
    changed = np.asarray(moved(jnp.arange(12))) > 1e-5  # [the token that is changed, the logits that change]
    back = np.arange(12)[None, :] - np.arange(12)[:, None]
    assert not changed[(back < 0) | (back >= reach)].any()
    assert changed[back == reach - 1].all()


def test_it_overfits_eight_sequences():
    config = ConvolutionalLanguage(width=16, layers=2)
    model = jax.jit(lambda: config.create(jax.random.key(0), SHAPE))()
    answers = jax.random.randint(jax.random.key(2), (8, 5), 3, 9)
    given = jnp.concatenate([jnp.arange(9, 17)[:, None], answers[:, :-1]], axis=1)
    overfitted(model, lambda model: jax.vmap(lambda tokens: model(tokens, jnp.ones(5, bool)))(given), answers)


def test_its_state_holds_the_receptive_field_and_dropout_needs_a_key():
    model = filled(ConvolutionalLanguage(**SMALL, kernel=3, growth=2, dropout=0.5), SHAPE)
    for length in (1, 1000):
        assert [x.shape for x in model.start(length)] == [(2, 6), (4, 6)]
    run = jax.jit(lambda key: model(TOKENS, TOKENS != 0, key))
    assert np.abs(run(jax.random.key(1)) - run(jax.random.key(2))).max() > 1e-3
    np.testing.assert_array_equal(run(None), run(None))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kernel": 0}, "model.kernel=0 must be at least 1"),
        ({"growth": 0}, "model.growth=0 must be at least 1"),
        (
            {"growth": 64, "layers": 8},
            "model.growth=64 with model.layers=8 gives a receptive field of .* tokens, which must be at most",
        ),
        ({"dropout": 1.0}, "model.dropout=1.0 must be"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        ConvolutionalLanguage(**fields)


def test_unknown_values_are_refused():
    config = ConvolutionalLanguage()
    # Bypasses the constructor, whose types are checked in tests but not elsewhere.
    object.__setattr__(config, "dtype", "other")
    with pytest.raises(ValueError, match=r"model\.dtype='other' must be one of float32"):
        config.__post_init__()


def test_the_data_of_another_model_are_refused():
    with pytest.raises(ValueError, match=r"^model=ConvolutionalLanguage needs data with vocabulary, length"):
        ConvolutionalLanguage().create(jax.random.key(0), Pairs(9, 9, 5, 5))
