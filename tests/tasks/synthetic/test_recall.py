import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.recall import Recall
from tests.tasks.compiled import answered, lost

ONE = Recall(vocabulary=8, pairs=9, queries=1, valid_examples=30, test_examples=300)
MANY = Recall(vocabulary=20, pairs=4, queries=3, length=16, valid_examples=30, test_examples=300)


@pytest.fixture(scope="module", params=[ONE, MANY], ids=["one", "many"])
def problem(request):
    return request.param.load()


def oracle(tokens, keep, key=None):
    """A model that predicts, at every position, the token after the first occurrence of the same token."""
    first = jnp.argmax(tokens[None, :] == tokens[:, None], axis=1)
    return jnp.eye(21)[jnp.roll(tokens, -1)[first]]


def half(problem):
    return problem.task.vocabulary // 2


def test_shape_and_ids(problem):
    T = problem.task.length or 19
    assert problem.shape == Tokens(problem.task.vocabulary + 1, T)
    batch = problem.batch(0, 0, 6)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "tokens": ((6, T), np.int32), "answers": ((6, T), np.int32), "scored": ((6, T), np.bool_),
    }  # fmt: skip
    assert batch["tokens"].min() >= 0
    assert batch["tokens"].max() <= problem.task.vocabulary


def test_keys_and_values_alternate_and_a_key_keeps_its_value(problem):
    pairs, n = problem.task.pairs, half(problem)
    for row in problem.batch(0, 1, 100)["tokens"]:
        keys, values = row[: 2 * pairs : 2], row[1 : 2 * pairs : 2]
        assert ((keys >= 1) & (keys <= n)).all()
        assert (values > n).all()
        assert len(set(zip(keys.tolist(), values.tolist(), strict=True))) == len(set(keys.tolist())) == min(pairs, n)
        rest = row[2 * pairs :]
        assert (rest > 0).sum() == problem.task.queries
        assert set(rest.tolist()) - {0} <= set(keys.tolist())


def test_every_answer_occurs_before_its_question(problem):
    for batch in (problem.batch(2, 3, 100), *problem.eval_batches("test")):
        for tokens, answers, scored in zip(*(batch[n] for n in ("tokens", "answers", "scored")), strict=True):
            for place in np.flatnonzero(scored):
                before = tokens[:place]
                at = np.flatnonzero(before == tokens[place])
                assert at.size
                assert before[at[0] + 1] == answers[place]


def test_only_training_scores_repeated_keys(problem):
    (*_, batch) = problem.eval_batches("valid")
    np.testing.assert_array_equal(batch["scored"].sum(axis=1), problem.task.queries)
    assert not batch["scored"][:, : 2 * problem.task.pairs].any()
    again = max(0, problem.task.pairs - half(problem))
    np.testing.assert_array_equal(problem.batch(0, 0, 5)["scored"].sum(axis=1), problem.task.queries + again)


def test_accuracy_of_an_oracle_and_of_a_constant(problem):
    answers = answered(problem, oracle, "test")
    assert problem.score("test", answers) == {"accuracy": 1.0}
    _, metrics = lost(problem, oracle, problem.batch(0, 0, 8))
    assert float(metrics["accuracy"]) == 1.0
    constant = lambda tokens, keep, key=None: jnp.eye(21)[jnp.full(tokens.shape, problem.task.vocabulary)]
    answers = answered(problem, constant, "test")
    assert abs(problem.score("test", answers)["accuracy"] - 1 / half(problem)) < 0.12


def test_accuracy_by_distance():
    problem = Recall(
        vocabulary=4, pairs=3, queries=2, length=12, valid_examples=2, test_examples=2, by_distance=True
    ).load()
    # Tokens 1 and 2 are the keys k0 and k1, and 3 and 4 are the values. Token 1 has its value at 0 and 4, token 2 at 2.
    tokens = np.array([[1, 3, 2, 4, 1, 3, 1, 2, 0, 0, 0, 0], [1, 3, 2, 4, 1, 3, 0, 0, 0, 2, 0, 1]], np.int32)
    scored = np.zeros((2, 12), bool)
    scored[[0, 0, 1, 1], [6, 7, 9, 11]] = True
    problem._parts["test"] = {"tokens": tokens, "scored": scored, "answers": np.where(tokens == 1, 3, 4)}
    said = problem._parts["test"]["answers"].copy()
    said[1, 9] = 0
    # The distances are 2, 5, 7 and 7.
    assert problem.score("test", [{"tokens": said}]) == {
        "accuracy": 0.75, "accuracy.2": 1.0, "accuracy.4": pytest.approx(2 / 3),
    }  # fmt: skip
    answers = answered(problem, oracle, "valid")
    assert set(problem.score("valid", answers)) == {"accuracy"}


def test_values_do_not_follow_from_keys_alone(problem):
    """Every sequence has its own dictionary. Over sequences, each key has every value about equally often."""
    tokens = problem.batch(0, 0, 2000)["tokens"]
    first = tokens[tokens[:, 0] == 1][:, 1]
    shares = np.bincount(first - 1 - half(problem), minlength=half(problem)) / len(first)
    assert abs(shares - 1 / half(problem)).max() < 0.1


def test_data_are_functions_of_seed_and_step(problem):
    again = problem.task.load()
    assert again.fingerprint == problem.fingerprint
    for a, b in zip(problem.batch(5, 9, 4).values(), again.batch(5, 9, 4).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    for other in ((5, 8), (4, 9)):
        assert (problem.batch(5, 9, 4)["tokens"] != problem.batch(*other, 4)["tokens"]).any()
    valid, test = (problem.eval_batches(part, 30)[0]["tokens"] for part in ("valid", "test"))
    assert (valid != test).any()
    assert Recall(vocabulary=8, pairs=9, seed=1).load().fingerprint != ONE.load().fingerprint


def test_fill_rows_of_the_last_batch_are_not_scored(problem):
    batches = problem.eval_batches("test")
    assert [batch["tokens"].shape[0] for batch in batches] == [250, 250]
    assert not batches[1]["scored"][50:].any()


def test_prompt_and_answer():
    problem = ONE.load()
    batch = problem.encode_prompt("k1 v3 k2 v0 k1")
    assert problem.tokens(batch)["source"] == ["k1", "v3", "k2", "v0", "k1"]
    assert problem.format_answer(problem.answer(oracle, batch)) == "v3"
    for text in ("", "k1 v9"):
        with pytest.raises(DataError):
            problem.encode_prompt(text)
    longest = problem.shape.length
    problem.encode_prompt("k1 " * longest)
    with pytest.raises(DataError, match=rf"the input has {longest + 1} symbols, but the model reads at most {longest}"):
        problem.encode_prompt("k1 " * (longest + 1))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"vocabulary": 7}, "task.vocabulary=7 must be even"),
        ({"vocabulary": 2}, "task.vocabulary=2 must be a whole number in 4"),
        ({"pairs": 0}, "task.pairs=0 must be a whole number"),
        ({"queries": 64}, "task.queries=64 must be at most task.pairs=63"),
        ({"length": 126}, "task.length=126 must be at least 127"),
        ({"test_examples": 0}, "task.test_examples=0 must be a whole number"),
        ({"seed": 2**32}, "task.seed=4294967296 must be a whole number"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        Recall(**fields)


def test_the_vocabulary_is_stored_with_the_run():
    assert Recall(vocabulary=4, pairs=2).load().vocabulary == {"tokens": ["·", "k0", "k1", "v0", "v1"]}


def test_parts_and_limits_are_checked(problem):
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            problem.eval_batches(part, limit)
