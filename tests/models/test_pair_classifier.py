import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Linear
from attnlab.models.classifier import Classifier
from attnlab.models.pair_classifier import PairClassifier
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.text.documents import PairOfDocuments

from .training import filled, overfitted

SHAPE = PairOfDocuments(Tokens(9, 5), 2)
SMALL = {"width": 8, "heads": 2, "layers": 1}
PAIR = jnp.array([[3, 1, 4, 0, 0], [1, 5, 0, 0, 0]], jnp.int32)


@jax.jit
def scores(model, pair, keep):
    return model(pair, keep)


def test_both_documents_share_an_encoder_and_the_head_equals_the_published_equation():
    """Computes a layer of [a ; b ; a∘b ; a−b]."""
    model = filled(PairClassifier(**SMALL), SHAPE)
    a, b = (np.asarray(model.tower(PAIR[n], PAIR[n] != 0), np.float64) for n in (0, 1))
    dense = lambda layer, x: x @ np.asarray(layer.w[...], np.float64) + np.asarray(layer.b[...])
    expected = dense(model.head, np.maximum(dense(model.hidden, np.concatenate([a, b, a * b, a - b])), 0))
    np.testing.assert_allclose(scores(model, PAIR, PAIR != 0), expected, atol=1e-5)


@pytest.mark.parametrize("pool", ["mean", "token"])
def test_padding_has_no_effect_and_word_order_has(pool):
    model = filled(PairClassifier(**SMALL, pool=pool, mechanism=Linear()), SHAPE)
    one = scores(model, PAIR, PAIR != 0)
    np.testing.assert_allclose(scores(model, PAIR.at[1, 3].set(7), PAIR != 0), one, atol=1e-5)
    assert np.abs(scores(model, PAIR[::-1], (PAIR != 0)[::-1]) - one).max() > 1e-3


def test_it_overfits_a_few_pairs():
    random = np.random.default_rng(0)
    first, other = random.integers(1, 9, (2, 8, 5)).astype(np.int32)
    answers = jnp.arange(8, dtype=jnp.int32) % 2
    pairs = jnp.stack([first, np.where(answers[:, None] == 1, first[:, ::-1], other)], axis=1)
    config = PairClassifier(width=16, heads=2, layers=1)
    model = jax.jit(lambda: config.create(jax.random.key(0), SHAPE))()
    overfitted(model, lambda model: jax.vmap(model)(pairs), answers)


def test_dropout_needs_a_key():
    model = filled(PairClassifier(**SMALL, dropout=0.5), SHAPE)
    run = jax.jit(lambda key: model(PAIR, PAIR != 0, key))
    # The key checker treats all keys of a batch that a scan reads as used.
    with jax.debug_key_reuse(False):
        assert np.abs(run(jax.random.key(1)) - run(jax.random.key(2))).max() > 1e-3
    np.testing.assert_array_equal(run(None), run(None))


def test_the_data_of_another_model_are_refused():
    with pytest.raises(
        ValueError, match=r"^model=PairClassifier needs data with document, classes, but this task's data have"
    ):
        PairClassifier().create(jax.random.key(0), Classes(Tokens(9, 5), 2))
    with pytest.raises(ValueError, match=r"^model=Classifier needs data with source, classes"):
        Classifier().create(jax.random.key(0), SHAPE)
