"""Checks language modelling: blocks, likelihoods, and continuations of a prompt."""

import json
import math
import unicodedata

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text.units import Bpe, Bytes, Characters, Words
from attnlab.data.text.vocabulary import PAD
from attnlab.decoding import Beam, Greedy, Sample
from attnlab.mechanisms import Linear
from attnlab.models import Language
from attnlab.tasks.base.shapes import Tokens
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.tasks.text.text import Shakespeare, Text
from tests.tasks.compiled import answered, lost

PARTS = {"train": "to be or not to be\r\nthat is it " * 4, "valid": "to be, or not to bee", "test": "that is not it"}
KEYS = jax.random.split(jax.random.key(0), 1)


@pytest.fixture
def problem():
    return LanguageModelData(PARTS, Characters(), 8)


class Cycle:
    """A model that predicts id n + 1 after id n, in a circle. Its confidence grows with `sure`."""

    def __init__(self, size, sure=40.0):
        self.size, self.sure = size, sure

    def __call__(self, tokens, keep, key=None):
        return self.sure * jax.nn.one_hot(self.after(tokens), self.size)

    def after(self, token):
        return jnp.where(token + 1 < self.size, token + 1, 3)

    def start(self, length):
        return jnp.zeros((), jnp.int32)

    def step(self, state, token):
        return self(token, None), state + 1


def test_shape_and_blocks(problem):
    assert problem.shape == Tokens(problem.tokenizer.vocabulary.size, 8)
    batch = problem.batch(0, 0, 5)
    assert {name: (x.shape, str(x.dtype)) for name, x in batch.items()} == {
        "tokens": ((5, 8), "int32"), "answers": ((5, 8), "int32"), "scored": ((5, 8), "bool"),
    }  # fmt: skip
    np.testing.assert_array_equal(batch["tokens"][:, 1:], batch["answers"][:, :-1])
    text = problem.tokenizer.normalize(PARTS["train"].replace("\r\n", "\n"))
    for row, last in zip(batch["tokens"], batch["answers"][:, -1], strict=True):
        assert problem.tokenizer.decode([*row, last]) in text


def test_evaluation_scores_every_symbol_but_the_first(problem):
    # The comma does not occur in training and is left out.
    (batch,) = problem.eval_batches("valid")
    assert problem.tokenizer.decode(batch["tokens"][batch["scored"]]) == "to be or not to be"
    assert problem.tokenizer.decode(batch["answers"][batch["scored"]]) == "o be or not to bee"
    assert (batch["tokens"][-1, 3:] == PAD).all()
    (few,) = problem.eval_batches("valid", 2)
    assert few["scored"].shape == (2, 8)
    rows = [next(n for n in range(3) if (batch["tokens"][n] == row).all()) for row in few["tokens"]]
    np.testing.assert_array_equal(few["answers"], batch["answers"][rows])
    np.testing.assert_array_equal(few["scored"], batch["scored"][rows])
    with pytest.raises(ValueError, match="limit=0"):
        problem.eval_batches("valid", 0)


def test_scores_are_the_likelihood_of_the_text(problem):
    even = lambda tokens, keep, key=None: jnp.zeros((len(tokens), problem.shape.vocabulary))
    for limit in (None, 2):
        answers = answered(problem, even, "valid", limit)
        found = problem.score("valid", answers, limit)
        assert math.isclose(found["nats_per_character"], math.log(problem.shape.vocabulary), rel_tol=1e-6)
        assert math.isclose(found["perplexity"], problem.shape.vocabulary, rel_tol=1e-5)
    loss, _ = lost(problem, even, problem.batch(0, 0, 4))
    assert math.isclose(loss, math.log(problem.shape.vocabulary), rel_tol=1e-6)


def test_positions_after_the_end_are_not_scored():
    parts = {"train": "abcdefg" * 9, "valid": "abcdefg" * 2, "test": "efgabcdefga"}
    problem = LanguageModelData(parts, Characters(), 8)
    model = Cycle(problem.shape.vocabulary)
    for part in ("valid", "test"):
        answers = answered(problem, model, part)
        assert problem.score(part, answers) == pytest.approx(
            {"nats_per_character": 0.0, "perplexity": 1.0, "accuracy": 1.0}, abs=1e-6
        )


def test_longer_blocks_are_scored_by_position():
    problem = LanguageModelData(PARTS, Characters(), 4, 12)
    assert problem.shape.length == 12
    assert problem.batch(0, 0, 3)["tokens"].shape == (3, 4)
    # Twenty symbols make a block of twelve and one of eight, which ends early. Position n costs n.
    cost = np.arange(1.0, 13)
    answers = [
        {"nats": np.where(batch["scored"], cost, 0), "right": np.where(batch["scored"], 1, 0)}
        for batch in problem.eval_batches("valid")
    ]
    scored = int(sum(batch["scored"].sum() for batch in problem.eval_batches("valid")))
    rest = scored - 12
    found = problem.score("valid", answers)
    assert [name for name in found if "." in name] == [f"nats_per_character.{n}" for n in ("1-4", "5-8", "9-12")]
    assert found["nats_per_character.1-4"] == 2.5
    assert found["nats_per_character.5-8"] == pytest.approx(
        (5 + 6 + 7 + 8 + sum(range(5, min(rest, 8) + 1))) / (4 + min(rest, 8) - 4)
    )
    assert found["nats_per_character.9-12"] == 10.5
    assert found["nats_per_character"] == pytest.approx((cost.sum() + cost[:rest].sum()) / scored)


@pytest.mark.parametrize("units", [Characters(), Bytes(), Bpe(size=40)], ids=str)
def test_positions_of_blocks_have_all_characters(units):
    parts = {
        part: "the naïve cat sat, the fat cat sat on the hat " * n for part, n in zip(PARTS, (9, 5, 4), strict=True)
    }
    problem = LanguageModelData(parts, units, 4, 16)
    answers = [{"nats": 1.0 * batch["scored"], "right": batch["scored"]} for batch in problem.eval_batches("test")]
    found = problem.score("test", answers)
    scored = np.concatenate([batch["scored"] for batch in problem.eval_batches("test")])
    edges = {"1-4": (0, 4), "5-8": (4, 8), "9-16": (8, 16)}
    letters = [scored[:, a:b].sum() / found[f"nats_per_character.{name}"] for name, (a, b) in edges.items()]
    assert sum(letters) == pytest.approx(scored.sum() / found["nats_per_character"])
    with pytest.raises(ValueError, match=r"task.longest=8 must be at least task.length=64, or 0"):
        Shakespeare(longest=8)
    with pytest.raises(DataError, match=r"the part 'valid' has 19 symbols, but task.longest=20 requires more"):
        LanguageModelData(PARTS, Characters(), 4, 20)


@pytest.mark.parametrize("units", [Characters(), Bytes(), Bpe(size=40)], ids=str)
def test_nats_are_per_character_for_all_units(units):
    parts = dict.fromkeys(("train", "valid", "test"), "the cat é the cat é the cat " * 9)
    problem = LanguageModelData(parts, units, 8)
    even = lambda tokens, keep, key=None: jnp.zeros((len(tokens), problem.shape.vocabulary))
    answers = answered(problem, even, "test")
    scored = sum(int(batch["scored"].sum()) for batch in problem.eval_batches("test"))
    found = problem.score("test", answers)["nats_per_character"]
    # The first symbol is given, so that up to one word of the text is not predicted.
    characters = scored * math.log(problem.shape.vocabulary) / found
    assert len(parts["test"].rstrip()) - 4.1 <= characters <= len(parts["test"])


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_all_units_count_the_same_characters_in_any_normal_form(form):
    text = unicodedata.normalize(form, "한국어 naïve " * 40)
    parts = dict.fromkeys(PARTS, text)
    for units in (Characters(), Bytes(), Bpe(size=60)):
        problem = LanguageModelData(parts, units, 8)
        batches = problem.eval_batches("test")
        answers = [{"nats": 1.0 * batch["scored"], "right": batch["scored"]} for batch in batches]
        scored = sum(int(batch["scored"].sum()) for batch in batches)
        characters = scored / problem.score("test", answers)["nats_per_character"]
        # The first symbol is given. With BPE, it may be a word.
        assert 400 - 10 <= characters < 400
        np.testing.assert_array_equal(
            problem.encode_prompt(text)["source"], problem.encode_prompt("한국어 naïve " * 40)["source"]
        )


@pytest.mark.parametrize(
    ("units", "lost", "which"),
    [
        (Characters(), "9 of 60", '"щ" (U+0449) 9 ×'),
        (Words(), "3 of 16", '"щщщ" (U+0449 U+0449 U+0449) 3 ×'),
        (Bpe(size=40), "9 of 60", '"щ" (U+0449) 9 ×'),
        (Bytes(), "", ""),
    ],
)
def test_unknown_symbols_are_reported_and_excluded_from_the_loss(units, lost, which):
    text = "the cat sat on the mat. "
    parts = {"train": text * 9, "valid": text * 3, "test": "the cat sat on щщщ " * 3 + "the"}
    problem = LanguageModelData(parts, units, 8)
    told = f"test: {lost} symbols do not occur in training and are left out: {which}"
    assert problem.notes == ((told,) if lost else ())
    even = lambda tokens, keep, key=None: jnp.zeros((len(tokens), problem.shape.vocabulary))
    found = problem.score("test", answered(problem, even, "test"))
    scored = np.concatenate([batch["answers"][batch["scored"]] for batch in problem.eval_batches("test")])
    nats = len(scored) * math.log(problem.shape.vocabulary)
    if isinstance(units, Words):
        assert found["nats_per_word"] == pytest.approx(math.log(problem.shape.vocabulary), rel=1e-5)
    else:
        characters = len(problem.tokenizer.decode(scored, within=True))
        assert found["nats_per_character"] == pytest.approx(nats / characters, rel=1e-5)
    if lost:
        with pytest.raises(DataError, match=r"^the part 'valid': [\d,]+ of [\d,]+ symbols do not occur .*щ.* ×, …"):
            LanguageModelData(parts | {"valid": "щщщ ы юю шш" * 9 + text}, units, 8)


def test_words_are_scored_in_nats_per_word():
    """Units of words leave out unknown words and do not predict white space."""
    parts = {part: "the cat sat on the mat. " * 9 for part in PARTS}
    assert LanguageModelData(parts, Words(), 4, 8).metric.name == "nats_per_word"
    assert LanguageModelData(parts, Bpe(size=40), 4).metric.name == "nats_per_character"
    assert "units" in Shakespeare().training_only_fields
    assert "units" not in Shakespeare(units=Words()).training_only_fields


@pytest.mark.parametrize("task", [Shakespeare, Text])
def test_lower_case_changes_the_evaluation_data(task):
    assert all(task(units=units).training_only_fields for units in (Characters(), Bytes(), Bpe()))
    assert not any(
        task(units=units).training_only_fields for units in (Characters(lower=True), Bpe(lower=True), Words())
    )


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_split_character_counts_once(length):
    text = "щ€𝄞a" * 20
    problem = LanguageModelData(dict.fromkeys(PARTS, "a" + text), Bytes(), length, 2 * length)
    batches = problem.eval_batches("test")
    scored = np.concatenate([batch["scored"] for batch in batches])
    found = problem.score("test", [{"nats": 1.0 * batch["scored"], "right": batch["scored"]} for batch in batches])
    assert scored.sum() / found["nats_per_character"] == pytest.approx(len(text))
    # Half of the positions hold about half of the characters, wherever characters are split.
    half = scored[:, :length].sum() / found[f"nats_per_character.1-{length}"]
    rest = scored[:, length:].sum() / found[f"nats_per_character.{length + 1}-{2 * length}"]
    assert half + rest == pytest.approx(len(text))
    assert abs(half / len(text) - 0.5) < 0.11
    # The characters of single blocks add up to those of the text.
    assert sum(
        problem._amount(row[kept])
        for batch in batches
        for row, kept in zip(batch["answers"], batch["scored"], strict=True)
    ) == len(text)


def test_a_bpe_prompt_is_unchanged_and_its_continuation_keeps_spaces():
    parts = {part: "the king\nthe kingdom of the king\n" * 20 for part in PARTS}
    problem = LanguageModelData(parts, Bpe(size=60), 4)
    tokenizer = problem.tokenizer
    ids = problem.encode_prompt("the king")["source"][0].tolist()
    assert "".join(tokenizer.vocabulary.decode(ids)) == "the king"
    for follows in (" of", "dom"):
        told = tokenizer.encode(follows, within=True)
        assert problem.format_answer({"tokens": np.array([told])}) == follows


def test_prompt_is_continued():
    parts = dict.fromkeys(("train", "valid", "test"), "abcdefg" * 9)
    problem = LanguageModelData(parts, Characters(), 12)
    model = Cycle(problem.shape.vocabulary)
    run = jax.jit(lambda batch, decoder: problem.answers(model, batch, decoder, KEYS), static_argnums=1)
    answer = lambda text, decoder: run(problem.encode_prompt(text), decoder)
    for decoder in (Greedy(), Beam(2, best=1), Sample()):
        tokens = answer("bcd", decoder)["tokens"]
        assert tokens.shape == (1, 1, 10)
        assert problem.format_answer({"tokens": tokens[:, 0]}) == "efgabcdefg"
    # Only the end of a long prompt is read.
    assert problem.format_answer({"tokens": answer("abcdefgabcdefgab", Greedy())["tokens"][:, 0]}) == "cdefgab"
    assert isinstance(problem.decoder, Sample)


def test_reserved_symbols_are_never_sampled():
    problem = LanguageModelData(dict.fromkeys(PARTS, "ab" * 30), Characters(), 40)
    # Three of the five equally likely symbols are marks.
    drawn = problem.answers(Cycle(problem.shape.vocabulary, 0.0), problem.encode_prompt("ab"), Sample(best=4), KEYS)
    assert (drawn["tokens"] >= 3).all()
    assert len(problem.format_answer({"tokens": drawn["tokens"][:, 0]})) == drawn["tokens"].shape[2]


def test_continuation_agrees_with_scores():
    problem = LanguageModelData(PARTS, Characters(), 8)
    config = Language(width=8, heads=2, layers=1, mechanism=Linear())
    model = jax.jit(lambda: config.create(jax.random.key(1), problem.shape))()
    prompt = problem.encode_prompt("to be")["source"]
    answer = jax.jit(lambda model, source: problem.answers(model, {"source": source}, Greedy())["tokens"][0, 0])
    said = answer(model, prompt[:, -4:]).tolist()
    whole = [*prompt[0, -4:].tolist(), *said]
    scores = jax.jit(lambda model, tokens: model(tokens, tokens >= 0))(model, jnp.array(whole[:-1]))
    # Marks are never generated.
    assert whole[4:] == (3 + jnp.argmax(scores[3:, 3:], axis=1)).tolist()


def test_invalid_prompts_are_refused(problem):
    with pytest.raises(DataError, match="is empty; expected the beginning"):
        problem.encode_prompt("")
    with pytest.raises(DataError, match=r"never seen in training: \"X\""):
        problem.encode_prompt("X")
    assert problem.encode_prompt("be\r\n")["source"].shape == (1, 3)


def test_text_interface_needs_no_data(problem):
    kept = json.loads(json.dumps(problem.vocabulary))
    found = Text(train="gone", valid="gone", test="gone").text_interface(kept, "vocabulary.json")
    assert found.shape == problem.shape
    assert found.vocabulary == problem.vocabulary
    np.testing.assert_array_equal(
        found.encode_prompt("to be\r\n")["source"], problem.encode_prompt("to be\n")["source"]
    )
    assert found.format_answer({"tokens": problem.encode_prompt("to be")["source"]}) == "to be"
    assert found.decoder == problem.decoder
    other = LanguageModelData(PARTS | {"train": "other symbols altogether"}, Characters(), 8)
    assert other.vocabulary != problem.vocabulary
    assert other.fingerprint != problem.fingerprint


@pytest.mark.parametrize(
    ("change", "words"),
    [({"length": 0}, "length=0"), ({"length": "8"}, "length='8'"), ({"text": []}, "text contains no tokenizer")],
)
def test_invalid_vocabulary_names_its_file(problem, change, words):
    with pytest.raises(DataError, match=f"^vocabulary.json: {words}"):
        Text().text_interface(problem.vocabulary | change, "vocabulary.json")


def test_user_text_files(tmp_path):
    for part, text in PARTS.items():
        (tmp_path / f"{part}.txt").write_text("\ufeff" + text, newline="")
    files = {part: str(tmp_path / f"{part}.txt") for part in PARTS}
    problem = Text(**files, length=8).load()
    assert problem.fingerprint == LanguageModelData(PARTS, Characters(), 8).fingerprint
    with pytest.raises(ValueError, match=r"task\.test='' must be the path of a file"):
        Text(**files | {"test": ""}).load()
    with pytest.raises(DataError, match=r"the part 'valid' has 19 symbols, but task\.length=20 requires more"):
        Text(**files, length=20).load()
    (tmp_path / "test.txt").write_bytes(b"ab\xff")
    with pytest.raises(DataError, match=r"test\.txt.*byte 2"):
        Text(**files, length=8).load()
    (tmp_path / "test.txt").write_text("\n")
    with pytest.raises(DataError, match=r"test\.txt contains no text"):
        Text(**files, length=8).load()


@pytest.mark.parametrize("task", [Shakespeare, Text])
def test_fields_are_checked(task):
    with pytest.raises(ValueError, match=r"task\.length=0 must be"):
        task(length=0)
    with pytest.raises(ValueError, match=r"task\.units=5 must be a TokenizerSpec"):
        task(units=5)


def test_lines_repeated_in_a_later_part_are_reported():
    line = "a line that is long enough for it to be no chance, number {}\n"
    text = lambda *numbers: "short\n" + "".join(line.format(n) for n in numbers)
    problem = LanguageModelData({"train": text(0, 1, 2, 3), "valid": text(1, 2), "test": text(0, 3, 1)}, Bytes(), 8)
    what = "lines of 40 characters or more"
    told = (
        f"valid: 2 of 2 {what} are also in train",
        f"test: 3 of 3 {what} are also in train",
        f"test: 1 of 3 {what} is also in valid",
    )
    assert problem.notes == told


def test_part_equal_to_training_is_reported():
    parts = dict.fromkeys(("train", "valid"), "to be or not\nto be") | {"test": "or not to be\nor"}
    assert LanguageModelData(parts, Bytes(), 8).notes == ("valid: the text equals that of train",)
    parts = dict.fromkeys(("valid", "test"), "to be or not\nto be") | {"train": "or not to be\nor"}
    assert LanguageModelData(parts, Bytes(), 8).notes == ("test: the text equals that of valid",)
