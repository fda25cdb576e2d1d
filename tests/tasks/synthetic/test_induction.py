import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.induction import Induction

TASK = Induction(length=12, tested=(12, 5, 30), valid_examples=20, test_examples=150)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def oracle(tokens, keep, key=None):
    """A model that predicts the token that follows the first occurrence of the last token."""
    first = jnp.argmax(tokens == tokens[-1])
    return jnp.eye(16)[jnp.full(tokens.shape, tokens[first + 1])]


def test_a_trigger_occurs_once_and_last_and_its_successor_is_the_answer(problem):
    assert problem.shape == Tokens(16, 30)
    batch = problem.batch(0, 0, 200)
    tokens, answers, scored = (batch[name] for name in ("tokens", "answers", "scored"))
    assert tokens.shape == (200, 12)
    assert tokens.dtype == answers.dtype == np.int32
    assert (tokens[:, -1] == 0).all()
    assert ((tokens == 0).sum(axis=1) == 2).all()
    places = np.argmax(tokens == 0, axis=1)
    assert set(places.tolist()) == set(range(10))
    np.testing.assert_array_equal(answers[:, -1], tokens[np.arange(200), places + 1])
    assert (scored.sum(axis=1) == 1).all()
    assert scored[:, -1].all()


def test_batches_are_a_function_of_seed_and_step(problem):
    again = TASK.load()
    np.testing.assert_array_equal(problem.batch(1, 2, 4)["tokens"], again.batch(1, 2, 4)["tokens"])
    for other in (problem.batch(1, 3, 4), problem.batch(2, 2, 4)):
        assert not np.array_equal(problem.batch(1, 2, 4)["tokens"], other["tokens"])
    assert again.fingerprint == problem.fingerprint != Induction(length=12, tested=(12,), seed=1).load().fingerprint


def test_the_test_is_at_every_length_and_validation_at_that_of_training(problem):
    assert [batch["tokens"].shape for batch in problem.eval_batches("test")] == [
        (128, 12), (128, 12), (128, 5), (128, 5), (128, 30), (128, 30),
    ]  # fmt: skip
    assert [batch["tokens"].shape for batch in problem.eval_batches("valid")] == [(20, 12)]
    assert [len(batch["tokens"]) for batch in problem.eval_batches("test", 7)] == [7, 7, 7]
    for part in ("valid", "test"):
        answers = [problem.answer(oracle, batch) for batch in problem.eval_batches(part)]
        assert set(problem.score(part, answers).values()) == {1.0}
    # Each length is scored from its own answers.
    mine = [problem.answer(oracle, batch) for batch in problem.eval_batches("test")]
    mine[2:4] = [{"tokens": np.full((128, 5), 99)}] * 2
    assert problem.score("test", mine) == {
        "accuracy": pytest.approx(2 / 3), "accuracy.12": 1.0, "accuracy.5": 0.0, "accuracy.30": 1.0,
    }  # fmt: skip


def test_prompt_is_symbols(problem):
    batch = problem.encode_prompt("t3 ! t7 t2 !")
    assert problem.format_answer(problem.answer(oracle, batch)) == "t7"
    with pytest.raises(DataError, match="never seen"):
        problem.encode_prompt("t16 !")


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"vocabulary": 1}, r"task\.vocabulary=1"),
        ({"length": 2}, r"task\.length=2"),
        ({"tested": ()}, r"task\.tested=\(\) must list"),
        ({"tested": (2,)}, r"task\.tested=\(2,\) must list"),
        ({"tested": (9, 9)}, "twice"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        Induction(**fields)
