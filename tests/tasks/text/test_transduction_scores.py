"""Checks losses and scores of sequence-to-sequence data."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.text.example import Example
from attnlab.data.text.units import Characters
from attnlab.data.text.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base.metrics import WORD_ERROR_RATE, error_rates
from tests.tasks.text.copying import Copier, Seen, copies, problem


def test_loss_of_uniform_scores_is_the_logarithm_of_the_vocabulary(copying):
    batch = copying.batch(0, 0, 8)
    loss, metrics = copying.loss(Copier(0.0), batch, None)
    assert loss == pytest.approx(math.log(7), rel=1e-6)
    assert loss.dtype == jnp.float32
    assert metrics["token_accuracy"] == 0  # the argmax of equal scores is PAD


def test_loss_by_hand():
    parts = copies("ab", "b")
    tiny = problem({"train": parts, "valid": parts, "test": parts}, buckets=1)
    batch = {"source": np.array([[3, 4, 0, 0]]), "target": np.array([[3, 4, END, 0]])}

    def model(source, target, source_keep, target_keep, key=None):
        # Scores of PAD, BEGIN, END, a, b. The rows are right, wrong, uniform, and nonsense at an unscored position.
        return jnp.array([[0, 0, 0, 2.0, 0], [0, 0, 0, 2.0, 0], [0, 0, 0, 0, 0], [jnp.inf, 9, 9, 9, 9]])

    loss, metrics = tiny.loss(model, batch, None)
    total = math.log(4 + math.e**2)
    assert loss == pytest.approx(((total - 2) + total + math.log(5)) / 3, rel=1e-6)
    assert metrics["token_accuracy"] == pytest.approx(1 / 3)


def test_loss_is_the_mean_over_tokens_and_padding_changes_nothing(copying):
    batch = copying.batch(0, 0, 8)
    wide = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in batch.items()}
    empty = {name: np.concatenate([x, np.zeros_like(x)]) for name, x in batch.items()}

    # Scores depend on the given token, so that rows differ.
    def model(source, target, source_keep, target_keep, key=None):
        return 3.0 * jax.nn.one_hot(target, 7)

    loss = copying.loss(model, batch, None)[0]
    for padded in (wide, empty):
        assert copying.loss(model, padded, None)[0] == pytest.approx(float(loss), rel=1e-6)


def test_no_tokens_give_zero_and_not_nan(copying):
    nothing = {"source": np.zeros((2, 4), np.int32), "target": np.zeros((2, 4), np.int32)}
    loss, metrics = copying.loss(Copier(), nothing, None)
    assert loss == 0
    assert metrics["token_accuracy"] == 0


def test_inputs_are_shifted_targets_and_masks(copying):
    batch = copying.batch(0, 0, 4)
    model = Seen(7)
    copying.loss(model, batch, None)
    jax.effects_barrier()
    shown = sorted(model.shown["rows"], key=lambda row: row["source"].tolist())
    order = sorted(range(4), key=lambda n: batch["source"][n].tolist())
    for row, n in zip(shown, order, strict=True):
        target = batch["target"][n]
        assert row["source"].tolist() == batch["source"][n].tolist()
        assert row["target"].tolist() == [BEGIN, *target[:-1].tolist()]
        assert row["source_keep"].tolist() == (batch["source"][n] != PAD).tolist()
        assert row["target_keep"].tolist() == (target != PAD).tolist()


def test_every_example_has_a_key_of_its_own(copying):
    model = Seen(7)
    copying.loss(model, copying.batch(0, 0, 4), jax.random.key(0))
    jax.effects_barrier()
    assert len({int(row["bits"]) for row in model.shown["rows"]}) == 4


def test_loss_is_traceable_and_has_gradients(copying):
    batch = copying.batch(0, 0, 8)

    def value(model, batch):
        return copying.loss(model, batch, None)[0]

    eager, grown = value(Copier(1.0), batch), jax.grad(value)(Copier(1.0), batch)
    assert jax.jit(value)(Copier(1.0), batch) == pytest.approx(float(eager), rel=1e-6)
    assert grown.scale < 0  # a larger scale lowers the loss


def test_a_perfect_model_is_always_right(copying):
    answer = jax.jit(copying.answer)
    answers = [answer(Copier(), batch) for batch in copying.eval_batches("valid")]
    scores = copying.score("valid", answers)
    assert scores == {"exact_match": 1.0, "exact_match.even": 1.0, "exact_match.odd": 1.0}


def test_scores_by_hand(copying):
    batches = copying.eval_batches("valid")
    answers = [{"tokens": batch["target"].copy()} for batch in batches]
    answers[0]["tokens"][:30] = END  # thirty of the 150 even examples have an empty answer
    scores = copying.score("valid", answers)
    assert scores["exact_match"] == pytest.approx(270 / 300)
    assert scores["exact_match.even"] == pytest.approx(120 / 150)
    assert scores["exact_match.odd"] == 1.0


def test_symbols_after_the_end_mark_are_ignored(copying):
    answers = [
        {"tokens": np.where(batch["target"] == PAD, 5, batch["target"])} for batch in copying.eval_batches("test")
    ]
    assert copying.score("test", answers)["exact_match"] == 1.0


def test_too_few_answers_are_refused(copying):
    with pytest.raises(ValueError, match="expected answers to 300 examples of 'valid', got 256"):
        copying.score("valid", [{"tokens": copying.eval_batches("valid")[0]["target"]}])


def test_several_references_count_as_right():
    train = [Example("ab", ("x", "xyx")), Example("a", ("y",))]
    rated = problem(
        {"train": train, "valid": train, "test": train},
        Characters(),
        error_rates,
        (WORD_ERROR_RATE,),
    )
    x, y = 3, 4
    answers = [{"tokens": np.array([[x, y, x, END], [x, END, PAD, PAD]])}]
    assert rated.score("test", answers) == {"word_error_rate": 0.5, "phoneme_error_rate": 1 / 4}
    assert (rated.metric.name, rated.metric.higher) == ("word_error_rate", False)


def test_references_are_compared_as_written():
    decomposed = [Example("a", ("e\u0301",)), Example("b", ("\u00e9",))]
    alike = problem({"train": decomposed, "valid": decomposed, "test": decomposed}, buckets=1)
    (batch,) = alike.eval_batches("test")
    assert alike.score("test", [{"tokens": batch["target"]}]) == {"exact_match": 1.0}


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_label_smoothing_is_distributed_over_all_symbols(copying, smoothing):
    smooth = problem(copying._parts, smoothing=smoothing)
    batch = smooth.batch(0, 0, 4)
    scores = np.random.default_rng(0).normal(size=(batch["target"].shape[1], 7)).astype(np.float32)
    found, _ = smooth.loss(lambda *given, **more: jnp.asarray(scores), batch, None)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    losses = []
    for target in batch["target"]:
        for t, symbol in enumerate(target[target != PAD]):
            wanted = (1 - smoothing) * np.eye(7)[symbol] + smoothing / 7
            losses.append(-(wanted * logs[t]).sum())
    assert found == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_best_answer_of_a_decoder_is_taken():
    from attnlab.decoding import Beam

    parts = copies("ab", "b", "abab")
    tiny = problem({"train": parts, "valid": parts, "test": parts}, buckets=1)
    (batch,) = tiny.eval_batches("test")
    model = Copier(vocabulary=5)
    many = jax.jit(lambda batch: tiny.answers(model, batch, Beam(size=2, best=2)))(batch)
    assert many["tokens"].shape[:2] == (3, 2)
    for decoder in ((Beam(size=2),), ()):
        one = jax.jit(lambda batch, decoder=decoder: tiny.answer(model, batch, *decoder)["tokens"])(batch)
        np.testing.assert_array_equal(one, many["tokens"][:, 0])


def test_reference_likelihoods_equal_teacher_forcing():
    parts = {"train": copies("abcd"), "valid": copies("abcd", "ba"), "test": copies("abc")}
    asked = problem(parts, likelihood=True)
    (batch,) = asked.eval_batches("valid")
    for scale in (0.0, 3.0):
        answer = asked.answer(Copier(scale), batch)
        # The cost of a symbol: of seven logits, the right one is `scale` and the others are zero.
        cost = np.log(np.exp(scale) + 6) - scale
        np.testing.assert_allclose(answer["nats"], [5 * cost, 3 * cost], rtol=1e-5)
        assert asked.score("valid", [answer])["perplexity"] == pytest.approx(np.exp(cost))
    assert "nats" not in problem(parts).answer(Copier(), batch)
