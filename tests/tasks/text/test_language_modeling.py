"""What a model's own entropy answers is what its scores do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language, Transformer
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.models.seq2seq import Seq2Seq
from attnlab.ops import entropy
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.tasks.text.language_modeling import token_loss

PAIRS = {
    "transformer": Transformer(width=8, heads=2, layers=1, feedforward=8),
    "tied": Transformer(width=8, heads=2, layers=1, feedforward=8, tied=True, mechanism=MECHANISMS["linear"]),
    "bahdanau": Seq2Seq(width=8, attention="bahdanau"),
    "luong": Seq2Seq(width=8, attention="luong", tied=True),
}
LINES = {
    "language": Language(width=8, heads=1, layers=1, feedforward=8, biases=False),
    "recurrent": RecurrentLanguage(width=8, layers=1),
    "convolution": ConvolutionalLanguage(width=8, layers=1, feedforward=8),
}


class Plain(nnx.Module):
    """A model of which no more is known than what it answers."""

    def __init__(self, model):
        self.model = model

    def __call__(self, *inputs, **named):
        return self.model(*inputs, **named)


@pytest.mark.parametrize("name", [*PAIRS, *LINES])
def test_a_model_without_its_own_entropy_is_trained_alike(name, monkeypatch):
    # A few rows at a time.
    monkeypatch.setattr(entropy, "AT_ONCE", 64)
    if name in PAIRS:
        problem, config = Reverse(symbols=5, train_longest=6, longest=6).load(), PAIRS[name]
    else:
        problem, config = Recall(vocabulary=8, pairs=2, queries=2, length=12).load(), LINES[name]
    model = config.create(jax.random.key(0), problem.shape)
    problem.smoothing = 0.1  # of no meaning to recall
    batch = problem.batch(0, 0, 4)
    assert hasattr(model, "token_loss")
    loss = lambda model: problem.loss(model, batch, None)
    (ours, metrics), slopes = nnx.value_and_grad(loss, has_aux=True)(model)
    (theirs, others), plain = nnx.value_and_grad(loss, has_aux=True)(Plain(model))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    jax.tree.map(np.testing.assert_allclose, metrics, others)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), slopes, plain["model"])


def test_only_what_is_asked_counts():
    scores = jnp.log(jnp.array([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]]))
    answers, asked = jnp.array([[0, 0]]), jnp.array([[True, False]])
    loss, nats, right = token_loss(object(), lambda call: scores, answers, asked)
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)
    np.testing.assert_allclose(nats, [[np.log(2), np.log(10)]], rtol=1e-6)
    np.testing.assert_array_equal(right, [[1, 0]])


def test_nothing_asked_costs_nothing():
    scores = jnp.zeros((1, 2, 3))
    loss, _, _ = token_loss(object(), lambda call: scores, jnp.zeros((1, 2), int), jnp.zeros((1, 2), bool))
    assert loss == 0
