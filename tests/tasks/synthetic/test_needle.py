import re

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.synthetic.needle import Needle
from tests.tasks.compiled import answered

ONE = Needle(length=40, tested=(40, 90), valid_examples=20, test_examples=150)
MANY = Needle(length=70, tested=(70,), needles=4, keys=4, depths=3, valid_examples=20, test_examples=60)
SENTENCE = re.compile(r"the number of (k\d+) is (v\d+) \.")


@pytest.fixture(scope="module", params=[ONE, MANY], ids=["one", "many"])
def problem(request):
    return request.param.load()


def texts(problem, batch):
    return [" ".join(problem.words[n] for n in row) for row in batch["tokens"]]


def oracle(problem):
    """Returns a model that predicts what follows the first occurrence of the last two tokens, for example "k3 is"."""

    def model(tokens, keep, key=None):
        found = (tokens[:-1] == tokens[-2]) & (tokens[1:] == tokens[-1])
        return jnp.eye(problem.shape.vocabulary)[jnp.full(tokens.shape, tokens[jnp.argmax(found) + 2])]

    return model


def test_a_text_hides_its_needles_whole_and_ends_in_a_question(problem):
    task = problem.task
    batch = problem.batch(0, 0, 60)
    assert batch["tokens"].shape == (60, task.length)
    for text, answers, scored in zip(texts(problem, batch), batch["answers"], batch["scored"], strict=True):
        *before, question = text.rsplit("the number of ", 1)
        found = dict(SENTENCE.findall(before[0]))
        assert len(found) == task.needles
        assert found[question.removesuffix(" is")] == problem.words[answers[-1]]
        assert scored.nonzero()[0].tolist() == [task.length - 1]
        # Each needle is between whole sentences. Only the last sentence may be cut.
        assert before[0].endswith(". ")
        assert all(f". {text}"[: match.start() + 2].endswith(". ") for match in SENTENCE.finditer(text))


def test_needles_of_the_test_take_turns_through_the_depths():
    problem = Needle(length=600, tested=(600,), valid_examples=2, test_examples=40).load()
    (batch,) = problem.eval_batches("test")
    hay = 600 - 7 - 5
    for n, text in enumerate(texts(problem, batch)):
        place = text.split().index("number") - 1
        belongs = n % 5 / 4 * hay
        assert belongs - 13 <= place <= belongs  # a sentence has at most 13 words
        assert place == 0 or text.split()[place - 1] == "."
    drawn = [text.split().index("number") for text in texts(problem, problem.batch(0, 0, 300))]
    counts, _ = np.histogram(drawn, bins=4, range=(0, 600))
    assert counts.min() > 45


def test_no_sentence_of_training_is_tested(problem):
    drawn = {part: {tuple(s.tolist()) for s in found} for part, found in problem._sentences.items()}
    assert drawn["train"]
    assert not drawn["train"] & drawn["test"]


def test_accuracy_by_length_and_by_depth(problem):
    task = problem.task
    answers = answered(problem, oracle(problem), "test")
    scores = problem.score("test", answers)
    depths = [round(100 * n / (task.depths - 1)) for n in range(task.depths)]
    names = {"accuracy", *(f"accuracy_at_depth.{depth}" for depth in depths)}
    assert set(scores) == names | {f"{name}.{length}" for name in names for length in task.tested}
    assert set(scores.values()) == {1.0}
    assert problem.counted("test") == task.test_examples * len(task.tested)
    # These answers are wrong at the second depth of the first length.
    wrong = [{"tokens": np.array(answer["tokens"])} for answer in answers]
    wrong[0]["tokens"][1 :: task.depths] = 0
    second, count = f"accuracy_at_depth.{depths[1]}", min(128, task.test_examples)
    missed = len(range(1, count, task.depths))
    scores = problem.score("test", wrong)
    each = len(range(1, task.test_examples, task.depths))
    assert scores[f"{second}.{task.tested[0]}"] == pytest.approx(1 - missed / each)
    assert scores["accuracy"] == pytest.approx(1 - missed / task.test_examples / len(task.tested))
    assert {name for name, value in scores.items() if value < 1} == {
        "accuracy", f"accuracy.{task.tested[0]}", second, f"{second}.{task.tested[0]}",
    }  # fmt: skip
    assert problem.declared(second).higher
    answers = answered(problem, oracle(problem), "valid")
    assert problem.score("valid", answers) == {"accuracy": 1.0}


def test_the_shortest_text_is_a_needle_and_the_question():
    problem = Needle(length=12, tested=(12,)).load()
    assert problem.shape == Tokens(len(problem.words), 12)
    assert re.fullmatch(rf"{SENTENCE.pattern} the number of k\d+ is", texts(problem, problem.batch(0, 0, 1))[0])


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"length": 11}, r"task\.length=11 must be a whole number in 12"),
        ({"needles": 3, "tested": (64, 25)}, r"task\.needles=3 require lengths of at least 26"),
        ({"needles": 17}, r"task\.needles=17 must be a whole number in 1 … 16"),
        ({"depths": 1}, r"task\.depths=1"),
        ({"keys": 1}, r"task\.keys=1"),
    ],
)
def test_invalid_values_are_refused(fields, refusal):
    with pytest.raises(ValueError, match=refusal):
        Needle(**fields)
