from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.bigbird import BigBird
from attnlab.mechanisms.longformer import Longformer
from attnlab.mechanisms.reformer import Reformer
from attnlab.mechanisms.strided import Strided
from attnlab.mechanisms.window import Local, LocalP
from attnlab.models import MODELS, Classifier
from attnlab.modules.position import POSITIONS, Position
from attnlab.tasks.base.shapes import Classes, Frames, Image, Tokens

from .kinds import one_of_each
from .training import filled, overfitted

WORDS = Classes(Tokens(12, 6), 3)
LONG = Classes(Tokens(12, 40), 3)
FRAMES = Classes(Frames(5, 6), 3, each=True)
SMALL = {"width": 8, "heads": 2}
TOKENS = np.array([4, 7, 5, 9, 0, 0])
KEEP = TOKENS > 0
scores = jax.jit(lambda model, source, keep: model(source, keep))


def test_it_is_registered():
    assert MODELS["classifier"] == Classifier()


def test_word_order_matters_only_with_positions():
    swapped = TOKENS[[1, 0, 2, 3, 4, 5]]
    for position, same in ((Position(), True), (Classifier().position, False)):
        model = filled(Classifier(position=position, **SMALL), WORDS)
        difference = np.abs(scores(model, TOKENS, KEEP) - scores(model, swapped, KEEP)).max()
        assert difference < 1e-5 if same else difference > 1e-3


@pytest.mark.parametrize("pool", ["mean", "token"])
def test_padding_has_no_effect(pool):
    model = filled(Classifier(pool=pool, **SMALL), WORDS)
    longer = np.where(KEEP, TOKENS, 11)
    np.testing.assert_array_equal(scores(model, TOKENS, KEEP), scores(model, longer, KEEP))
    assert scores(model, TOKENS, KEEP).shape == (3,)
    assert np.abs(scores(model, TOKENS, KEEP) - scores(model, longer, np.ones(6, bool))).max() > 1e-4


@pytest.mark.parametrize("name", POSITIONS)
def test_the_amount_of_padding_has_no_effect(name):
    model = filled(Classifier(pool="token", position=POSITIONS[name], **SMALL), LONG)
    narrow, wide = (scores(model, np.pad(TOKENS[:4], (0, width - 4)), np.arange(width) < 4) for width in (8, 40))
    np.testing.assert_allclose(narrow, wide, rtol=2e-5, atol=2e-6)


SHORTSIGHTED = [Local(8, 8), Local(99, 40), Strided(8), Longformer(8, 8, 0), BigBird(8, 8, 0), LocalP(40), Reformer()]


def small(mechanism):
    """Returns a mechanism with windows and blocks smaller than a sequence, where it has them, and with a length."""
    sizes = {"left": 4, "right": 4, "size": 4, "landmarks": 4, "rank": 4, "block": 8}
    has = {name: size for name, size in sizes.items() if getattr(mechanism, name, None) is not None}
    return replace(mechanism, **has).with_length(41)


def reads_all(mechanism):
    """Returns whether a token reads all words in one layer. Recurrent gates forget distant words."""
    far = mechanism.traits.non_causal and not mechanism.traits.self_only
    return far and small(mechanism).sees_all(41)


@pytest.mark.parametrize("name", one_of_each(reads_all, type))
def test_a_class_token_attends_to_every_word_in_one_layer(name):
    model = filled(Classifier(pool="token", mechanism=small(MECHANISMS[name]), layers=1, **SMALL), LONG)
    words, keep = np.full(40, 4), np.arange(40) < 37
    texts = np.stack([words, *np.where(np.eye(37, 40, dtype=bool), 9, words)])
    found = np.asarray(jax.jit(jax.vmap(model, (0, None)))(texts, keep))
    assert np.abs(found[1:] - found[0]).max(axis=1).min() > 0


@pytest.mark.parametrize("mechanism", SHORTSIGHTED, ids=str)
def test_a_class_token_that_cannot_attend_to_every_word_is_refused(mechanism):
    config = Classifier(pool="token", mechanism=mechanism, **SMALL)
    with pytest.raises(
        ValueError, match=rf"model.pool=token is not .*{type(mechanism).__name__}.* all 40 positions; .*pool=mean"
    ):
        jax.eval_shape(lambda: config.create(jax.random.key(0), LONG))
    # A class per position and mean pooling do not require this.
    for fields, shape in (({"pool": "mean"}, LONG), ({}, FRAMES)):
        jax.eval_shape(lambda config=replace(config, **fields), shape=shape: config.create(jax.random.key(0), shape))


@pytest.mark.parametrize("mechanism", [Local(1, 41), Strided(41), LocalP(41), Longformer(8, 8), BigBird(8, 8)], ids=str)
def test_a_wide_window_or_a_global_class_token_is_accepted(mechanism):
    jax.eval_shape(lambda: Classifier(pool="token", mechanism=mechanism, **SMALL).create(jax.random.key(0), LONG))


def test_empty_inputs_give_finite_outputs_and_gradients():
    model = filled(Classifier(**SMALL), WORDS)
    empty = jnp.zeros(6, bool)
    value, gradient = jax.jit(jax.value_and_grad(lambda m: m(jnp.asarray(TOKENS), empty).sum()))(model)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_one_class_per_frame():
    model = filled(Classifier(pool="token", **SMALL), FRAMES)
    frames = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    found = scores(model, frames, None)
    assert found.shape == (6, 3)
    # Without pooling there is no class token.
    assert model.token is None
    # Positions differ from each other.
    assert np.abs(np.diff(found, axis=0)).max() > 1e-3


@pytest.mark.parametrize("name", one_of_each(lambda mechanism: mechanism.traits.non_causal))
def test_every_bidirectional_mechanism_overfits_a_few_examples(name):
    sources = np.random.default_rng(1).integers(3, 12, (8, 6))
    labels = jnp.arange(8) % 3
    keep = jnp.ones(6, bool)
    config = Classifier(mechanism=MECHANISMS[name].with_length(6), width=16, heads=2)
    model = config.create(jax.random.key(2), WORDS)
    forced = lambda model: jax.vmap(lambda source: model(source, keep))(jnp.asarray(sources))
    overfitted(model, forced, labels)


def test_invalid_fields_are_refused():
    odd = Classifier()
    # Bypasses the constructor, whose types are checked in tests but not elsewhere.
    object.__setattr__(odd, "pool", "max")
    with pytest.raises(ValueError, match=r"model.pool='max' must be one of mean, token$"):
        odd.__post_init__()
    object.__setattr__(odd, "pool", "tokens")
    with pytest.raises(ValueError, match=r"model.pool='tokens' must be one of mean, token; nearest: 'token'"):
        odd.__post_init__()
    with pytest.raises(ValueError, match=r"model.tied=True is not supported by Classifier: classes have no embedding"):
        Classifier(tied=True)
    with pytest.raises(
        ValueError,
        match=r"model.mechanism=Delta.* supports only causal attention.* use for example model.mechanism=softmax$",
    ):
        Classifier(mechanism=MECHANISMS["delta"])
    with pytest.raises(ValueError, match=r"model=Classifier needs sequences, but this task's data are images"):
        Classifier(**SMALL).create(jax.random.key(0), Classes(Image(4, 4, 1), 2))
    with pytest.raises(ValueError, match=r"model=Classifier needs data with source, classes"):
        Classifier(**SMALL).create(jax.random.key(0), Tokens(9, 9))


def test_maps_are_rows_of_weights():
    config = Classifier(**SMALL)
    seen = attention_maps(filled(config, WORDS), TOKENS, KEEP)["encoder"]
    assert seen.shape == (2, 2, 6, 6)
    np.testing.assert_allclose(seen.sum(-1)[:, :, KEEP], 1, rtol=1e-5)
    assert not np.any(seen[..., ~KEEP])


def test_it_computes_in_its_dtype_with_float32_outputs():
    found = scores(filled(Classifier(dtype="bfloat16", **SMALL), WORDS), TOKENS, KEEP)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
