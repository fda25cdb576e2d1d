import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.text.example import Example
from attnlab.data.text.units import Bpe, Characters, Words
from attnlab.data.text.vocabulary import BEGIN, END, PAD
from attnlab.tasks.base.metrics import EXACT_MATCH, WORD_ERROR_RATE, error_rates, exact_match
from attnlab.tasks.base.task import TaskData
from attnlab.tasks.text.pairing import PairInterface
from attnlab.tasks.text.transduction import EXAMINED, PairData


def problem(parts, unit=Characters(), measure=exact_match, metrics=(EXACT_MATCH,), buckets=3, **more):
    return PairData(parts, (unit, unit), measure, metrics, buckets, **more)


def copies(*words, group=""):
    return [Example(word, (word,), group) for word in words]


@pytest.fixture(scope="module")
def copying():
    """Words to be copied, of the letters a to d."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("abcd"), random.integers(1, 14))) for _ in range(700)]
    valid = copies(*words[:300:2], group="even") + copies(*words[1:300:2], group="odd")
    return problem({"train": copies(*words, "abcd"), "valid": valid, "test": copies(*words[300:])})


@jax.tree_util.register_pytree_node_class
class Copier:
    """A model that knows: it says the source's symbols in order, then END. `scale` is its one parameter."""

    def __init__(self, scale=30.0, vocabulary=7):
        self.scale, self.vocabulary = scale, vocabulary

    def tree_flatten(self):
        return (self.scale,), self.vocabulary

    @classmethod
    def tree_unflatten(cls, vocabulary, leaves):
        return cls(*leaves, vocabulary)

    def __call__(self, source, target, source_keep, target_keep, key=None):
        said = jnp.pad(jnp.where(source_keep, source, END), (0, len(target)), constant_values=END)
        return self.scale * jax.nn.one_hot(said[: len(target)], self.vocabulary)

    def start(self, source, source_keep, length):
        return jnp.pad(jnp.where(source_keep, source, END), (0, 1), constant_values=END), jnp.int32(0)

    def step(self, state, token):
        source, i = state
        at = jnp.minimum(i, len(source) - 1)
        return self.scale * jax.nn.one_hot(source[at], self.vocabulary), (source, i + 1)


class Seen:
    """A model with uniform scores that keeps what it was shown."""

    def __init__(self, vocabulary):
        self.vocabulary, self.shown = vocabulary, {}

    def __call__(self, source, target, source_keep, target_keep, key=None):
        def keep(**shown):
            self.shown.setdefault("rows", []).append({name: np.asarray(x) for name, x in shown.items()})

        bits = jnp.zeros((), jnp.uint32) if key is None else jax.random.bits(key)
        keeps = {"source_keep": source_keep, "target_keep": target_keep}
        jax.debug.callback(keep, source=source, target=target, bits=bits, **keeps)
        return jnp.zeros((len(target), self.vocabulary))


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
    for array, codec in ((copying._sources, copying.source), (copying._targets, copying.target)):
        assert array.min() == PAD
        assert array.max() == codec.vocabulary.size - 1


def test_every_pronunciation_is_a_training_pair():
    train = [Example("ab", ("x", "y")), Example("a", ("x",))]
    taught = problem({"train": train, "valid": train, "test": train}, buckets=1)
    rows = {tuple(row.tolist()) for row in taught.batch(0, 0, 3)["target"]}
    assert rows == {(3, END, PAD, PAD), (4, END, PAD, PAD)}
    assert len(taught.buckets.rows[0]) == 3


def test_loss_of_uniform_scores_is_the_logarithm_of_the_vocabulary(copying):
    batch = copying.batch(0, 0, 8)
    loss, metrics = copying.loss(Copier(0.0), batch, None)
    assert loss == pytest.approx(math.log(7), rel=1e-6)
    assert loss.dtype == jnp.float32
    assert metrics["token_accuracy"] == 0  # argmax of equals is PAD


def test_loss_by_hand():
    parts = copies("ab", "b")
    tiny = problem({"train": parts, "valid": parts, "test": parts}, buckets=1)
    batch = {"source": np.array([[3, 4, 0, 0]]), "target": np.array([[3, 4, END, 0]])}

    def model(source, target, source_keep, target_keep, key=None):
        # Scores of PAD, BEGIN, END, a, b; right, wrong, uniform, and nonsense where nothing is asked.
        return jnp.array([[0, 0, 0, 2.0, 0], [0, 0, 0, 2.0, 0], [0, 0, 0, 0, 0], [jnp.inf, 9, 9, 9, 9]])

    loss, metrics = tiny.loss(model, batch, None)
    total = math.log(4 + math.e**2)
    assert loss == pytest.approx(((total - 2) + total + math.log(5)) / 3, rel=1e-6)
    assert metrics["token_accuracy"] == pytest.approx(1 / 3)


def test_loss_is_the_mean_over_tokens_and_padding_changes_nothing(copying):
    batch = copying.batch(0, 0, 8)
    wide = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in batch.items()}
    empty = {name: np.concatenate([x, np.zeros_like(x)]) for name, x in batch.items()}

    # Scores depend on the token given, so that rows differ.
    def model(source, target, source_keep, target_keep, key=None):
        return 3.0 * jax.nn.one_hot(target, 7)

    loss = copying.loss(model, batch, None)[0]
    for padded in (wide, empty):
        assert copying.loss(model, padded, None)[0] == pytest.approx(float(loss), rel=1e-6)


def test_no_tokens_give_zero_and_not_nan(copying):
    nothing = {"source": np.zeros((2, 4), np.int32), "target": np.zeros((2, 4), np.int32)}
    loss, metrics = copying.loss(Copier(), nothing, None)
    assert loss == 0
    assert metrics["token_accuracy"] == 0


def test_inputs_are_shifted_targets_and_masks(copying):
    batch = copying.batch(0, 0, 4)
    model = Seen(7)
    copying.loss(model, batch, None)
    jax.effects_barrier()
    shown = sorted(model.shown["rows"], key=lambda row: row["source"].tolist())
    order = sorted(range(4), key=lambda n: batch["source"][n].tolist())
    for row, n in zip(shown, order, strict=True):
        target = batch["target"][n]
        assert row["source"].tolist() == batch["source"][n].tolist()
        assert row["target"].tolist() == [BEGIN, *target[:-1].tolist()]
        assert row["source_keep"].tolist() == (batch["source"][n] != PAD).tolist()
        assert row["target_keep"].tolist() == (target != PAD).tolist()


def test_every_example_has_a_key_of_its_own(copying):
    model = Seen(7)
    copying.loss(model, copying.batch(0, 0, 4), jax.random.key(0))
    jax.effects_barrier()
    assert len({int(row["bits"]) for row in model.shown["rows"]}) == 4


def test_loss_is_traceable_and_has_gradients(copying):
    batch = copying.batch(0, 0, 8)

    def value(model, batch):
        return copying.loss(model, batch, None)[0]

    eager, grown = value(Copier(1.0), batch), jax.grad(value)(Copier(1.0), batch)
    assert jax.jit(value)(Copier(1.0), batch) == pytest.approx(float(eager), rel=1e-6)
    assert grown.scale < 0  # the surer, the better


def test_a_perfect_model_is_always_right(copying):
    answer = jax.jit(copying.answer)
    answers = [answer(Copier(), batch) for batch in copying.eval_batches("valid")]
    scores = copying.score("valid", answers)
    assert scores == {"exact_match": 1.0, "exact_match.even": 1.0, "exact_match.odd": 1.0}


def test_scores_by_hand(copying):
    batches = copying.eval_batches("valid")
    answers = [{"tokens": batch["target"].copy()} for batch in batches]
    answers[0]["tokens"][:30] = END  # thirty of the 150 even ones say nothing
    scores = copying.score("valid", answers)
    assert scores["exact_match"] == pytest.approx(270 / 300)
    assert scores["exact_match.even"] == pytest.approx(120 / 150)
    assert scores["exact_match.odd"] == 1.0


def test_symbols_after_the_end_mark_are_ignored(copying):
    answers = [
        {"tokens": np.where(batch["target"] == PAD, 5, batch["target"])} for batch in copying.eval_batches("test")
    ]
    assert copying.score("test", answers)["exact_match"] == 1.0


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


def test_too_few_answers_are_refused(copying):
    with pytest.raises(ValueError, match="expected answers to 300 examples of 'valid', got 256"):
        copying.score("valid", [{"tokens": copying.eval_batches("valid")[0]["target"]}])


@pytest.mark.parametrize(("part", "limit"), [("train", None), ("dev", None), ("test", 0), ("test", -3)])
def test_train_is_no_evaluation_part(copying, part, limit):
    with pytest.raises(ValueError, match="must be 'valid' or 'test'"):
        copying.eval_batches(part, limit)


def test_unseen_symbols_are_left_out_in_evaluation():
    train, other, more = copies("ab", "b"), [Example("axb", ("ayb",))], [Example("abx", ("aby",))]
    skipping = problem({"train": train, "valid": more, "test": other})
    (batch,) = skipping.eval_batches("test")
    assert skipping.source.decode(batch["source"][0].tolist()) == "ab"
    # And what it cannot say, it cannot get right.
    assert skipping.score("test", [{"tokens": batch["target"]}]) == {"exact_match": 0.0}
    read = "have source symbols that do not occur in training and are left out"
    asked = "have target symbols that do not occur in training"
    assert skipping.notes == tuple(f"{part}: 1 of 1 examples {words}" for part in PARTS[1:] for words in (read, asked))
    # Of one side alone no more is told than of that.
    strange = problem({"train": train, "valid": [Example("ab", ("ax",))], "test": train})
    assert strange.notes[0] == f"valid: 1 of 1 examples {asked}"
    assert not any(read in note for note in strange.notes)


def test_without_unknown_symbols_only_repeats_are_reported(copying):
    assert copying.notes == (
        "valid: 300 of 300 examples are also in train",
        "test: 400 of 400 examples are also in train",
        "test: 74 of 400 examples are also in valid",
    )
    assert problem({"train": copies("ab", "ba"), "valid": copies("aab"), "test": copies("bb")}).notes == ()


def test_several_references_count_as_right():
    train = [Example("ab", ("x", "xyx")), Example("a", ("y",))]
    rated = problem(
        {"train": train, "valid": train, "test": train},
        Characters(),
        error_rates,
        (WORD_ERROR_RATE,),
    )
    x, y = 3, 4
    answers = [{"tokens": np.array([[x, y, x, END], [x, END, PAD, PAD]])}]
    assert rated.score("test", answers) == {"word_error_rate": 0.5, "phoneme_error_rate": 1 / 4}
    assert (rated.metric.name, rated.metric.higher) == ("word_error_rate", False)


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


def test_references_are_compared_as_written():
    decomposed = [Example("a", ("e\u0301",)), Example("b", ("\u00e9",))]
    alike = problem({"train": decomposed, "valid": decomposed, "test": decomposed}, buckets=1)
    (batch,) = alike.eval_batches("test")
    assert alike.score("test", [{"tokens": batch["target"]}]) == {"exact_match": 1.0}


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_label_smoothing_is_distributed_over_all_symbols(copying, smoothing):
    smooth = problem(copying._parts, smoothing=smoothing)
    batch = smooth.batch(0, 0, 4)
    scores = np.random.default_rng(0).normal(size=(batch["target"].shape[1], 7)).astype(np.float32)
    found, _ = smooth.loss(lambda *given, **more: jnp.asarray(scores), batch, None)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    losses = []
    for target in batch["target"]:
        for t, symbol in enumerate(target[target != PAD]):
            wanted = (1 - smoothing) * np.eye(7)[symbol] + smoothing / 7
            losses.append(-(wanted * logs[t]).sum())
    assert found == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_best_answer_of_a_decoder_is_taken():
    from attnlab.decoding import Beam

    parts = copies("ab", "b", "abab")
    tiny = problem({"train": parts, "valid": parts, "test": parts}, buckets=1)
    (batch,) = tiny.eval_batches("test")
    model = Copier(vocabulary=5)
    many = tiny.answers(model, batch, Beam(size=2, best=2))
    assert many["tokens"].shape[:2] == (3, 2)
    np.testing.assert_array_equal(tiny.answer(model, batch, Beam(size=2))["tokens"], many["tokens"][:, 0])
    np.testing.assert_array_equal(tiny.answer(model, batch)["tokens"], many["tokens"][:, 0])


def test_reference_likelihoods_equal_teacher_forcing():
    parts = {"train": copies("abcd"), "valid": copies("abcd", "ba"), "test": copies("abc")}
    asked = problem(parts, likelihood=True)
    (batch,) = asked.eval_batches("valid")
    for scale in (0.0, 3.0):
        answer = asked.answer(Copier(scale), batch)
        # A symbol's: of seven, the right one at that height.
        cost = np.log(np.exp(scale) + 6) - scale
        np.testing.assert_allclose(answer["nats"], [5 * cost, 3 * cost], rtol=1e-5)
        assert asked.score("valid", [answer])["perplexity"] == pytest.approx(np.exp(cost))
    assert "nats" not in problem(parts).answer(Copier(), batch)
