import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.tasks.base.batching import equal_batches
from attnlab.tasks.base.classification import ClassificationData


class Signs(ClassificationData):
    """Classifies a number, or each number of a sequence, by its sign."""

    def __init__(self, batches):
        super().__init__(["minus", "plus"])
        self.batches = batches

    def batch(self, seed, step, size):
        raise NotImplementedError

    def eval_batches(self, part, limit=None):
        return self.batches

    def encode_prompt(self, text):
        return {"source": np.array([[float(text)]], np.float32)}

    def tokens(self, batch):
        return {"source": []}


def model(source, keep, key=None):
    """Returns the scores (−x, x) for the sum x of the kept numbers."""
    x = source if keep is None else jnp.where(keep, source, 0)
    return jnp.stack([-x.sum(), x.sum()])


def each(source, keep, key=None):
    return jnp.stack([-source, source], axis=-1)


def test_loss_and_accuracy_by_hand():
    batch = {"source": np.array([[1.0], [2.0], [3.0]], np.float32), "label": np.array([1, 0, -1], np.int32)}
    loss, found = Signs([]).loss(model, batch, None)
    # The right answer costs softplus(−2) and the wrong one softplus(4). The third example is not scored.
    assert float(loss) == pytest.approx((np.log1p(np.exp(-2)) + np.log1p(np.exp(4))) / 2, rel=1e-6)
    assert float(found["accuracy"]) == 0.5


def test_unscored_positions_have_no_gradient():
    labels = np.array([[1, -1]], np.int32)
    batch = lambda x: {"source": x, "keep": np.ones((1, 2), bool), "label": labels}
    gradient = jax.grad(lambda x: Signs([]).loss(each, batch(x), None)[0])(jnp.array([[0.3, 5.0]]))
    assert gradient[0, 0] != 0
    assert gradient[0, 1] == 0
    nothing = {"source": np.ones((1, 1), np.float32), "label": np.array([-1], np.int32)}
    assert float(Signs([]).loss(model, nothing, None)[0]) == 0


def test_only_scored_positions_count_in_score():
    whole = {
        "source": np.array([[1.0, 9], [-2, 9], [3, 9], [-1, 9], [5, 9]], np.float32),
        "keep": np.array([[True, False]] * 5),
        "label": np.array([1, 0, 0, 0, 1], np.int32),
    }
    problem = Signs(equal_batches(whole, 2, label=-1))
    assert [batch["label"].tolist() for batch in problem.batches] == [[1, 0], [0, 0], [1, -1]]
    answers = [problem.answer(model, batch) for batch in problem.batches]
    assert problem.score("test", answers) == {"accuracy": 4 / 5}
    one = {"source": np.array([[1, -2, 3, 1]], np.float32), "label": np.array([[1, 0, 0, -1]], np.int32)}
    problem = Signs([one])
    assert problem.score("test", [problem.answer(each, one)]) == {"accuracy": 2 / 3}


def test_answer_has_the_probability_of_the_class():
    problem = Signs([])
    assert problem.format_answer(problem.answer(model, problem.encode_prompt("1"))) == "plus (88.1%)"
    assert problem.format_answer(problem.answer(each, {"source": np.array([[1.0, -1]], np.float32)})) == "plus minus"


def test_half_precision_logits_are_summed_in_float32():
    half = lambda source, keep, key=None: model(source, keep).astype(jnp.bfloat16)
    batch = {"source": np.ones((1, 1), np.float32), "label": np.ones(1, np.int32)}
    assert Signs([]).loss(half, batch, None)[0].dtype == jnp.float32


def test_dropout_draws_for_each_example():
    seen = lambda source, keep, key=None: jnp.stack([jax.random.normal(key), jnp.zeros(())])
    found = Signs([]).scores(seen, {"source": np.ones((3, 1), np.float32)}, jax.random.split(jax.random.key(0), 3))
    assert len({float(x) for x in found[:, 0]}) == 3


def test_classes_are_stored_with_the_run():
    problem = Signs([])
    assert problem.vocabulary == {"classes": ["minus", "plus"]}
    assert problem.classes == ("minus", "plus")
