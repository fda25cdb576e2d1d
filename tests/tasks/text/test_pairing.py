"""Checks the marks of sources: what a model reads, what a user sees, and what older runs were trained with."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Example
from attnlab.data.text.units import Characters
from attnlab.decoding import Greedy
from attnlab.models import Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.position import POSITIONS
from attnlab.tasks import TASKS
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.synthetic.dates import Dates
from attnlab.tasks.synthetic.reverse import Copy, Reverse
from attnlab.tasks.text.g2p import CMUdict, Sigmorphon
from attnlab.tasks.text.pair_task import PairTask
from attnlab.tasks.text.pairing import PairInterface
from attnlab.tasks.text.scan import Scan
from attnlab.tasks.text.transduction import PairData
from attnlab.tasks.text.translation import Multi30k, Parallel

# The ids of the word "ab" (a is 3, b is 4) as a model reads it, padded to 4, and its symbols as a user sees them.
READ = {
    "end": ([3, 4, 2, 0], ["a", "b", "∎"]),
    "begin": ([1, 3, 4, 0], ["⊢", "a", "b"]),
    "both": ([1, 3, 4, 2], ["⊢", "a", "b", "∎"]),
    "none": ([3, 4, 0, 0], ["a", "b"]),
}
SIZES = {"train_examples": 40, "valid_examples": 5, "test_examples": 5}
TINY = {"width": 8, "heads": 2, "layers": 1}


def copying(*words, **how):
    """Returns the problem of copying words. Every part holds all of them."""
    examples = [Example(word, (word,)) for word in words]
    parts = dict.fromkeys(("train", "valid", "test"), examples)
    return PairData(parts, (Characters(), Characters()), exact_match, (EXACT_MATCH,), 1, **how)


@pytest.mark.parametrize("marks", READ)
def test_a_source_is_encoded_with_its_marks(marks):
    problem, (ids, shown) = copying("ab", source_marks=marks), READ[marks]
    (examined,) = problem.eval_batches("test")
    for batch in (problem.batch(0, 0, 1), examined, problem.encode_prompt("ab")):
        assert batch["source"].tolist() == [ids]
    assert examined["target"].tolist() == [[3, 4, 2, 0]]
    assert problem.tokens(examined) == {"source": shown, "target": ["a", "b", "∎"]}


@pytest.mark.parametrize("task", [
    Dates(**SIZES), Reverse(**SIZES), Copy(**SIZES), Sigmorphon(), CMUdict(), Scan(), Multi30k(), Parallel(),
], ids=lambda task: type(task).__name__)  # fmt: skip
def test_sources_of_every_task_end_with_the_end_mark(task, tmp_path, published):
    if isinstance(task, Scan | Multi30k):
        published("scan" if isinstance(task, Scan) else "multi30k")
    if hasattr(task, "train"):
        task = type(task)(**written(tmp_path, "abc  x y\n" if isinstance(task, CMUdict) else "abc\tx y\n"))
    problem = task.load()
    for batch in (problem.batch(0, 0, 4), problem.eval_batches("valid", 4)[0]):
        for row in batch["source"].tolist():
            ids = [n for n in row if n]
            assert ids[-1] == 2
            assert min(ids[:-1]) > 2


def written(folder, line):
    """Writes three files with one line each, and returns the fields that name them."""
    for part in ("train", "valid", "test"):
        (folder / part).write_text(line)
    return {part: str(folder / part) for part in ("train", "valid", "test")}


def test_every_pair_task_has_the_field():
    tasks = [task for task in TASKS.values() if isinstance(task, PairTask)]
    assert len(tasks) == 8
    assert {task.source_marks for task in tasks} == {"end"}
    assert all("source_marks" in task.training_only_fields for task in tasks)
    for task in tasks:
        with pytest.raises(ValueError, match=r"^task\.source_marks='ned' is not known; nearest: 'end'; known: end, "):
            type(task)(source_marks="ned")
    with pytest.raises(ValueError, match=r"^source_marks='ned' is not known"):
        copying("ab", source_marks="ned")


# A word of 4, 3, 3 or 2 letters fills four columns with its marks. One more letter takes eight columns.
@pytest.mark.parametrize(("marks", "letters"), [("none", 4), ("end", 3), ("begin", 3), ("both", 2)])
@pytest.mark.parametrize("model", [Transformer(**TINY, position=POSITIONS["learned"]), Seq2Seq(width=8)])
def test_the_length_includes_source_marks(marks, letters, model):
    for count, width in ((letters, 4), (letters + 1, 8)):
        problem = copying("a" * count, source_marks=marks)
        assert problem.shape.source_length == width
        assert problem.source_room == width - 4 + letters
        network = jax.jit(lambda problem=problem: model.create(jax.random.key(0), problem.shape))()
        scores = jax.jit(lambda network, batch, problem=problem: problem.answers(network, batch, Greedy())["scores"])
        for text in ("a" * count, "a" * problem.source_room):
            assert np.isfinite(scores(network, problem.encode_prompt(text))).all()
        more = problem.source_room + 1
        with pytest.raises(DataError, match=f"has {more} tokens, but the model reads at most {more - 1}$"):
            problem.encode_prompt("a" * more)


@pytest.mark.parametrize(("marks", "same"), [("none", True), ("end", False)])
def test_without_positions_only_a_mark_distinguishes_a_repeated_word(marks, same):
    """Without a mark, softmax averages "ab" and "abab" alike. END is a third of the one and a fifth of the other."""
    problem = copying("ab", "abab", source_marks=marks)
    config = Transformer(**TINY, position=POSITIONS["none"])

    @jax.jit
    def scores(source):
        network = config.create(jax.random.key(0), problem.shape)
        return network(source, jnp.array([1, 3]), source > 0, jnp.array([True, True]))

    once, twice = (scores(problem.encode_prompt(text)["source"][0]) for text in ("ab", "abab"))
    assert np.allclose(once, twice, atol=1e-5) == same


def test_a_vocabulary_records_the_source_marks():
    for marks in READ:
        problem = copying("ab", source_marks=marks)
        found = PairInterface.restored(json.loads(json.dumps(problem.vocabulary)), "vocabulary.json")
        assert found.source_marks == marks
        assert found.encode_prompt("ab")["source"].tolist() == [READ[marks][0]]
    # An older vocabulary does not record marks, because its sources had none.
    older = {name: value for name, value in copying("ab").vocabulary.items() if name != "source_marks"}
    assert PairInterface.restored(older, "vocabulary.json", source_marks="end").encode_prompt("ab")[
        "source"
    ].tolist() == [[3, 4, 0, 0]]
    with pytest.raises(DataError, match=r"^vocabulary\.json: source_marks=\['end'\] must be one of end, begin, both"):
        PairInterface.restored(older | {"source_marks": ["end"]}, "vocabulary.json")


def test_a_source_of_unknown_symbols_has_only_marks():
    parts = {"train": [Example("ab", ("ab",))], "valid": [Example("xy", ("ab",))], "test": [Example("ab", ("ab",))]}
    problem = PairData(parts, (Characters(), Characters()), exact_match, (EXACT_MATCH,))
    assert problem.eval_batches("valid")[0]["source"].tolist() == [[2, 0, 0, 0]]
