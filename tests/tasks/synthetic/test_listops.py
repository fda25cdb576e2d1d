import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.synthetic.listops import WORDS, evaluate
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.base.stream import POSITIONS
from attnlab.tasks.synthetic.listops import ListOps

TASK = ListOps(shortest=4, longest=24, valid_examples=20, test_examples=300)


@pytest.fixture(scope="module")
def problem():
    return TASK.load()


def test_a_batch_is_expressions_padded_to_the_longest(problem):
    assert problem.shape == Classes(Tokens(16, 24), 10)
    batch = problem.batch(0, 0, 50)
    assert {name: (x.shape, x.dtype) for name, x in batch.items()} == {
        "source": ((50, 24), np.int32), "keep": ((50, 24), np.bool_), "label": ((50,), np.int32),
    }  # fmt: skip
    for source, keep, label in zip(batch["source"], batch["keep"], batch["label"], strict=True):
        assert evaluate([WORDS[n] for n in source[keep]]) == label
        assert not source[~keep].any()
    assert 4 <= batch["keep"].sum(axis=1).min() < batch["keep"].sum(axis=1).max() <= 24


def test_honouring_padding_changes_only_the_mask(problem):
    ignored = ListOps(**{**vars(TASK), "honoured": False}).load()
    one, other = problem.batch(1, 2, 8), ignored.batch(1, 2, 8)
    assert other["keep"].all()
    for name in ("source", "label"):
        np.testing.assert_array_equal(one[name], other[name])
    assert ignored.encode_prompt("[MAX 1 2 ]")["keep"].all()


def test_batches_are_a_function_of_seed_and_step_and_parts_differ(problem):
    again = TASK.load()
    assert again.fingerprint == problem.fingerprint
    np.testing.assert_array_equal(problem.batch(1, 2, 4)["source"], again.batch(1, 2, 4)["source"])
    for other in ((1, 3), (2, 2)):
        assert (problem.batch(1, 2, 4)["source"] != problem.batch(*other, 4)["source"]).any()
    valid, test = (problem.eval_batches(part, 20)[0]["source"] for part in ("valid", "test"))
    assert (valid != test).any()


def test_evaluation_is_scored_without_fill_rows(problem):
    batches = problem.eval_batches("test")
    assert [len(batch["label"]) for batch in batches] == [256, 256]
    assert (batches[1]["label"] == -1).sum() == 212
    right = [{"label": batch["label"]} for batch in batches]
    assert problem.score("test", right) == {"accuracy": 1.0}
    commonest = np.bincount(np.concatenate([b["label"] for b in batches])[:300], minlength=10).max() / 300
    assert f"({commonest:.1%} of the examples)" in problem.notes[0]
    long = ListOps(longest=POSITIONS // 4, valid_examples=1, test_examples=9).load()
    assert [len(batch["label"]) for batch in long.eval_batches("test")] == [4, 4, 4]
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            problem.eval_batches(part, limit)


def test_prompt_is_an_expression(problem):
    batch = problem.encode_prompt("[MAX 2 9 [MIN 4 7 ] 0 ]")
    assert batch["source"].shape == (1, 24)
    assert problem.tokens(batch)["source"] == ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]
    # This model always answers with the third word.
    third = lambda source, keep, key=None: 9.0 * jnp.eye(10)[source[2] - 1]
    assert problem.format_answer(problem.answer(third, batch)).startswith("9 (99.")
    for text, words in (
        ("[ADD 1 2 ]", "never seen"),
        ("[MAX 1", "the expression is incomplete"),
        ("", "empty"),
        ("[SM " + "1 " * 23 + "]", "25 words"),
    ):
        with pytest.raises(DataError, match=words):
            problem.encode_prompt(text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shortest": 3}, r"task\.shortest=3 must be a whole number in 4"),
        ({"shortest": 129}, r"task\.shortest=129 must be at most task\.longest=128"),
        ({"depth": 0}, r"task\.depth=0 must be a whole number in 2"),
        ({"arguments": 1}, r"task\.arguments=1 must be a whole number in 2"),
        ({"depth": 2}, r"task\.shortest=16 must be at most 12, for task\.depth=2 and task\.arguments=10"),
        ({"test_examples": 0}, r"task\.test_examples=0"),
        ({"seed": -1}, r"task\.seed=-1"),
    ],
)
def test_invalid_values_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        ListOps(**fields)


def test_impossible_lengths_are_refused_on_load(monkeypatch):
    monkeypatch.setattr("attnlab.data.synthetic.listops.TRIES", 50)
    with pytest.raises(ValueError, match=r"^task\.shortest=50, task\.longest=50: none of 50"):
        ListOps(shortest=50, longest=50, arguments=2).load()


def test_classes_are_stored_with_the_run(problem):
    assert problem.vocabulary == {"classes": list("0123456789")}
