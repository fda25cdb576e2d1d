import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.copying import SelectiveCopying

TASK = SelectiveCopying(length=30, tested=(30, 9), vocabulary=7, copied=5, valid_examples=10, test_examples=150)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def oracle(tokens, keep, key=None):
    """A model that predicts, at the n-th marker, the n-th token that is neither noise nor a marker."""
    data = tokens[jnp.argsort(tokens < 2, stable=True)]
    return jnp.eye(7)[data[jnp.maximum(0, jnp.arange(len(tokens)) - (len(tokens) - 5))]]


def test_data_stand_among_noise_and_markers_ask_for_them_in_order(problem):
    assert problem.shape == Tokens(7, 35)
    batch = problem.batch(0, 0, 400)
    places = set()
    for tokens, answers, scored in zip(*(batch[name] for name in ("tokens", "answers", "scored")), strict=True):
        *noisy, a, b, c, d, e = tokens.tolist()
        assert [a, b, c, d, e] == [1] * 5
        assert [token for token in noisy if token != 0] == answers[30:].tolist()
        assert scored.tolist() == [False] * 30 + [True] * 5
        places |= {n for n, token in enumerate(noisy) if token}
    assert places == set(range(30))
    assert set(np.unique(batch["answers"][:, 30:])) == {2, 3, 4, 5, 6}


def test_tokens_and_whole_sequences_are_scored_by_length(problem):
    batches = problem.eval_batches("test")
    answers = [problem.answer(oracle, batch) for batch in batches]
    assert set(problem.score("test", answers).values()) == {1.0}
    wrong = [{"tokens": np.array(answer["tokens"])} for answer in answers]
    wrong[0]["tokens"][0, -2:] = 0
    scores = problem.score("test", wrong)
    assert scores["token_accuracy.30"] == pytest.approx(1 - 2 / 750)
    assert scores["sequence_accuracy.30"] == pytest.approx(1 - 1 / 150)
    assert scores["token_accuracy.9"] == scores["sequence_accuracy.9"] == 1
    assert problem.metric.name == "token_accuracy"
    assert problem.counted("test") == 1500


def test_a_prompt_is_symbols(problem):
    batch = problem.encode_prompt("· t2 · · t0 t4 · t1 t1 | | | | |")
    assert problem.format_answer(problem.answer(oracle, batch)) == "t1"


def test_as_published():
    problem = SelectiveCopying(length=4096, tested=(4096,), copied=16, valid_examples=2, test_examples=2).load()
    assert problem.shape == Tokens(16, 4112)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"vocabulary": 3}, r"task\.vocabulary=3"),
        ({"copied": 0}, r"task\.copied=0"),
        ({"tested": (128, 7)}, r"task\.copied=8 must be at most 7, the smallest length"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        SelectiveCopying(**fields)
