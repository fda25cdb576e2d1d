import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.mechanisms import Linear
from attnlab.models.bert import Bert
from attnlab.tasks.base.shapes import Classes, Frames, Tokens

from .training import filled

SHAPE = Classes(Tokens(17, 8), 3)
TOKENS, KEEP = jnp.array([9, 4, 5, 6, 0]), jnp.arange(5) < 4
PLACES = jnp.array([2, 0, 2])


def made(**fields):
    return filled(Bert(**{"width": 8, "heads": 2, "layers": 1, **fields}), SHAPE)


@jax.jit
def both(model, tokens, key):
    keys = (None, None) if key is None else jax.random.split(key)
    return model(tokens, KEEP, key=keys[0]), model.fill(tokens, KEEP, PLACES, keys[1])


@pytest.mark.parametrize("fields", [{}, {"pool": "mean", "mechanism": Linear()}], ids=["token", "mean"])
def test_it_classifies_and_predicts_masked_words_without_effect_of_padding(fields):
    model = made(**fields)
    classes, words = both(model, TOKENS, None)
    assert classes.shape == (3,)
    assert words.shape == (3, 17)
    for one, other in zip((classes, words), both(model, TOKENS.at[4].set(7), None), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    # PLACES contains one position twice and another one once.
    np.testing.assert_allclose(words[0], words[2], atol=1e-6)
    assert np.abs(words[0] - words[1]).max() > 1e-3
    # Attention has both directions: a word affects the positions before and after it.
    for at in (0, 3):
        assert np.abs(both(model, TOKENS.at[at].set(8), None)[1][0] - words[0]).max() > 1e-4


@pytest.mark.parametrize("tied", [True, False])
def test_logits_of_words_may_be_tied_to_embeddings(tied):
    model = made(tied=tied)
    words = both(model, TOKENS, None)[1]
    table, offset = (model.input_layer if tied else model.words).table[...], model.offset[...]
    # With enough words, the logits determine the vector from which they were computed.
    vector = np.linalg.lstsq(table, words[0] - offset, rcond=None)[0]
    np.testing.assert_allclose(table @ vector + offset, words[0], atol=1e-4)


def test_dropout_needs_a_key():
    model = made(dropout=0.5)
    one, other = (both(model, TOKENS, jax.random.key(n)) for n in (1, 2))
    assert all(np.abs(a - b).max() > 1e-3 for a, b in zip(one, other, strict=True))


def test_its_map_has_a_row_for_the_class_token():
    config = Bert(width=8, heads=2, layers=1)
    seen = attention_maps(filled(config, SHAPE), TOKENS, KEEP)["encoder"]
    assert seen.shape == (1, 2, 6, 6)
    np.testing.assert_allclose(seen[0, :, 0].sum(axis=1), 1, atol=1e-5)
    # The class token is before the four words. The padding after them is masked.
    assert seen[..., :5, :5].min() > 0
    assert not np.any(seen[..., 5])


def test_a_position_belongs_to_the_same_word_with_and_without_class_token():
    for pool in ("token", "mean"):
        model = made(pool=pool)
        # These layers add nothing, so each vector remains the embedding of its word.
        model.encoder.layers = jax.tree.map(jnp.zeros_like, model.encoder.layers)
        words = jax.jit(lambda model: model.fill(TOKENS, KEEP, jnp.arange(4)))(model)
        other = jax.jit(lambda model: model.fill(TOKENS.at[2].set(8), KEEP, jnp.arange(4)))(model)
        np.testing.assert_array_equal(np.abs(words - other).max(axis=1) > 1e-4, np.arange(4) == 2)


def test_other_data_are_refused():
    with pytest.raises(ValueError, match=r"model=Bert needs data with vocabulary, length, .* have features, length"):
        Bert().create(jax.random.key(0), Classes(Frames(4, 8), 3))
    with pytest.raises(ValueError, match=r"model=Bert needs data with source, classes"):
        Bert().create(jax.random.key(0), Tokens(17, 8))


def test_logits_of_words_by_hand():
    """Computes norm(gelu(norm(E[w] √D + p) W + b)) Eᵀ + offset number by number, for layers that add nothing."""
    model = made(pool="mean")
    model.encoder.layers = jax.tree.map(jnp.zeros_like, model.encoder.layers)
    array = lambda x: np.asarray(x[...], np.float64)

    def normalised(x, norm):
        away = x - sum(x) / 8
        return away / math.sqrt(sum(away**2) / 8) * array(norm.scale) + array(norm.shift)

    table, places = array(model.input_layer.table), array(model.encoder.position.vectors)
    expected = []
    for place in PLACES.tolist():
        x = normalised(table[TOKENS[place]] * math.sqrt(8) + places[place], model.encoder.encoded)
        hidden = x @ array(model.inner.w) + array(model.inner.b)
        active = np.array([h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in hidden])
        expected.append(table @ normalised(active, model.norm) + array(model.offset))
    np.testing.assert_allclose(both(model, TOKENS, None)[1], expected, rtol=1e-4, atol=1e-4)


def test_places_outside_the_sentence_are_nan():
    model = made()
    words = model.fill(TOKENS, KEEP, jnp.array([4, 5, -1]))
    assert np.isfinite(words[0]).all()
    assert np.isnan(words[1:]).all()
