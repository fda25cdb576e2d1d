"""The loss of predicted tokens is the cross-entropy of the model's logits."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language, Transformer
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.models.seq2seq import Seq2Seq
from attnlab.ops import entropy
from attnlab.tasks.base.token_prediction import losses_of_logits
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.synthetic.reverse import Reverse

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


@pytest.mark.parametrize("name", [*PAIRS, *LINES])
def test_the_loss_is_the_cross_entropy_of_the_logits(name, monkeypatch):
    # The loss is computed for a few rows at a time.
    monkeypatch.setattr(entropy, "AT_ONCE", 64)
    if name in PAIRS:
        problem, config = Reverse(symbols=5, train_longest=6, longest=6).load(), PAIRS[name]
    else:
        problem, config = Recall(vocabulary=8, pairs=2, queries=2, length=12).load(), LINES[name]
    model = jax.jit(lambda: config.create(jax.random.key(0), problem.shape))()
    problem.smoothing = 0.1
    batch = problem.batch(0, 0, 4)
    inputs, answers, scored = problem.targets(batch)

    def expected(model):
        logits = jax.vmap(model)(*inputs)
        smooth = optax.smooth_labels(jax.nn.one_hot(answers, logits.shape[-1]), problem.smoothing)
        right = jnp.argmax(logits, axis=-1) == answers
        return jnp.mean(optax.softmax_cross_entropy(logits, smooth), where=scored), jnp.mean(right, where=scored)

    loss = lambda model: problem.loss(model, batch, None)
    (ours, metrics), slopes = jax.jit(nnx.value_and_grad(loss, has_aux=True))(model)
    plainly, _ = jax.jit(lambda model: loss(lambda *inputs, key: model(*inputs, key)))(model)  # from logits alone
    np.testing.assert_allclose(plainly, ours, rtol=1e-5)
    (theirs, accuracy), plain = jax.jit(nnx.value_and_grad(expected, has_aux=True))(model)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(list(metrics.values()), [accuracy], rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), slopes, plain)


def test_only_scored_positions_count():
    logits = jnp.log(jnp.array([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]]))
    answers, scored = jnp.array([[0, 0]]), jnp.array([[True, False]])
    losses = losses_of_logits(logits, answers, scored)
    np.testing.assert_allclose(losses.loss, np.log(2), rtol=1e-6)
    np.testing.assert_allclose(losses.nats, [[np.log(2), np.log(10)]], rtol=1e-6)
    np.testing.assert_array_equal(losses.correct, [[1, 0]])


def test_no_scored_position_costs_nothing():
    losses = losses_of_logits(jnp.zeros((1, 2, 3)), jnp.zeros((1, 2), int), jnp.zeros((1, 2), bool))
    assert losses.loss == 0


def test_a_model_needs_no_more_than_its_call():
    """CONTRIBUTING says so."""

    class Bigram(nnx.Module):
        def __init__(self, key, words):
            self.table = nnx.Param(jax.random.normal(key, (words, words)))

        def __call__(self, tokens, keep, *, key):
            return self.table[tokens]

    problem = Recall(vocabulary=8, pairs=2, queries=2, length=12).load()
    model = Bigram(jax.random.key(0), problem.shape.vocabulary)
    loss, found = problem.loss(model, problem.batch(0, 0, 4), None)
    assert loss > 0
    assert 0 <= found["accuracy"] <= 1
    answers = [problem.answer(model, batch) for batch in problem.eval_batches("test", 8)]
    assert 0 <= problem.score("test", answers, 8)["accuracy"] <= 1
    assert problem.format_answer(problem.answer(model, problem.encode_prompt("k0 v1 k1 v2 k0"))) in problem.words
