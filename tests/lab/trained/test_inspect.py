"""Tests of `inspect` on untrained runs: the statistics of every map and checkpoint, and refused runs."""

import json
import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from jax.tree_util import Partial

from attnlab.analysis import map_statistics
from attnlab.data.batches import pad
from attnlab.data.io.files import DataError
from attnlab.data.text.units import Characters
from attnlab.data.text.vocabulary import END
from attnlab.lab.study.study import change
from attnlab.lab.trained.decoding import Answer, DivergedError
from attnlab.lab.trained.example import forced
from attnlab.lab.trained.inspect import _distance, _repeated, inspect
from attnlab.lab.trained.load import Trained, trained
from attnlab.lab.trained.snapshot import snapshot
from attnlab.mechanisms import Linear
from attnlab.models import Language, Transformer
from attnlab.models.detr import Detr
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.multi_head import MultiHead
from attnlab.pattern import Pattern
from attnlab.storage.json_file import dumps
from attnlab.tasks import Associations, Recall
from attnlab.tasks.text.continuation import LanguageModelData
from attnlab.tasks.text.transduction import PairData
from attnlab.tasks.vision.detection import Discs
from tests.lab.parrot import PROBLEM, parrot
from tests.lab.unfinished import run
from tests.small import EXPERIMENT, TASK

MODEL = Transformer(width=8, heads=2, layers=1, encoder=Linear())
TEXT = "1 2 3 4 0 1"
TOKENS = pad([[*PROBLEM.target.encode("3 1 2"), END]], PROBLEM.shape.target_length)[0]
ANSWER = Answer("3 1 2", -1.0, True, TOKENS)
NAMES = ["encoder", "decoder", "cross"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns the folders of two runs of one model on one problem."""
    home, experiment = tmp_path_factory.mktemp("runs") / "small", change(EXPERIMENT, model=MODEL)
    return run(home / "one", experiment), run(home / "two", experiment, seed=1)


@pytest.fixture(scope="module")
def found(runs):
    # The gradient of half the sum of squares is the parameters. That of the real loss takes seconds to compile.
    def loss(problem, model, batch, key):
        assert set(batch) == {"source", "target"}
        return sum((leaf**2).sum() for leaf in jax.tree.leaves(model)) / 2, {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PairData, "loss", loss)
        patch.setattr("attnlab.lab.trained.example.Answerer", lambda found: lambda *asked: [[ANSWER]])
        return inspect(runs[0], TEXT, other=runs[1])


def test_cross_attention_of_inspect_equals_that_of_sample(runs, found):
    seen = snapshot(
        MODEL, trained(runs[0]).model, PROBLEM, PROBLEM.encode_prompt(TEXT), {"tokens": ANSWER.tokens[None]}
    )
    cross = found["attentions"]["cross"]
    assert found["answer"] == "3 1 2"
    assert (cross["columns"], cross["rows"]) == (seen["source"], seen["target"])
    np.testing.assert_allclose(cross["layers"], seen["layers"], atol=1e-4)
    assert found["attentions"]["decoder"]["columns"] == ["⊢", *cross["rows"][:-1]]


def test_every_map_has_its_statistics(found):
    T, S = len(found["attentions"]["cross"]["rows"]), 7
    assert list(found["attentions"]) == NAMES
    for name, (rows, columns) in zip(NAMES, [(S, S), (T, T), (T, S)], strict=True):
        seen = found["attentions"][name]
        layers = np.asarray(seen["layers"])
        assert layers.shape == (1, 2, rows, columns)
        assert [len(heads) for heads in seen["statistics"]] == [2]
        for weights, told in zip(layers[0], seen["statistics"][0], strict=True):
            # The maps are rounded to four digits, so the tolerances are wide.
            assert told["rank"] == pytest.approx(map_statistics.effective_rank(weights), rel=1e-2)
            assert told["entropy"] == pytest.approx(map_statistics.mean(map_statistics.entropy(weights)), abs=1e-2)
            assert told["reach"] == pytest.approx(
                map_statistics.mean(map_statistics.attention_distance(weights)), abs=1e-2
            )
            assert 0 < told["relative_entropy"] <= 1
            assert (told["empty"], told["signed"]) == (0, False)
            assert ("least_total" in told) == seen["divides"] == (seen["mechanism"] == "linear")
            assert told.get("least_total", 1) > 0


def test_largest_possible_rank_and_entropy(found):
    encoder, decoder, cross = found["attentions"].values()
    T = len(decoder["rows"])
    # The rank of a linear map is at most its number of features: four, because elu + 1 keeps the head width.
    assert [seen["rank"] for seen in (encoder, decoder, cross)] == [4, T, min(T, 7)]
    assert [encoder["entropy"], cross["entropy"]] == pytest.approx([np.log(7)] * 2)
    assert decoder["entropy"] == pytest.approx(np.mean(np.log(np.arange(1, T + 1))))


def test_a_linear_map_is_far_from_softmax_and_softmax_is_not(found):
    assert {seen["mechanism"]: seen["softmax"] for seen in found["attentions"].values()} == {
        "linear": False,
        "softmax": True,
    }
    for name, seen in found["attentions"].items():
        for told in seen["statistics"][0]:
            assert (told["from_softmax"] > 0.01) == (name == "encoder")
            assert told["from_softmax"] >= 0 if name == "encoder" else told["from_softmax"] < 1e-6


def test_every_checkpoint_has_a_column(found):
    assert (found["step"], found["steps"], found["examples"]) == (12, 12, 8)
    assert [row["step"] for row in found["training"]] == [6, 12]
    before, after = found["training"]
    for name in NAMES:
        # The parameters of step 6 are half as large. Scores are products of two projections of normalized inputs.
        assert 0 < before["scores"][name][0] < after["scores"][name][0]
        assert before["statistics"][name]["relative_entropy"][0] > after["statistics"][name]["relative_entropy"][0]
        heads = [told["rank"] for told in found["attentions"][name]["statistics"][0]]
        assert after["statistics"][name]["rank"] == pytest.approx([np.mean(heads)])
    assert list(before["parts"]) == list(after["parts"])
    for part in before["parts"]:
        assert after["parts"][part]["parameters"] == pytest.approx(2 * before["parts"][part]["parameters"], rel=1e-5)
        assert after["parts"][part]["gradient"] == pytest.approx(after["parts"][part]["parameters"])
    assert after["loss"] == pytest.approx(4 * before["loss"])


def test_it_says_that_a_run_is_unfinished(runs, found):
    assert found["notes"] == ["unfinished run: the model is from step 12 of 12"]


def test_step_selects_the_inspected_checkpoint(runs, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "attnlab.lab.trained.inspect.trained", lambda folder, step=None: asked.append(step) or trained(folder, step)
    )
    monkeypatch.setattr("attnlab.lab.trained.example.Answerer", lambda found: lambda *asked: [[ANSWER]])
    monkeypatch.setattr("attnlab.lab.trained.inspect._training", lambda *what: ([{"step": 12}], []))
    found = inspect(runs[0], TEXT, step=6)
    assert asked == [6]
    assert (found["step"], found["steps"]) == (6, 12)
    assert found["notes"] == ["the model is from step 6; the newest checkpoint is from step 12"]


def test_distance_from_the_maps_of_another_run(runs, found):
    told = found["distance"]
    assert (told["run"], told["notes"]) == ("small/two", [])
    assert list(told["attentions"]) == NAMES
    for seen in told["attentions"].values():
        assert np.shape(seen["heads"]) == (1, 2)
        # The distance of the mean maps is at most the mean distance of the maps.
        assert 0 < seen["mean"][0] <= np.mean(seen["heads"]) + 1e-9


def test_result_is_serialisable(found):
    assert json.loads(dumps(found))["attentions"]["encoder"]["rank"] == 4


# Tests of inputs and runs that cannot be inspected.


def test_unseen_symbols_and_empty_inputs_are_refused(runs):
    with pytest.raises(DataError, match='never seen in training: "x"'):
        inspect(runs[0], "1 x 2")
    with pytest.raises(DataError, match="is empty"):
        inspect(runs[0], " ")


@pytest.fixture
def loaded(monkeypatch):
    """Returns a function that replaces the loaded run by a given one."""
    return lambda found: monkeypatch.setattr("attnlab.lab.trained.inspect.trained", lambda folder, step=None: found)


def test_a_model_without_attention(loaded):
    loaded(Trained(change(EXPERIMENT, model=Seq2Seq(width=4)), PROBLEM, None))
    with pytest.raises(ValueError, match=r"^small/base: the model has no attention, so there are no maps to show$"):
        inspect("small/base", TEXT)


def test_a_model_that_shows_no_maps(loaded):
    loaded(Trained(EXPERIMENT, Associations(keys=4, examined=3).load(), None))
    with pytest.raises(ValueError, match=r"^small/base: Transformer has no attention maps"):
        inspect("small/base", "0:1 0?")


def test_nonfinite_numbers_raise_diverged_error(loaded):
    loaded(parrot(scores=np.nan))
    with pytest.raises(DivergedError, match="returned non-finite values for this input"):
        inspect("run", "1 2")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Recall(vocabulary=4, pairs=1), "was trained on tokens, but small/one on pairs"),
        (
            replace(TASK, symbols=4),
            "was trained on source_vocabulary=7, target_vocabulary=7, but small/one on source_v",
        ),
        (replace(TASK, source_marks="both"), "has source_marks=both, but small/one has source_marks=end"),
    ],
)
def test_other_run_must_have_the_same_shape(loaded, problem, words):
    loaded(Trained(EXPERIMENT, problem.load(), None))
    with pytest.raises(ValueError, match=f"^--other small/two {re.escape(words)}"):
        _distance("small/one", Trained(EXPERIMENT, PROBLEM, None), None, "small/two")


def test_maps_of_other_numbers_of_heads_are_named_and_the_rest_compared(runs, monkeypatch):
    half, quarter = np.full((1, 2, 3, 2), 0.5), np.full((2, 1, 3, 4), 0.25)
    here, there = {"encoder": half, "decoder": half, "cross": quarter}, {"decoder": half * [0.5, 1.5], "cross": half}
    first = Trained(EXPERIMENT, PROBLEM, "here")
    monkeypatch.setattr("attnlab.lab.trained.inspect.observed", lambda model, *_: here if model == "here" else there)
    told = _distance(runs[0], first, None, runs[1])
    assert told["attentions"] == {"decoder": {"heads": [[0.25, 0.25]], "mean": [0.25]}}
    assert told["notes"] == [
        "encoder is not compared: layers × heads are 1 × 2 here and none in the other run",
        "cross is not compared: layers × heads are 2 × 1 here and 1 × 2 in the other run",
    ]
    del there["decoder"]
    with pytest.raises(
        ValueError, match=r"has no maps of the same shape as .*one: encoder is not compared: layers × heads are 1 × 2 "
    ):
        _distance(runs[0], first, None, runs[1])


def test_layers_with_different_numbers_of_heads_are_noted():
    layers = Pattern((MultiHead(value_heads=4), MultiHead()))
    assert _repeated(Language(width=8, heads=2, layers=2, attention=layers)) == [
        "layers have 4 and 2 heads in turn; each head of a layer with fewer is listed several times"
    ]
    for config in (Language(width=8, heads=2, layers=2), Seq2Seq(), object()):
        assert _repeated(config) == []


# Tests of the inputs and axes of one example.


def test_a_language_model_reads_itself():
    problem, config = Recall(vocabulary=4, pairs=2).load(), Language(width=4, heads=1, layers=1)
    # The model predicts the token that it reads.
    model = Partial(lambda tokens, keep, key: jax.nn.one_hot(tokens, problem.shape.vocabulary))
    found = forced(Trained(change(EXPERIMENT, model=config), problem, model), "k0 v1 k1")
    assert found.axes == {"decoder": (["k0", "v1", "k1"], ["k0", "v1", "k1"])}
    tokens, keep = found.inputs
    np.testing.assert_array_equal(tokens, problem.encode_prompt("k0 v1 k1")["tokens"][0])
    assert (keep.all(), found.answer) == (True, "k1")


def test_only_the_last_block_of_a_prompt_is_inspected():
    parts = {part: "abcdefgh" * 3 for part in ("train", "valid", "test")}
    problem = LanguageModelData(parts, Characters(), 4)
    config = Language(width=4, heads=1, layers=1)
    model = config.create(jax.random.key(0), problem.shape)
    found = forced(Trained(change(EXPERIMENT, model=config), problem, model), "abcdef")
    # The block contains the last four symbols of the prompt.
    assert found.axes == {"decoder": (list("cdef"), list("cdef"))}
    np.testing.assert_array_equal(found.inputs[0], problem.encode_prompt("cdef")["source"][0])
    assert set(found.answer) <= set("abcdefgh")


def test_detection_maps_have_positions_and_queries(tmp_path):
    task = Discs(train_examples=4, valid_examples=2, test_examples=2, rows=16, columns=24)
    model = Detr(width=8, heads=2, layers=1, queries=6, channels=4, stages=2)
    found = inspect(run(tmp_path / "one", change(EXPERIMENT, task=task, model=model), problem=task.load()), "test:1")
    places, queries = [f"{row},{column}" for row in range(1, 5) for column in range(1, 7)], list("123456")
    axes = {"encoder": (places, places), "query_attention": (queries, queries), "cross": (queries, places)}
    assert {name: (seen["rows"], seen["columns"]) for name, seen in found["attentions"].items()} == axes
    for seen in found["attentions"].values():
        np.testing.assert_allclose(np.sum(seen["layers"], axis=-1), 1, atol=3e-3)


def test_decoder_input_is_the_answer_shifted_by_one():
    found = forced(parrot(), "1 2 3")
    source, given, source_keep, target_keep = found.inputs
    ids = PROBLEM.encode_prompt("1 2 3")["source"][0]
    np.testing.assert_array_equal(given[:4], [1, *ids[:3]])
    np.testing.assert_array_equal(source, ids)
    assert (source_keep.sum(), target_keep.sum(), found.answer) == (4, 4, "1 2 3")
    assert found.axes["cross"] == (["1", "2", "3", "∎"], ["1", "2", "3", "∎"])
