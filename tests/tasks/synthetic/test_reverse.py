import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.tasks.synthetic.reverse import Copy, Reverse


@pytest.fixture(scope="module")
def problem():
    return Reverse(train_examples=4_000, valid_examples=100, test_examples=1_000).load()


def test_the_shape_is_that_of_the_longest_evaluated_example(problem):
    assert problem.shape.source_vocabulary == problem.shape.target_vocabulary == 53
    assert (problem.shape.source_length, problem.shape.target_length) == (32, 32)


def test_training_lengths_end_at_25(problem):
    assert max(widths for widths in problem.buckets.widths) == (28, 28)
    assert problem.buckets.padding < 0.3


def test_prompt_and_answer_are_integers_with_spaces(problem):
    batch = problem.encode_prompt(" 12 3  49 ")
    assert problem.tokens(batch)["source"] == ["12", "3", "49", "∎"]
    ids = problem.target.encode("49 3 12")
    assert problem.format_answer({"tokens": np.array([[*ids, 2, 0]])}) == "49 3 12"
    with pytest.raises(DataError, match='"50"'):
        problem.encode_prompt("1 50")


def test_the_answers_are_the_reversals(problem):
    (batch,) = problem.eval_batches("valid")
    for source, target in zip(batch["source"], batch["target"], strict=True):
        assert problem.target.decode(target.tolist()).split() == problem.source.decode(source.tolist()).split()[::-1]


@pytest.mark.parametrize(
    "field", ["train_examples", "valid_examples", "test_examples", "symbols", "train_longest", "longest"]
)
def test_invalid_values_name_the_field(field):
    with pytest.raises(ValueError, match=rf"task\.{field}=0 must be a whole number"):
        Reverse(**{field: 0})


def test_copy_and_reverse_are_scored_by_both_metrics():
    sizes = {
        "train_examples": 20,
        "valid_examples": 9,
        "test_examples": 9,
        "train_longest": 8,
        "longest": 16,
        "symbols": 3,
    }
    copy, backwards = Copy(**sizes).load(), Reverse(**sizes, metric="bleu").load()
    (batch,) = copy.eval_batches("valid")
    for source, target in zip(batch["source"], batch["target"], strict=True):
        assert copy.target.decode(target.tolist()) == copy.source.decode(source.tolist())
    answers = [{"tokens": batch["target"]}]
    assert copy.score("valid", answers) == {
        name: pytest.approx(1) for name in ("exact_match", "bleu", "exact_match.1-8", "exact_match.9+")
    }
    assert backwards.metric.name == "bleu"
    assert {"exact_match", "bleu", "bleu.1-8", "bleu.9+"} == set(backwards.score("valid", answers))
    assert copy.fingerprint != backwards.fingerprint
    with pytest.raises(ValueError, match=r"task\.metric='bleo' is not known; nearest: 'bleu'"):
        Reverse(metric="bleo")
