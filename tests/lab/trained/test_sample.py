"""Tests of `sample` with models at their initial weights: the answers, the map, and how both are shown."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.text.units import Characters
from attnlab.decoding import Beam, Greedy, Sample
from attnlab.lab.study.study import change
from attnlab.lab.trained.decoding import Answer, DecodingOptions, DivergedError
from attnlab.lab.trained.load import Trained
from attnlab.lab.trained.sample import UNFINISHED, lines, sample, scored
from attnlab.lab.trained.snapshot import snapshots
from attnlab.lab.trained.translate import translate
from attnlab.models import Language
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks import Associations
from attnlab.tasks.text.continuation import LanguageModelData
from tests.lab.parrot import PROBLEM, parrot
from tests.small import EXPERIMENT


def run(model=EXPERIMENT.model, decoder=None):
    drawn = model.create(jax.random.key(0), PROBLEM.shape)
    return Trained(change(EXPERIMENT, model=model, decoder=decoder), PROBLEM, drawn)


TRANSFORMER = run()


@pytest.fixture
def trained(monkeypatch):
    """Returns a function that replaces the loaded run by a given one."""

    def trained(run):
        for room in ("sample", "translate"):
            monkeypatch.setattr(f"attnlab.lab.trained.{room}.trained", lambda folder, step, data: run)

    trained(TRANSFORMER)
    return trained


def test_default_decoder_is_greedy(trained):
    found = sample("run", "1 2 3")
    assert found["decoder"] == Greedy()
    answer = jax.jit(PROBLEM.answer)(TRANSFORMER.model, PROBLEM.encode_prompt("1 2 3"))
    assert found["answer"] == found["answers"][0].text == PROBLEM.format_answer(answer)
    layers = np.asarray(found["layers"])
    assert layers.shape == (1, 2, len(found["target"]), 4)
    np.testing.assert_allclose(layers.sum(-1), 1, atol=1e-3)
    np.testing.assert_allclose(found["map"], layers[-1].mean(0))
    assert found["source"] == ["1", "2", "3", "∎"]


def test_several_answers_and_the_map_of_the_best(trained):
    found = sample("run", "1 2 3", DecodingOptions(best=3))
    assert found["decoder"] == Beam(best=3)
    assert len({answer.text for answer in found["answers"]}) == 3
    best = found["answers"][0]
    assert found["answer"] == best.text
    assert [*best.text.split(), *(["∎"] if best.finished else [])] == found["target"]


def test_the_decoder_of_the_run_is_used(trained):
    trained(run(decoder=Beam(size=5, best=3)))
    assert sample("run", "1 2 3")["decoder"] == Beam(size=5, best=3)


def test_samples_equal_those_of_translate(trained):
    asked = DecodingOptions(temperature=5.0, seed=3)
    found = sample("run", "1 2 3", asked)
    assert found["decoder"] == Sample(temperature=5.0)
    assert [found["answer"]] == [answer.text for answer in translate("run", ["1 2 3"], asked, batch=1)]


def test_a_model_without_attention_has_no_map(trained):
    trained(run(Seq2Seq(width=4)))
    found = sample("run", "1 2 3")
    assert (found["map"], found["layers"], found["source"]) == (None, None, ["1", "2", "3", "∎"])
    whole = [found["answer"]] if not found["cut"] else [found["answer"] + " …", UNFINISHED]
    assert lines(found) == whole


def test_user_model_without_attentions_has_no_map(trained):
    own = replace(run(), experiment=replace(EXPERIMENT, model=SimpleNamespace(create=lambda key, shape: None)))
    trained(own)
    assert sample("run", "1 2 3")["map"] is None
    assert snapshots(own.experiment.model, own.model, PROBLEM, lambda count: {}) is None


def test_undecoded_task_has_one_answer_and_no_map(trained, monkeypatch):
    problem = Associations(keys=4, examined=3).load()
    monkeypatch.setattr(problem, "answer", lambda model, batch: {"predicted": batch["answers"]})
    trained(Trained(EXPERIMENT, problem, None))
    found = sample("run", "0:1 2:3 0?")
    assert lines(found) == ["1"]
    with pytest.raises(ValueError, match=r"^--best 2 has no effect: this task is not decoded symbol by symbol"):
        sample("run", "0:1 2:3 0?", DecodingOptions(best=2))


def test_text_is_continued_block_by_block(trained):
    problem = LanguageModelData(dict.fromkeys(PARTS, "abcdefg" * 9), Characters(), 8)
    writer = Language(width=8, heads=1, layers=1, feedforward=8).create(jax.random.key(3), problem.shape)
    trained(Trained(EXPERIMENT, problem, writer))
    found = sample("run", "abcdefg", DecodingOptions(length=13, beam=1))
    assert found["notes"][1:] == ["the model reads only the last 4 of the 7 symbols, half of its block of 8"]
    assert len(found["answer"]) == 13
    # Each block continues the end of the text before it.
    text = "abcdefg"
    while len(text) < 20:
        text += sample("run", text[-4:], DecodingOptions(beam=1))["answer"]
    assert text[7:20] == found["answer"]
    assert sample("run", "abc")["notes"][1:] == []
    for asked in (DecodingOptions(), DecodingOptions(top_k=3, seed=1)):
        # Without a length, the answer is the first block.
        short, long = (sample("run", "abc", one)["answer"] for one in (asked, replace(asked, length=20)))
        assert long.startswith(short)
        assert len(long) == 20


def test_nonfinite_scores_are_no_answer(trained):
    trained(parrot(scores=np.nan))
    with pytest.raises(DivergedError, match="returned non-finite values for this input") as refused:
        sample("run", "1 2")
    assert refused.value.exit_code == 5


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_input_is_refused(trained, text):
    with pytest.raises(DataError, match="is empty"):
        sample("run", text)


FOUND = {
    "answer": "b a",
    "answers": [
        Answer("b a", -0.25, True, np.zeros(3)),
        Answer("b", -1.5, True, np.zeros(3)),
        Answer("b b b", -12.0, False, np.zeros(3)),
    ],
    "decoder": Beam(penalty=0.5, best=3),
    "cut": False,
    "source": ["a", "b"],
    "target": ["b", "a", "∎"],
    "map": [[0, 1], [1, 0], [0.5, 0.5]],
}


def test_output_order_is_best_answer_all_answers_map():
    assert lines(FOUND) == [
        "b a",
        "",
        "log-probability in nats, divided by ((5 + tokens) / 6)^0.5",
        "1     -0.250  b a",
        "2     -1.500  b",
        "3    -12.000  b b b …",
        "… marks an answer cut off at the maximum length",
        "",
        "  ab",
        "b  █",
        "a █",
        "∎ ▒▒",
    ]
    one = FOUND | {"answers": FOUND["answers"][:1]}
    assert lines(one)[:3] == ["b a", "", "  ab"]
    assert lines(one | {"cut": True})[:3] == ["b a …", UNFINISHED, ""]
    assert lines(one, 3)[2:] == ["  a", "b", "a █", "∎ ▒", "", "  b", "b █", "a", "∎ ▒"]


def test_scores_are_described():
    assert scored(Greedy()) == scored(Sample()) == scored(Beam(penalty=0.0)) == "log-probability in nats"
