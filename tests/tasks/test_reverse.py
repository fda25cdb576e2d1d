import numpy as np
import pytest

from attnlab.data.files import DataError
from attnlab.tasks.reverse import Reverse


@pytest.fixture(scope="module")
def problem():
    return Reverse(train_examples=4_000, valid_examples=100, test_examples=1_000).load()


def test_the_shape_is_that_of_the_longest_examined(problem):
    assert problem.shape.source_vocabulary == problem.shape.target_vocabulary == 53
    assert (problem.shape.source_length, problem.shape.target_length) == (32, 32)


def test_training_stops_at_25(problem):
    assert max(widths for widths in problem.buckets.widths) == (28, 28)
    assert problem.buckets.padding < 0.3


def test_asking_and_telling_are_integers_with_spaces(problem):
    batch = problem.ask(" 12 3  49 ")
    assert problem.tokens(batch)["source"] == ["12", "3", "49"]
    ids = problem.target.encode("49 3 12")
    assert problem.tell({"tokens": np.array([[*ids, 2, 0]])}) == "49 3 12"
    with pytest.raises(DataError, match='"50"'):
        problem.ask("1 50")


def test_the_answers_are_the_reversals(problem):
    (batch,) = problem.examination("valid")
    for source, target in zip(batch["source"], batch["target"], strict=True):
        assert problem.target.decode(target.tolist()).split() == problem.source.decode(source.tolist()).split()[::-1]


@pytest.mark.parametrize(
    "field", ["train_examples", "valid_examples", "test_examples", "symbols", "train_longest", "longest"]
)
def test_what_cannot_be_names_the_field(field):
    with pytest.raises(ValueError, match=rf"task\.{field}=0 must be a whole number"):
        Reverse(**{field: 0})
