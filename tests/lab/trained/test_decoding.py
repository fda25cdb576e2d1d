from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.text.vocabulary import END
from attnlab.decoding import Beam, Greedy, Sample
from attnlab.lab.trained.decoding import Answerer, DecodingOptions, one_line
from attnlab.lab.trained.load import Trained
from tests.lab.parrot import PROBLEM, parrot

OWN = Beam(size=8, penalty=0.6, best=3)


@pytest.mark.parametrize(
    ("asked", "own", "decoder"),
    [
        (DecodingOptions(), None, Greedy()),
        (DecodingOptions(), OWN, OWN),
        (DecodingOptions(beam=4), None, Beam(4)),
        (DecodingOptions(beam=4), OWN, Beam(4, 0.6, 3)),
        (DecodingOptions(beam=2), OWN, Beam(2, 0.6, 2)),
        (DecodingOptions(penalty=0.0), None, Beam(penalty=0.0)),
        (DecodingOptions(best=3), None, Beam(5, best=3)),
        (DecodingOptions(best=9), None, Beam(9, best=9)),
        (DecodingOptions(best=9), OWN, Beam(9, 0.6, 9)),
        (DecodingOptions(best=1), None, Greedy()),
        (DecodingOptions(best=1), OWN, Beam(8, 0.6, 1)),
        (DecodingOptions(temperature=0.5), OWN, Sample(0.5)),
        (DecodingOptions(top_k=3, top_p=0.9, best=4, seed=7), None, Sample(1.0, 3, 0.9, 4)),
        (DecodingOptions(seed=7), Sample(0.8), Sample(0.8)),
        (DecodingOptions(top_k=3), Sample(0.8), Sample(0.8, 3)),
        (DecodingOptions(temperature=0.5, best=2), Sample(0.8, 3), Sample(0.5, 3, best=2)),
        (DecodingOptions(best=3), Sample(0.8), Sample(0.8, best=3)),
        (DecodingOptions(beam=4), Sample(0.8), Beam(4)),
    ],
)
def test_options_select_the_decoder(asked, own, decoder):
    assert asked.decoder(own) == decoder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam": 2, "top_k": 3}, r"--beam 2 \(beam search\) and --top-k 3 \(sampling\) cannot be combined"),
        (
            {"penalty": 0.0, "temperature": 1.0},
            r"--penalty 0.0 \(beam search\) and --temperature 1.0 \(sampling\) cannot",
        ),
        ({"seed": 0, "beam": 3}, "--seed 0 applies only to sampling"),
        ({"seed": -1, "top_k": 1}, "--seed -1 must lie in 0 … 4294967295"),
        ({"best": 0}, "--best 0 must be at least 1"),
        ({"beam": 2, "best": 3}, "--best 3 must be at most --beam 2"),
        ({"beam": 0}, "--beam 0: size=0 must be at least 1"),
        ({"penalty": float("nan")}, "--penalty nan: penalty=nan must be"),
        ({"temperature": 0.0}, "--temperature 0.0: temperature=0.0 must be above 0"),
        ({"top_k": 0}, "--top-k 0: top_k=0 must be at least 1"),
        ({"length": 0}, "--length 0 must be at least 1"),
        ({"length": 9, "best": 2}, "--length 9 returns one continuation and cannot be combined with --best 2"),
        ({"top_p": 1.5}, "--top-p 1.5: top_p=1.5 must be"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        DecodingOptions(**options)


@pytest.mark.parametrize("own", [None, OWN])
def test_seed_without_sampling_is_refused(own):
    with pytest.raises(ValueError, match=r"^--seed 0 has no effect without sampling; add --temperature"):
        DecodingOptions(seed=0).decoder(own)


def test_decoding_options_are_refused_if_the_task_does_not_decode():
    DecodingOptions().check(SimpleNamespace(decodes=False, continues=False))
    DecodingOptions(beam=3).check(PROBLEM)
    with pytest.raises(ValueError, match=r"^--beam 3 has no effect: this task is not decoded symbol by symbol"):
        DecodingOptions(beam=3).check(SimpleNamespace(decodes=False, continues=False))
    DecodingOptions(length=3).check(SimpleNamespace(decodes=False, continues=True))
    with pytest.raises(ValueError, match=r"^--length 3 applies only to tasks that continue a text; remove the option"):
        DecodingOptions(length=3).check(PROBLEM)


def test_answers_are_text_with_the_best_first():
    batch = PROBLEM.encode_prompt("3 1 4")["source"]
    ((best, *others),) = Answerer(parrot(), DecodingOptions(best=3))(batch, np.ones(1))
    assert (best.text, best.finished) == ("3 1 4", True)
    assert best.tokens.tolist()[:4] == [*batch[0, :3].tolist(), END]
    assert len(others) == 2
    assert best.score > others[0].score >= others[1].score


def test_beams_with_score_minus_infinity_are_dropped():
    scores = np.array([[-1.0, -2.0, -np.inf], [-np.inf, -np.inf, -np.inf]], np.float32)

    def answers(model, batch, decoder, keys):
        return {"tokens": jnp.full((2, 3, 2), 4), "scores": jnp.asarray(scores)[batch["source"][:, 0]]}

    problem = SimpleNamespace(
        decodes=True, continues=False, decoder=None, answers=answers, format_answer=lambda answer: "x"
    )
    found = Answerer(Trained(SimpleNamespace(decoder=None), problem, {}))(np.array([[0], [1]]), np.arange(2))
    assert [[answer.score for answer in row] for row in found] == [[-1.0, -2.0], [-np.inf]]
    assert not found[0][0].finished


def test_samples_do_not_depend_on_other_lines_of_the_batch():
    answerer = Answerer(
        parrot(scores=np.linspace(0, 8, PROBLEM.shape.target_vocabulary)), DecodingOptions(temperature=3.0)
    )
    rows = np.repeat(PROBLEM.encode_prompt("3 1 4")["source"], 4, axis=0)
    texts = [row[0].text for row in answerer(rows, np.arange(4))]
    assert len(set(texts)) > 1
    assert [row[0].text for row in answerer(rows, np.arange(4)[::-1])] == texts[::-1]


def test_an_answer_is_one_line():
    assert one_line("a\nb\r\nc\rd") == "a b c d"
