import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.rng import generator
from attnlab.data.synthetic import dyck
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.dyck import Dyck

TASK = Dyck(kinds=3, depth=4, length=20, tested=(20, 50), valid_examples=20, test_examples=150)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def last_opened(tokens, keep, key=None):
    """A model that is certain that the bracket opened last is closed next, even if it is closed already."""
    places = np.arange(len(tokens))
    opened = jnp.where((tokens < 3)[None] & (places[None] <= places[:, None]), places[None], -1).max(axis=1)
    return 9 * jnp.eye(6)[3 + tokens[opened]]


def test_training_predicts_the_next_bracket_and_evaluation_what_closes_the_last(problem):
    assert problem.shape == Tokens(6, 50)
    batch = problem.batch(0, 0, 30)
    assert set(batch) == {"tokens", "answers", "scored"}
    np.testing.assert_array_equal(batch["tokens"][:, 1:], batch["answers"][:, :-1])
    assert batch["scored"].all()
    for batch in problem.eval_batches("test"):
        closed = batch["answers"] >= 3
        np.testing.assert_array_equal(batch["answers"][closed], batch["closing"][closed])
        assert (batch["answers"][batch["closing"] == dyck.NONE] < 3).all()


def test_the_metric_is_the_mean_over_distances(problem):
    batches = problem.eval_batches("test")
    answers = [problem.answer(last_opened, batch) for batch in batches]
    scores, means = problem.score("test", answers), {}
    for length in (20, 50):
        counts = {}
        ids, closing, _ = dyck.draw(generator(0, 2, length), 150, length + 1, 3, 4)
        for row, right in zip(ids[:, :-1].tolist(), closing[:, :-1].tolist(), strict=True):
            stack, last = [], 0
            for t, (bracket, expected) in enumerate(zip(row, right, strict=True)):
                if bracket < 3:
                    stack.append(t)
                    last = bracket
                else:
                    stack.pop()
                if stack:
                    counts.setdefault(t - stack[-1], []).append(last + 3 == expected)
        assert all(counts[0])
        means[length] = np.mean([np.mean(each) for each in counts.values()])
        assert scores[f"closing_accuracy.{length}"] == pytest.approx(means[length])
    assert scores["closing_accuracy"] == pytest.approx(np.mean(list(means.values())))
    assert 0.3 < scores["closing_accuracy"] < 0.7
    assert problem.counted("test") is None


def test_only_more_than_four_fifths_of_the_closing_brackets_count(problem):
    batches = problem.eval_batches("valid")
    sure = [{"tokens": batch["closing"], "share": np.full(batch["closing"].shape, 0.81)} for batch in batches]
    unsure = [{**answer, "share": np.full(answer["share"].shape, 0.8)} for answer in sure]
    assert problem.score("valid", sure) == {"closing_accuracy": 1.0}
    assert problem.score("valid", unsure) == {"closing_accuracy": 0.0}


def test_opening_brackets_take_no_share(problem):
    logits = jnp.log(jnp.array([0.3, 0.2, 0.1, 0.05, 0.3, 0.05]))
    model = lambda tokens, keep, key=None: jnp.tile(logits, (len(tokens), 1))
    answer = problem.answer(model, problem.encode_prompt("(0 (1 1) (2"))
    np.testing.assert_allclose(answer["share"], 0.75, rtol=1e-6)
    assert problem.format_answer(answer) == "1)"
    assert problem.format_answer(problem.answer(last_opened, problem.encode_prompt("(0 (2"))) == "2)"


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [({"kinds": 1}, r"task\.kinds=1"), ({"depth": 0}, r"task\.depth=0"), ({"length": 2}, r"task\.length=2 must")],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        Dyck(**fields)
