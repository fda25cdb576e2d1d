import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import maps
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import MODELS, Classifier
from attnlab.modules.position import Position
from attnlab.tasks.base import Classes, Frames, Image, Tokens

from .kinds import one_of_each
from .training import filled, overfitted

WORDS = Classes(Tokens(12, 6), 3)
FRAMES = Classes(Frames(5, 6), 3, each=True)
SMALL = {"width": 8, "heads": 2}
TOKENS = np.array([4, 7, 5, 9, 0, 0])
KEEP = TOKENS > 0
scores = jax.jit(lambda model, source, keep: model(source, keep))


def test_it_is_one_of_the_models():
    assert MODELS["classifier"] == Classifier()


def test_the_order_of_words_counts_only_where_it_is_told():
    swapped = TOKENS[[1, 0, 2, 3, 4, 5]]
    for position, same in ((Position(), True), (Classifier().position, False)):
        model = filled(Classifier(position=position, **SMALL), WORDS)
        difference = np.abs(scores(model, TOKENS, KEEP) - scores(model, swapped, KEEP)).max()
        assert difference < 1e-5 if same else difference > 1e-3


@pytest.mark.parametrize("pool", ["mean", "token"])
def test_padding_is_not_read(pool):
    model = filled(Classifier(pool=pool, **SMALL), WORDS)
    longer = np.where(KEEP, TOKENS, 11)
    np.testing.assert_array_equal(scores(model, TOKENS, KEEP), scores(model, longer, KEEP))
    assert scores(model, TOKENS, KEEP).shape == (3,)
    assert np.abs(scores(model, TOKENS, KEEP) - scores(model, longer, np.ones(6, bool))).max() > 1e-4


def test_nothing_kept_is_a_finite_answer_with_finite_gradient():
    model = filled(Classifier(**SMALL), WORDS)
    empty = jnp.zeros(6, bool)
    value, gradient = jax.jit(jax.value_and_grad(lambda m: m(jnp.asarray(TOKENS), empty).sum()))(model)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_a_class_for_each_frame():
    model = filled(Classifier(pool="token", **SMALL), FRAMES)
    frames = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    found = scores(model, frames, None)
    assert found.shape == (6, 3)
    # No token: nothing is pooled.
    assert model.token is None
    # Each by its own place.
    assert np.abs(np.diff(found, axis=0)).max() > 1e-3


@pytest.mark.parametrize("name", one_of_each(lambda mechanism: mechanism.attends))
def test_any_mechanism_that_sees_both_sides_sorts_by_heart(name):
    sources = np.random.default_rng(1).integers(3, 12, (8, 6))
    labels = jnp.arange(8) % 3
    keep = jnp.ones(6, bool)
    config = Classifier(mechanism=MECHANISMS[name].sized(6), width=16, heads=2)
    model = config.create(jax.random.key(2), WORDS)
    forced = lambda model: jax.vmap(lambda source: model(source, keep))(jnp.asarray(sources))
    overfitted(model, forced, labels)


def test_what_cannot_be_is_refused():
    odd = Classifier()
    # Set past the constructor, whose types are checked here but not where it is used.
    object.__setattr__(odd, "pool", "max")
    with pytest.raises(ValueError, match=r"model.pool='max' must be one of mean, token"):
        odd.__post_init__()
    with pytest.raises(ValueError, match=r"model.tied=True: classes have no embedding for Classifier to score against"):
        Classifier(tied=True)
    with pytest.raises(ValueError, match=r"reads the past only"):
        Classifier(mechanism=MECHANISMS["delta"])
    with pytest.raises(ValueError, match=r"model=Classifier reads sequences, and this task's data are images"):
        Classifier(**SMALL).create(jax.random.key(0), Classes(Image(4, 4, 1), 2))
    with pytest.raises(ValueError, match=r"model=Classifier is built for source, classes"):
        Classifier(**SMALL).create(jax.random.key(0), Tokens(9, 9))


def test_maps_are_rows_of_weights():
    config = Classifier(**SMALL)
    seen = maps(config, filled(config, WORDS), WORDS, TOKENS, KEEP)["encoder"]
    assert seen.shape == (2, 2, 6, 6)
    np.testing.assert_allclose(seen.sum(-1)[:, :, KEEP], 1, rtol=1e-5)
    assert not np.any(seen[..., ~KEEP])


def test_the_mechanism_alone_is_swapped():
    watched = Classifier(**SMALL).watched(lambda mechanism: Linear())
    assert watched.mechanism == Linear()
    assert Classifier(**SMALL).mechanism == Softmax()


def test_it_computes_in_its_dtype_and_answers_in_float32():
    found = scores(filled(Classifier(dtype="bfloat16", **SMALL), WORDS), TOKENS, KEEP)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
