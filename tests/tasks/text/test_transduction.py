import json

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.text.example import Example
from attnlab.data.text.units import Bpe, Words
from attnlab.data.text.vocabulary import END, PAD
from attnlab.tasks.base.metrics import EXACT_MATCH, exact_match
from attnlab.tasks.base.task import TaskData
from attnlab.tasks.text.pairing import PairInterface
from attnlab.tasks.text.transduction import EXAMINED, PairData
from tests.tasks.text.copying import Copier, copies, problem


def test_shape_counts_marks_and_covers_padding(copying):
    assert copying.shape.source_vocabulary == copying.shape.target_vocabulary == 3 + 4
    assert copying.shape.source_length == 16  # 13 letters and END, padded
    assert copying.shape.target_length == 16  # 13 letters and END, padded
    for step in range(0, 80, 8):
        batch = copying.batch(0, step, 4)
        assert batch["source"].shape[1] <= copying.shape.source_length
        assert batch["target"].shape[1] <= copying.shape.target_length


def test_batches_hold_whole_pairs_with_their_marks(copying):
    for step in range(0, 100, 7):
        batch = copying.batch(1, step, 8)
        assert set(batch) == {"source", "target"}
        for source, target in zip(batch["source"], batch["target"], strict=True):
            assert source.dtype == target.dtype == np.int32
            n = source.tolist().index(END)
            assert min(source[:n]) >= 3
            assert (source[n + 1 :] == PAD).all()
            assert target[: n + 1].tolist() == [*source[:n].tolist(), END]
            assert (target[n + 1 :] == PAD).all()


def test_batches_are_a_function_of_seed_and_step(copying):
    for step in (0, 9, 70):
        one, two, other = (copying.batch(seed, step, 8) for seed in (5, 5, 6))
        assert all((one[name] == two[name]).all() for name in one)
        assert any((one[name] != other[name]).any() for name in one)
        assert {name: x.shape for name, x in one.items()} == {name: x.shape for name, x in other.items()}


def test_ids_are_below_the_vocabularies(copying):
    for array, tokenizer in ((copying._sources, copying.source), (copying._targets, copying.target)):
        assert array.min() == PAD
        assert array.max() == tokenizer.vocabulary.size - 1


def test_sources_in_examples_with_different_references_are_named():
    train = [Example("ab", ("x",)), Example("a", ("y",))]
    test = [Example("ab", ("x",)), Example("ab", ("y",)), Example("a", ("x",)), Example("a", ("x",))]
    found = problem({"train": [*train, *test], "valid": train, "test": test}, buckets=1)
    line = "1 source is in several examples with different references, of which only one can be correct: ab"
    assert [note for note in found.notes if "only one" in note] == [f"test: {line}"]
    scored = found.with_test(test[:2], "words.tsv", ["line 1", "line 2"])
    assert [note for note in scored.notes if "only one" in note] == [f"words.tsv: {line}"]
    # Several references of one example are all correct.
    joined = problem({"train": train, "valid": train, "test": [Example("ab", ("x", "y"))]}, buckets=1)
    assert not [note for note in joined.notes if "only one" in note]


def test_every_pronunciation_is_a_training_pair():
    train = [Example("ab", ("x", "y")), Example("a", ("x",))]
    taught = problem({"train": train, "valid": train, "test": train}, buckets=1)
    rows = {tuple(row.tolist()) for row in taught.batch(0, 0, 3)["target"]}
    assert rows == {(3, END, PAD, PAD), (4, END, PAD, PAD)}
    assert len(taught.buckets.rows[0]) == 3


def test_eval_batches_have_one_shape_and_padded_rows(copying):
    batches = copying.eval_batches("test")
    assert {batch["source"].shape for batch in batches} == {(EXAMINED, 16)}
    assert {batch["target"].shape for batch in batches} == {(EXAMINED, 16)}
    rows = np.concatenate([batch["source"] for batch in batches])
    assert (rows[:400].max(axis=1) > PAD).all()
    assert (rows[400:] == PAD).all()


def test_a_limit_samples_all_groups(copying):
    whole, few = copying.eval_batches("valid"), copying.eval_batches("valid", 10)
    assert len(few) == 1
    assert set(map(tuple, few[0]["source"])) <= {tuple(row) for batch in whole for row in batch["source"]}
    found = copying.score("valid", [{"tokens": few[0]["target"]}], 10)
    assert found == {"exact_match": 1.0, "exact_match.even": 1.0, "exact_match.odd": 1.0}
    many = copying.eval_batches("valid", 10_000)
    assert len(many) == len(whole)


@pytest.mark.parametrize(("part", "limit"), [("train", None), ("dev", None), ("test", 0), ("test", -3)])
def test_train_is_no_evaluation_part(copying, part, limit):
    with pytest.raises(ValueError, match="must be 'valid' or 'test'"):
        copying.eval_batches(part, limit)


def test_unseen_symbols_are_left_out_in_evaluation():
    train, other, more = copies("ab", "b"), [Example("axb", ("ayb",))], [Example("abx", ("aby",))]
    skipping = problem({"train": train, "valid": more, "test": other})
    (batch,) = skipping.eval_batches("test")
    assert skipping.source.decode(batch["source"][0].tolist()) == "ab"
    # An answer cannot equal a target with a symbol that does not occur in training.
    assert skipping.score("test", [{"tokens": batch["target"]}]) == {"exact_match": 0.0}
    read = "has source symbols that do not occur in training; these are left out of the input"
    asked = "has target symbols that do not occur in training; no answer can have them"
    assert skipping.notes == tuple(f"{part}: 1 of 1 examples {words}" for part in PARTS[1:] for words in (read, asked))
    # If one side alone has such symbols, only that side is reported.
    strange = problem({"train": train, "valid": [Example("ab", ("ax",))], "test": train})
    assert strange.notes[0] == f"valid: 1 of 1 examples {asked}"
    assert not any(read in note for note in strange.notes)


def test_without_unknown_symbols_only_repeats_are_reported(copying):
    assert copying.notes == (
        "valid: 300 of 300 sources are also in train",
        "test: 400 of 400 sources are also in train",
        "test: 74 of 400 sources are also in valid",
    )
    assert problem({"train": copies("ab", "ba"), "valid": copies("aab"), "test": copies("bb")}).notes == ()


def test_prompt_and_answer(copying):
    batch = copying.encode_prompt("dab")
    assert batch["source"].shape == (1, 16)
    assert batch["source"][0].tolist() == [6, 3, 4, END] + [PAD] * 12
    assert (batch["target"] == PAD).all()
    assert copying.format_answer(copying.answer(Copier(), batch)) == "dab"


def test_too_long_prompt_is_refused(copying):
    assert copying.encode_prompt("abcd" * 3 + "abc")["source"].tolist() == [[3, 4, 5, 6] * 3 + [3, 4, 5, END]]
    with pytest.raises(DataError, match="the input has 16 tokens, but the model reads at most 15"):
        copying.encode_prompt("abcd" * 4)


def test_unseen_symbols_of_a_prompt_are_named(copying):
    with pytest.raises(DataError, match=r'"z" \(U\+007A\) at position 3; seen in training \(4\): a b c d'):
        copying.encode_prompt("abz")


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_prompt_is_refused(text):
    parts = copies("ab")
    with pytest.raises(DataError, match="is empty"):
        problem({"train": parts, "valid": parts, "test": parts}, Words()).encode_prompt(text)


def test_tokens_are_the_axes_of_a_map(copying):
    batch = copying.encode_prompt("dab")
    assert copying.tokens(batch) == {"source": ["d", "a", "b", "∎"], "target": []}
    answered = {**batch, "target": copying.answer(Copier(), batch)["tokens"]}
    assert copying.tokens(answered) == {"source": ["d", "a", "b", "∎"], "target": ["d", "a", "b", "∎"]}


def test_the_vocabulary_suffices_for_the_text_interface(copying):
    side = {"kind": "characters", "lower": False, "symbols": list("abcd")}
    numbers = {"lengths": [16, 16], "widths": sorted({width for width, _ in copying.buckets.widths})}
    assert copying.vocabulary == {"source": side, "target": side, "source_marks": "end"} | numbers
    other = copies("abcde")
    assert problem({"train": other, "valid": other, "test": other}).vocabulary["source"] != side


def test_text_interface_needs_no_data(copying):
    found = PairInterface.restored(json.loads(json.dumps(copying.vocabulary)), "vocabulary.json", smoothing=0.1)
    assert not isinstance(found, TaskData)
    assert found.shape == copying.shape
    assert found.vocabulary == copying.vocabulary
    asked = found.encode_prompt(" dab ")
    for name, values in copying.encode_prompt("dab").items():
        np.testing.assert_array_equal(asked[name], values)
    answer = found.answer(Copier(), asked)
    assert found.format_answer(answer) == "dab"
    batch = copying.batch(0, 0, 4)
    smooth = problem(copying._parts, smoothing=0.1).loss(Copier(), batch, None)[0]
    np.testing.assert_allclose(found.loss(Copier(), batch, None)[0], smooth)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": None}, "source contains no tokenizer"),
        ({"target": {"kind": "words"}}, "target: lower=None"),
        ({"lengths": [16]}, r"expected two .* got lengths=\[16\]"),
        ({"lengths": [16, 0]}, r"expected two .* got lengths=\[16, 0\]"),
        ({"widths": "8"}, "expected two .* widths='8'$"),
        ({"widths": [8.5]}, r"expected two .* widths=\[8.5\]$"),
    ],
)
def test_invalid_vocabulary_names_its_file(copying, change, words):
    with pytest.raises(DataError, match=f"^vocabulary.json: {words}"):
        PairInterface.restored(copying.vocabulary | change, "vocabulary.json")


def test_the_fingerprint_is_of_all_data():
    def fingerprint(train="ab", valid="a", test="b", group="", reading="ab"):
        return problem(
            {"train": [Example(train, (reading,))], "valid": copies(valid, group=group), "test": copies(test)}
        ).fingerprint

    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 64
    others = [
        fingerprint(train="ba"),
        fingerprint(valid="b"),
        fingerprint(test="a"),
        fingerprint(group="x"),
        fingerprint(reading="a"),
    ]
    assert len({fingerprint(), *others}) == 6


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_an_empty_part_is_refused(part):
    parts = {name: copies("ab") for name in ("train", "valid", "test")} | {part: []}
    with pytest.raises(DataError, match=f"the part '{part}' has no examples"):
        problem(parts)


@pytest.mark.parametrize("example", [Example("", ("a",)), Example("a", ()), Example("a", ("",))])
def test_an_empty_example_is_refused(example):
    parts = {"train": [*copies("ab"), example], "valid": copies("a"), "test": copies("a")}
    with pytest.raises(DataError, match="example 2 of the part 'train' has an empty side"):
        problem(parts)


def test_both_sides_may_share_their_symbols():
    parts = {part: [Example("low lower", ("new newer lowest",))] * 4 for part in ("train", "valid", "test")}
    shared = PairData(parts, (Bpe(size=40),), exact_match, (EXACT_MATCH,), 1)
    assert shared.source == shared.target
    assert shared.shape.source_vocabulary == shared.shape.target_vocabulary
    (batch,) = shared.eval_batches("valid")
    assert shared.score("valid", [{"tokens": batch["target"]}]) == {"exact_match": 1.0}
    assert shared.format_answer({"tokens": batch["target"][:1]}) == "new newer lowest"
    assert any(len(symbol) > 2 for symbol in shared.tokens(batch)["source"])
