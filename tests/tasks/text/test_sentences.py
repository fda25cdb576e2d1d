"""Checks the classification of sentences after pretraining on hidden words."""

import json
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text.example import Example
from attnlab.data.text.units import Bpe, Bytes, Characters, Words
from attnlab.data.text.vocabulary import PAD
from attnlab.models.bert import Bert
from attnlab.models.classifier import Classifier
from attnlab.tasks.base.shapes import Classes, Tokens
from attnlab.tasks.text.finetuning import FinetuningData
from attnlab.tasks.text.sentences import PUBLISHED, Questions, Sentences, Sst2, Trec
from attnlab.training.config import Train
from attnlab.training.trainer import Trainer
from tests.models.training import filled

TRAIN = [Example(f"the {word} was {word} and {end}", (label,)) for label, word in (("bad", "dull"), ("good", "fine"))
         for end in ("long", "short", "a rare-" + word)]  # fmt: skip
PARTS = {"train": TRAIN, "valid": [Example("the fine unseen end", ("good",))], "test": TRAIN[:3]}


class Knowing:
    """A model that gives the logit `sure` to class 1, and to word 5 at any position. All other logits are zero."""

    def __init__(self, vocabulary, sure=0.0):
        self.vocabulary, self.sure = vocabulary, sure

    def __call__(self, source, keep, key=None):
        return self.sure * jnp.eye(2)[1]

    def fill(self, source, keep, places, key=None):
        return jnp.broadcast_to(self.sure * jnp.eye(self.vocabulary)[5], (len(places), self.vocabulary))


def made(**fields):
    return FinetuningData(PARTS, Words(), **{"masked": 10, **fields})


def test_rare_and_unseen_words_are_unknown():
    problem = made()
    # The words that occur twice: a, and, dull, fine, long, short, the, was. The unknown word and the mask follow.
    assert problem.tokenizer.vocabulary.symbols == ("a", "and", "dull", "fine", "long", "short", "the", "was")
    assert problem.shape == Classes(Tokens(13, 8), 2)
    assert problem.classes == ("bad", "good")
    (batch,) = problem.eval_batches("valid")
    assert problem.tokens(batch)["source"] == ["the", "fine", "[unknown]", "[unknown]"]
    assert problem.tokens({"source": batch["hidden"]})["source"] != problem.tokens(batch)["source"]
    assert problem.encode_prompt(" the  fine unseen end")["source"].tolist() == [[9, 6, 11, 11, 0, 0, 0, 0]]
    with pytest.raises(DataError, match="has no symbol that occurs in training"):
        problem.encode_prompt("unseen end")
    assert problem.encode_prompt("fine " * 8)["keep"].all()
    with pytest.raises(DataError, match=r"^the input has 9 symbols, but the model reads at most 8$"):
        problem.encode_prompt("fine " * 9)
    with pytest.raises(
        DataError, match=r"none of the 10 training words occurs task\.least=99 times; use task\.least=1"
    ):
        made(least=99)


@pytest.mark.parametrize("units", [Characters(), Bytes(), Bpe(size=60)], ids=str)
def test_other_units_have_no_unknown_symbols(units):
    problem = FinetuningData(PARTS, units, masked=10)
    for batch in problem.eval_batches("test"):
        assert (batch["source"] < problem.unknown).all()
    # "Z" never occurs in training. Bytes and BPE have no unknown symbols.
    ask = problem.encode_prompt("the Z")["source"][0]
    assert (problem.unknown in ask) == isinstance(units, Characters)


def test_batches_belong_to_the_phase_of_the_step():
    problem = made()
    for step in (0, 9):
        batch = problem.batch(3, step, 4)
        assert set(batch) == {"hidden", "keep", "places", "answers"}
        assert (np.take_along_axis(batch["hidden"], batch["places"], 1) != 0).all()
        again = problem.batch(3, step, 4)
        assert all((batch[name] == again[name]).all() for name in batch)
    for step in (10, 11, 500):
        batch = problem.batch(3, step, 4)
        assert set(batch) == {"source", "keep", "label"}
        np.testing.assert_array_equal(batch["keep"], batch["source"] != PAD)
    assert set(made(masked=0).batch(3, 0, 4)) == {"source", "keep", "label"}
    np.testing.assert_array_equal(made(masked=0).batch(3, 0, 4)["source"], problem.batch(3, 10, 4)["source"])


def test_masked_words_differ_by_epoch_and_seed():
    problem = FinetuningData(PARTS, Words(), masked=100, buckets=1, share=0.4)
    whole = lambda seed, step: problem.batch(seed, step, 6)
    asked = lambda batch: sorted(tuple(row) for row in batch["answers"])
    assert len({str(asked(whole(0, step))) for step in range(12)}) > 9
    assert len({str(asked(whole(seed, 0))) for seed in range(12)}) > 9
    # In evaluation, the masked words stay the same.
    first, again = problem.eval_batches("test"), problem.eval_batches("test")
    assert all((first[0][name] == again[0][name]).all() for name in first[0])


def test_unlabelled_sentences_are_used_for_pretraining_only():
    problem = made(unlabelled=["entirely other", "entirely other words", "other words"])
    assert {"entirely", "other", "words"} < set(problem.tokenizer.vocabulary.symbols)
    ids = {symbol: n for n, symbol in enumerate(problem.tokenizer.vocabulary.symbols, start=3)}
    filled = {int(n) for step in range(10) for n in problem.batch(0, step, 6)["answers"].ravel()}
    assert {ids["entirely"], ids["other"], ids["words"]} <= filled
    sorted_ = {int(n) for step in range(10, 20) for n in problem.batch(0, step, 6)["source"].ravel()}
    assert not {ids["entirely"], ids["other"], ids["words"]} & sorted_
    assert problem.fingerprint != made().fingerprint


def test_losses_and_scores():
    problem = made()
    loss = jax.jit(lambda sure, batch: problem.loss(Knowing(13, sure), batch, None))
    answer = jax.jit(lambda sure, batch: problem.answer(Knowing(13, sure), batch))
    for step, choices in ((0, 13), (10, 2)):
        assert math.isclose(loss(0.0, problem.batch(0, step, 4))[0], math.log(choices), rel_tol=1e-6)
    # All three test sentences belong to the first class, "bad".
    (whole,) = problem.eval_batches("test")
    even, sure = ([answer(how, whole)] for how in (0.0, 50.0))
    assert problem.score("test", even) == pytest.approx({"accuracy": 1.0, "masked_nats": math.log(13)}, rel=1e-6)
    assert problem.score("test", sure)["accuracy"] == 0
    assert problem.format_answer({name: x[:1] for name, x in sure[0].items()}) == "good (100.0%)"
    # Id 5 is "dull". It costs nothing where it is the right word, and any other right word costs 50 nats.
    batch = {"hidden": np.full((1, 4), 3), "keep": np.ones((1, 4), bool), "places": np.array([[0, 1, 0]]),
             "answers": np.array([[5, 6, PAD]])}  # fmt: skip
    nats, told = loss(50.0, batch)
    assert (float(nats), float(told["word_accuracy"])) == (25, 0.5)
    assert "masked_nats" not in made(masked=0).score("test", sure)


def test_a_limit_keeps_all_classes_and_masked_words():
    ordered = [TRAIN[0]] * 90 + [TRAIN[-1]] * 90
    problem = FinetuningData({"train": TRAIN, "valid": ordered, "test": ordered}, Words(), masked=10)
    (few,), (whole,) = problem.eval_batches("valid", 20), problem.eval_batches("valid")
    assert set(few["label"].tolist()) == {0, 1}
    assert whole["label"].tolist() == [0] * 90 + [1] * 90
    key = lambda batch, n: tuple(np.concatenate([batch[name][n].ravel() for name in ("hidden", "places", "label")]))
    assert {key(few, n) for n in range(20)} <= {key(whole, n) for n in range(180)}
    assert problem.score("valid", [few | {"nats": np.zeros(20)}], 20)["accuracy"] == 1.0


def test_dispatches_end_with_the_phase():
    trainer = Trainer(lambda key: None, made(masked=6), Train(steps=16, batch_size=4, seeds=2))
    found = [trainer.batches(step, 16) for step in (0, 6, 14)]
    assert [(count, "label" in steps.batches) for steps, count in found] == [(6, False), (8, True), (2, True)]


def test_each_phase_trains_its_own_head_and_both_the_encoder():
    problem = made()
    model = filled(Bert(width=8, heads=2, layers=1), problem.shape)
    gradient = jax.jit(jax.grad(lambda model, batch: problem.loss(model, batch, jax.random.key(0))[0]))
    for step in (0, 10):
        found = gradient(model, problem.batch(0, step, 4))
        heads = {"words": found.inner.w[...], "classes": found.head.w[...]}
        assert {name: bool(np.abs(each).max() > 0) for name, each in heads.items()} == {
            "words": step == 0, "classes": step == 10,
        }  # fmt: skip
        assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves((found.input_layer, found.encoder.encoded)))


def test_model_without_masked_words_is_refused():
    problem = made()
    model = jax.eval_shape(lambda: Classifier(width=8, heads=2, layers=1).create(jax.random.key(0), problem.shape))
    with pytest.raises(
        ValueError, match=r"task\.masked=10 requires a model that predicts masked words, for example model=bert"
    ):
        problem.loss(model, problem.batch(0, 0, 1), None)


def test_text_interface_needs_no_data():
    problem = made()
    found = Trec().text_interface(json.loads(json.dumps(problem.vocabulary)), "vocabulary.json")
    assert found.shape == problem.shape
    assert found.vocabulary == problem.vocabulary
    word = problem.tokenizer.symbols[0]
    for text in (word, f"{word} never-seen {word}"):
        one, other = problem.encode_prompt(text), found.encode_prompt(text)
        for name in ("source", "keep"):
            np.testing.assert_array_equal(one[name], other[name])
        assert found.tokens(other) == problem.tokens(one)
    said = {"label": np.array([1]), "probability": np.array([0.75])}
    assert found.format_answer(said) == problem.format_answer(said)
    with pytest.raises(DataError, match="has no symbol that occurs in training"):
        found.encode_prompt("never-seen")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": None}, "length=None must be"),
        ({"text": "words"}, "text contains no tokenizer"),
        ({"classes": {}}, "classes contains no list"),
    ],
)
def test_invalid_vocabulary_names_its_file(change, words):
    with pytest.raises(DataError, match=f"^vocabulary.json: {words}"):
        Trec().text_interface(made().vocabulary | change, "vocabulary.json")


def test_inconsistent_parts_are_refused():
    with pytest.raises(DataError, match="the part 'test' has no sentences"):
        FinetuningData(PARTS | {"test": []}, Words())
    with pytest.raises(DataError, match='never seen in training: "odd"'):
        FinetuningData(PARTS | {"valid": [Example("the", ("odd",))]}, Words())


def test_sentences_without_a_known_symbol_are_reported(tmp_path):
    # Read as words, a sentence without spaces is one word that no other line has.
    texts = {
        "train": ["好 电影很好", "坏 电影很差", "好 电影很好"],
        "valid": ["好 很好电影"],
        "test": ["坏 很差", "好 电影很好"],
    }
    files = {part: tmp_path / part for part in texts}
    for part, path in files.items():
        path.write_text("\n".join(texts[part]), encoding="utf-8")
    task = Sentences(**{part: str(path) for part, path in files.items()})
    problem = task.load()
    advice = "; task.units=characters reads them by character"
    assert problem.notes[-2:] == (
        f"valid: 1 of 1 sentences has no symbol that the model knows: 很好电影{advice}",
        f"test: 1 of 2 sentences has no symbol that the model knows: 很差{advice}",
    )
    # A sentence with spaces gets no advice, and a scored file is reported in the same way.
    other = tmp_path / "other"
    other.write_text("好 something else\n坏 很 差\n", encoding="utf-8")
    line = f"{other}: 2 of 2 sentences have no symbol that the model knows: something else"
    assert task.with_test(problem, str(other)).notes[-1] == line
    by_character = replace(task, units=Characters()).load()
    assert not any("no symbol" in note for note in by_character.notes)


def test_user_files(tmp_path):
    for part, examples in PARTS.items():
        rows = [f"{example.targets[0]} {example.source}\n" for example in examples]
        (tmp_path / part).write_text("".join(rows) + "\n")
    files = {part: str(tmp_path / part) for part in PARTS}
    problem = Sentences(**files, units=Words()).load()
    assert problem.fingerprint == made(masked=0).fingerprint
    assert [note.rpartition("/")[2] for note in problem.notes] == [
        "train: 1 line (7) is empty and skipped", "valid: 1 line (2) is empty and skipped",
        "test: 1 line (4) is empty and skipped", "valid: no line is of class 'bad'",
        "test: no line is of class 'good'", "test: 3 of 3 examples are also in train",
    ]  # fmt: skip
    (tmp_path / "more").write_text("a line\n\nof text")
    problem = Sentences(**files, masked=5, unlabelled=str(tmp_path / "more")).load()
    assert any(note.endswith("more: 1 line (2) is empty and skipped") for note in problem.notes)
    with pytest.raises(ValueError, match=r"task\.test='' must be the path of a file"):
        Sentences(**files | {"test": ""}).load()
    with pytest.raises(DataError, match=r"train, line 1: length 6 exceeds 4"):
        Sentences(**files, longest=4).load()
    (tmp_path / "test").write_text("new the fine\n")
    with pytest.raises(DataError, match=r"test, line 1: class 'new' is not one of the 2 classes"):
        Sentences(**files).load()


def test_sentences_in_several_classes_are_named():
    text, (first, second, *_) = PARTS["test"][0].source, sorted({each.targets[0] for each in PARTS["train"]})
    test = [Example(text, (first,)), Example(text, (second,))]
    line = f"1 text is in several classes, of which only one can be correct: {text}"
    found = FinetuningData(PARTS | {"test": test}, Words())
    assert f"test: {line}" in found.notes
    assert f"file: {line}" in found.with_test(test, "file", [1, 2]).notes


def test_evaluation_sentences_among_unlabelled_are_reported(tmp_path):
    test = str(PARTS["test"][0].source)
    assert made(unlabelled=["something else"]).notes == made().notes
    found = made(unlabelled=["something else", test]).notes
    assert found == (*made().notes, "test: 1 of 3 examples is also in the unlabelled text")


def test_unlabelled_text_has_its_own_file_with_the_same_length_limit(tmp_path, monkeypatch):
    for part, examples in PARTS.items():
        (tmp_path / part).write_text("".join(f"{each.targets[0]} {each.source}\n" for each in examples))
    (tmp_path / "more").write_text("the end\n" + "the long line of words " * 9)
    files = {part: str(tmp_path / part) for part in PARTS}
    task = lambda **fields: Sentences(**files, masked=5, units=Words(), **fields)
    for part, name in files.items():
        with pytest.raises(DataError, match=rf"is both task\.{part} and task\.unlabelled"):
            task(unlabelled=name).load()
    width = task().load().shape.source.length
    for unlabelled in (str(tmp_path / "more"), "trec"):
        content = [Example((tmp_path / "more").read_text().split("\n")[n], ("x",)) for n in (0, 1)]
        monkeypatch.setitem(PUBLISHED, "trec", lambda content=content: {"train": content})
        assert task(unlabelled=unlabelled).load().shape.source.length > 4 * width
        for longer, said in (("truncate", "truncated"), ("skip", "skipped")):
            problem = task(unlabelled=unlabelled, longest=8, longer=longer).load()
            assert problem.shape.source.length == width
            assert [n for n in problem.notes if unlabelled in n] == [
                f"{unlabelled}: 1 line (2) is longer than 8 and {said}"
            ]
        with pytest.raises(DataError, match=rf"{unlabelled}, line 2: length 45 exceeds 8"):
            task(unlabelled=unlabelled, longest=8).load()


def test_the_generated_questions():
    problem = Questions(train_examples=60, valid_examples=6, test_examples=7, masked=4).load()
    assert len(problem.classes) == 6
    assert len(problem.eval_batches("test")[0]["label"]) == 7
    assert problem.encode_prompt("Who sold the bell?")["keep"].sum() == 5


def test_the_published_tasks(published):
    published("text_classification")
    problem = Trec(masked=4, unlabelled="sst2").load()
    assert problem.classes == ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
    assert len(problem.eval_batches("test")[0]["label"]) == 256
    assert problem.tokens(problem.encode_prompt("What's a film?"))["source"] == ["what", "'s", "a", "film", "?"]
    assert Sst2().load().classes == ("negative", "positive")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"masked": -1}, r"task\.masked=-1 must be"),
        ({"share": 0}, r"task\.share=0 must be above 0"),
        ({"least": 0}, r"task\.least=0 must be"),
        ({"units": 5}, r"task\.units=5 must be a TokenizerSpec"),
        ({"buckets": 0}, r"task\.buckets=0 must be"),
        ({"unlabelled": "sst2"}, r"task\.unlabelled='sst2' requires task\.masked above 0"),
    ],
)
@pytest.mark.parametrize("task", [Trec, Sst2, Questions, Sentences])
def test_fields_are_checked(task, fields, line):
    with pytest.raises(ValueError, match=line):
        task(**fields)


def test_fields_of_user_files_are_checked():
    for fields in ({"encoding": "utf8"}, {"longer": "cut"}, {"longest": -1}):
        with pytest.raises(ValueError, match=rf"task\.{next(iter(fields))}="):
            Sentences(**fields)
