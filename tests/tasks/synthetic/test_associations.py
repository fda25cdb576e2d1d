import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.synthetic.associations import Associations, AssociationShape
from tests.tasks.compiled import answered, lost

ONCE = Associations(keys=7, examined=25)
TWICE = Associations(keys=7, length=14, examined=25, examined_length=9)


@pytest.fixture(scope="module", params=[ONCE, TWICE], ids=["once", "twice"])
def problem(request):
    return request.param.load()


def told(keys, values):
    """Returns the associations of a sequence. Later values overwrite earlier ones."""
    return dict(zip(np.asarray(keys).tolist(), np.asarray(values).tolist(), strict=True))


def oracle(keys, values, queries, key=None):
    """A model that returns the one-hot vector of the last value of each query."""
    last = keys.shape[0] - 1 - jnp.argmax((keys[None, :] == queries[:, None])[:, ::-1], axis=1)
    return jnp.eye(7)[values[last]]


def nobody(keys, values, queries, key=None):
    return jnp.zeros((queries.shape[0], 7))


def test_shapes_and_ids(problem):
    batch = problem.batch(0, 0, 5)
    T = problem.task.length or 7
    assert problem.shape == AssociationShape(7, 7, T)
    assert {name: x.shape for name, x in batch.items()} == {
        "keys": (5, T), "values": (5, T), "queries": (5, 1), "answers": (5, 1), "scored": (5, 1),
    }  # fmt: skip
    for name in ("keys", "values", "queries", "answers"):
        assert batch[name].dtype == np.int32
        assert batch[name].min() >= 0
        assert batch[name].max() < 7


def test_without_length_every_key_and_value_occurs_once():
    batch = ONCE.load().batch(3, 4, 50)
    for name in ("keys", "values"):
        np.testing.assert_array_equal(np.sort(batch[name], axis=1), np.tile(np.arange(7), (50, 1)))
    assert len({tuple(row) for row in batch["keys"]}) > 40
    assert (batch["keys"] != batch["values"]).any()


def test_the_answer_is_the_last_value_of_the_key(problem):
    batch = problem.batch(1, 2, 200)
    for keys, values, (query,), (answer,) in zip(
        *(batch[n] for n in ("keys", "values", "queries", "answers")), strict=True
    ):
        assert told(keys, values)[query] == answer
    for batch in problem.eval_batches("test"):
        for keys, values, queries, answers, scored in zip(*batch.values(), strict=True):
            known = told(keys, values)
            for query, answer, counts in zip(queries, answers, scored, strict=True):
                assert not counts or known[query] == answer
                assert counts <= (query in known)


def test_with_length_values_are_overwritten_and_keys_queried_as_often_as_they_occur():
    batch = TWICE.load().batch(0, 0, 4000)
    first = np.array([values[np.flatnonzero(keys == q)[0]] for keys, values, (q,) in
                      zip(batch["keys"], batch["values"], batch["queries"], strict=True)])  # fmt: skip
    assert 0.2 < np.mean(first != batch["answers"][:, 0]) < 0.8
    counts = np.mean([np.sum(keys == q) for keys, (q,) in zip(batch["keys"], batch["queries"], strict=True)])
    # Queries are drawn by position, not by key. For uniform keys, a queried key occurs 1 + 13/7 times, not 14/7 times.
    assert abs(counts - (1 + 13 / 7)) < 0.1


def test_evaluation_queries_every_key_once(problem):
    batches = problem.eval_batches("valid")
    assert [batch["keys"].shape[0] for batch in batches] == [20, 20]
    assert batches[0]["keys"].shape[1] == (problem.task.examined_length or 7)
    scored = np.concatenate([batch["scored"] for batch in batches])
    keys = np.concatenate([batch["keys"] for batch in batches])
    np.testing.assert_array_equal(scored[:25].sum(axis=1), [len(set(row)) for row in keys[:25].tolist()])
    assert not scored[25:].any()


def test_loss_is_0_for_an_oracle_and_half_for_zeros(problem):
    for model, loss, accuracy in ((oracle, 0.0, 1.0), (nobody, 0.5, None)):
        answers = answered(problem, model, "test")
        score = problem.score("test", answers)
        assert score["loss"] == pytest.approx(loss, abs=1e-7)
        value, _ = lost(problem, model, problem.batch(0, 0, 6))
        assert float(value) == pytest.approx(loss, abs=1e-6)
        assert accuracy is None or score["accuracy"] == accuracy


def test_the_loss_is_half_the_squared_distance():
    v = jnp.array([[0.5, 0.25, -1.0, 0.0, 0.0, 0.0, 0.0]])
    problem = ONCE.load()
    batch = problem.encode_prompt("0:2 3:1 0?")
    value, _ = problem.loss(lambda *given, key: v, batch, None)
    expected = 0.5 * np.sum((np.asarray(v)[0] - np.eye(7)[2]) ** 2)
    assert float(value) == pytest.approx(expected, rel=1e-6)


def test_data_are_functions_of_seed_and_step(problem):
    again = problem.task.load()
    assert again.fingerprint == problem.fingerprint
    for a, b in zip(problem.batch(5, 9, 4).values(), again.batch(5, 9, 4).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    for other in ((5, 8), (4, 9)):
        assert (problem.batch(5, 9, 4)["keys"] != problem.batch(*other, 4)["keys"]).any()
    valid, test = (problem.eval_batches(part)[0]["keys"] for part in ("valid", "test"))
    assert (valid != test).any()
    np.testing.assert_array_equal(problem.eval_batches("test", 3)[0]["keys"], test[:3])
    np.testing.assert_array_equal(
        problem.eval_batches("test", 3)[0]["values"], problem.eval_batches("test")[0]["values"][:3]
    )


def test_other_tasks_are_other_data():
    tasks = (ONCE, TWICE, Associations(keys=7, examined=25, seed=1), Associations(keys=8, examined=25))
    assert len({task.load().fingerprint for task in tasks}) == len(tasks)


def test_prompt_and_answer():
    problem = TWICE.load()
    batch = problem.encode_prompt("0:2 3:1 0:5 0?")
    assert batch["answers"].tolist() == [[5]]
    assert problem.tokens(batch) == {"source": ["0:2", "3:1", "0:5"], "target": ["0?"]}
    assert problem.format_answer(problem.answer(oracle, batch)) == "5"


@pytest.mark.parametrize("text", ["", "0:1", "0:1 1?", "0:9 0?", "0-1 0?", "0:1 0? 0?", "7:1 7?", f"{10**20}:1 1?"])
def test_invalid_prompts_are_refused(text):
    with pytest.raises(DataError, match=r"the input|below 7"):
        ONCE.load().encode_prompt(text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keys": 0}, "task.keys=0 must be a whole number"),
        ({"keys": 2.5}, "task.keys=2.5 must be a whole number"),
        ({"length": -1}, "task.length=-1 must be a whole number"),
        ({"examined": 0}, "task.examined=0 must be a whole number"),
        ({"examined_length": 4}, "task.examined_length=4 requires task.length"),
        ({"seed": -1}, "task.seed=-1 must be a whole number"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        Associations(**fields)


def test_the_vocabulary_is_stored_with_the_run():
    symbols = ["0", "1", "2"]
    assert Associations(keys=3).load().vocabulary == {"keys": symbols, "values": symbols}


def test_parts_and_limits_are_checked(problem):
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            problem.eval_batches(part, limit)
