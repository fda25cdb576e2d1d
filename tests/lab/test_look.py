"""One input through a model, its weights as they were drawn: the answers, the map, and how both are shown."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import maps
from attnlab.data.files import DataError
from attnlab.data.names import PARTS
from attnlab.data.units import Characters
from attnlab.decoding import Beam, Greedy, Sample
from attnlab.lab.answering import Answer, Asked, DivergedError
from attnlab.lab.forced import forced
from attnlab.lab.inspecting import _attentions
from attnlab.lab.loading import Trained
from attnlab.lab.look import UNFINISHED, lines, looks, sample, scored
from attnlab.lab.study import change
from attnlab.lab.translating import translate
from attnlab.models import Classifier, Language, ViT
from attnlab.models.gat import Gat
from attnlab.models.gcn import Gcn
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks import Associations
from attnlab.tasks.continuation import Continuation
from attnlab.tasks.documents import Documents
from attnlab.tasks.images import Figures
from attnlab.tasks.listops import ListOps
from attnlab.tasks.nodes import Nodes
from attnlab.tasks.recall import Recall
from tests.lab.parrot import PROBLEM, parrot
from tests.small import EXPERIMENT


def run(model=EXPERIMENT.model, decoder=None):
    drawn = model.create(jax.random.key(0), PROBLEM.shape)
    return Trained(change(EXPERIMENT, model=model, decoder=decoder), PROBLEM, drawn)


TRANSFORMER = run()


@pytest.fixture
def trained(monkeypatch):
    """Puts a run in the place of what would be loaded."""

    def trained(run):
        for room in ("look", "translating"):
            monkeypatch.setattr(f"attnlab.lab.{room}.trained", lambda folder, step, data: run)

    trained(TRANSFORMER)
    return trained


def test_without_a_word_the_answer_is_greedy_and_the_map_of_it(trained):
    found = sample("run", "1 2 3")
    assert found["decoder"] == Greedy()
    answer = jax.jit(PROBLEM.answer)(TRANSFORMER.model, PROBLEM.ask("1 2 3"))
    assert found["answer"] == found["answers"][0].text == PROBLEM.tell(answer)
    layers = np.asarray(found["layers"])
    assert layers.shape == (1, 2, len(found["target"]), 3)
    np.testing.assert_allclose(layers.sum(-1), 1, atol=1e-3)
    np.testing.assert_allclose(found["map"], layers[-1].mean(0))
    assert found["source"] == ["1", "2", "3"]


def test_several_answers_and_the_map_of_the_best(trained):
    found = sample("run", "1 2 3", Asked(best=3))
    assert found["decoder"] == Beam(best=3)
    assert len({answer.text for answer in found["answers"]}) == 3
    best = found["answers"][0]
    assert found["answer"] == best.text
    assert [*best.text.split(), *(["∎"] if best.finished else [])] == found["target"]


def test_the_run_s_own_decoder_answers(trained):
    trained(run(decoder=Beam(size=5, best=3)))
    assert sample("run", "1 2 3")["decoder"] == Beam(size=5, best=3)


def test_what_is_drawn_is_what_translate_draws_for_a_first_line(trained):
    asked = Asked(temperature=5.0, seed=3)
    found = sample("run", "1 2 3", asked)
    assert found["decoder"] == Sample(temperature=5.0)
    assert [found["answer"]] == [answer.text for answer in translate("run", ["1 2 3"], asked, batch=1)]


def test_a_model_without_attention_has_no_map(trained):
    trained(run(Seq2Seq(width=4)))
    found = sample("run", "1 2 3")
    assert (found["map"], found["layers"], found["source"]) == (None, None, ["1", "2", "3"])
    whole = [found["answer"]] if not found["cut"] else [found["answer"] + " …", UNFINISHED]
    assert lines(found) == whole


def test_a_model_of_ones_own_need_not_know_of_attention(trained):
    own = replace(run(), experiment=replace(EXPERIMENT, model=SimpleNamespace()))
    trained(own)
    assert sample("run", "1 2 3")["map"] is None
    assert looks(own.experiment.model, own.model, PROBLEM) is None


def test_what_is_not_decoded_has_one_answer_and_no_map(trained, monkeypatch):
    problem = Associations(keys=4, examined=3).load()
    monkeypatch.setattr(problem, "answer", lambda model, batch: {"said": batch["answers"]})
    trained(Trained(EXPERIMENT, problem, None))
    found = sample("run", "0:1 2:3 0?")
    assert lines(found) == ["1"]
    with pytest.raises(ValueError, match=r"^--best 2: what this task asks is not answered symbol by symbol"):
        sample("run", "0:1 2:3 0?", Asked(best=2))


def test_a_text_is_gone_on_with_block_after_block(trained):
    problem = Continuation(dict.fromkeys(PARTS, "abcdefg" * 9), Characters(), 8)
    writer = Language(width=8, heads=1, layers=1, feedforward=8).create(jax.random.key(3), problem.shape)
    trained(Trained(EXPERIMENT, problem, writer))
    found = sample("run", "abcdefg", Asked(length=13, beam=1))
    assert found["notes"][1:] == ["of the 7 symbols given the last 4 are read, half of the model's block of 8"]
    assert len(found["answer"]) == 13
    # Each block is what the end of the text before it is gone on with.
    text = "abcdefg"
    while len(text) < 20:
        text += sample("run", text[-4:], Asked(beam=1))["answer"]
    assert text[7:20] == found["answer"]
    assert sample("run", "abc")["notes"][1:] == []
    for asked in (Asked(), Asked(top_k=3, seed=1)):
        # The first block is what is told where no length is asked for.
        short, long = (sample("run", "abc", one)["answer"] for one in (asked, replace(asked, length=20)))
        assert long.startswith(short)
        assert len(long) == 20


WORDS = ListOps(valid_examples=4, test_examples=4, shortest=5, longest=12)
FIGURES = Figures(train_examples=20, valid_examples=10, test_examples=10, size=12)


@pytest.mark.parametrize("pool", ["mean", "token"])
@pytest.mark.parametrize(
    ("task", "model", "text", "names"),
    [
        (WORDS, Classifier, "[MAX 1 2 3 ]", ["[MAX", "1", "2", "3", "]"]),
        (FIGURES, ViT, "test:1", [str(n) for n in range(1, 10)]),
    ],
    ids=["words", "patches"],
)
def test_the_token_of_a_class_has_its_row_in_front_of_what_is_read(task, model, text, names, pool):
    problem, config = task.load(), model(width=4, heads=1, layers=1, feedforward=4, pool=pool)
    drawn = config.create(jax.random.key(0), problem.shape)
    first = ["[class]"] if pool == "token" else []
    for example in looks(config, drawn, problem)["examples"]:
        assert example["source"][: len(first) + 1] == [*first, example["source"][len(first)]]
        assert "[class]" not in example["source"][len(first) :]
        # Whole rows: nothing that is read is left out, the last word neither.
        np.testing.assert_allclose(np.sum(example["layers"], axis=-1), 1, atol=1e-3)
        assert np.shape(example["layers"])[-1] == len(example["source"])
    found = Trained(change(EXPERIMENT, model=config), problem, drawn)
    seen = _attentions(found, forced(found, text))["encoder"]
    assert seen["rows"] == seen["columns"] == [*first, *names]
    np.testing.assert_allclose(np.sum(seen["layers"], axis=-1), 1, atol=1e-3)


def test_of_what_is_longer_than_is_drawn_the_beginning_is_kept(monkeypatch):
    problem = Documents(shortest=150, longest=150, valid_examples=3, test_examples=3).load()
    config = Classifier(width=4, heads=2, layers=1, feedforward=4)
    model = config.create(jax.random.key(0), problem.shape)
    example = looks(config, model, problem)["examples"][0]
    batch = problem.examination("test")[0]
    one = (jnp.asarray(batch[name][0]) for name in ("source", "keep"))
    whole = maps(config, model, problem.shape, *one)["encoder"]
    assert (whole.shape, len(example["source"])) == ((1, 2, 150, 150), 128)
    np.testing.assert_allclose(example["layers"], whole[:, :, :128, :128], atol=1e-4)
    monkeypatch.setattr("attnlab.lab.look.LARGEST", 2 * 150 * 150 - 1)
    assert looks(config, model, problem) is None


def test_a_decoder_looks_along_the_beginnings_of_the_first_examples():
    problem = Recall(vocabulary=64, pairs=4, queries=4, length=200, valid_examples=4, test_examples=4).load()
    config = Language(width=4, heads=2, layers=1, feedforward=4)
    model = config.create(jax.random.key(0), problem.shape)
    found = looks(config, model, problem)
    assert (found["kind"], len(found["examples"])) == ("decoder", 3)
    for row, example in enumerate(found["examples"]):
        tokens = problem.examination("test")[0]["tokens"][row]
        # Cut where it is too long to be drawn, which changes nothing of what stands before.
        whole = maps(config, model, problem.shape, jnp.asarray(tokens), jnp.ones(len(tokens), bool))["decoder"]
        assert example["source"] == example["target"]
        assert np.shape(example["layers"]) == (1, 2, 128, 128)
        np.testing.assert_allclose(example["layers"], whole[:, :, :128, :128], atol=1e-4)
        assert example["source"][:2] == problem.tokens({"tokens": tokens[None]})["source"][:2]


def test_numbers_that_are_not_finite_are_no_answer(trained):
    trained(parrot(scores=np.nan))
    with pytest.raises(DivergedError, match="are not finite on this input") as refused:
        sample("run", "1 2")
    assert refused.value.exit_code == 5


@pytest.mark.parametrize("text", ["", "   "])
def test_nothing_is_no_input(trained, text):
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


def test_the_best_comes_first_then_all_then_the_map():
    assert lines(FOUND) == [
        "b a",
        "",
        "log-probability in nats, divided by ((5 + tokens) / 6)^0.5",
        "1     -0.250  b a",
        "2     -1.500  b",
        "3    -12.000  b b b …",
        "…: cut off at the longest answer allowed",
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


def test_what_a_score_is():
    assert scored(Greedy()) == scored(Sample()) == scored(Beam(penalty=0.0)) == "log-probability in nats"


def test_a_graph_shows_what_nodes_take_from_their_neighbours():
    """Rows of a node whose neighbours are all drawn sum to 1; no edge, no weight; GCN's fixed weights are no map."""
    problem, config = Nodes(each=5, valid_examples=20, test_examples=20).load(), Gat(width=4, heads=2)
    found = looks(config, config.create(jax.random.key(0), problem.shape), problem)
    assert found["kind"] == "graph"
    sizes = []
    for example in found["examples"]:
        layers, name = np.array(example["layers"]), example["source"][0].split(" ")[0]
        near = problem.graph.edges[problem.graph.edges[:, 0] == int(name), 1]
        assert [int(word.split(" ")[0]) for word in example["source"]] == [int(name), *near]
        assert example["source"][0].endswith(problem.graph.classes[problem.graph.labels[int(name)]])
        assert layers.shape == (1, 2, len(near) + 1, len(near) + 1)
        np.testing.assert_allclose(layers[:, :, 0].sum(-1), 1, atol=1e-3)
        edges = {(a, b) for a, b in problem.graph.edges.tolist()}
        for t, a in enumerate([int(name), *near]):
            for s, b in enumerate([int(name), *near]):
                assert (layers[:, :, t, s] > 0).all() == (a == b or (a, b) in edges)
        sizes.append(len(near))
    assert sizes == sorted(sizes, reverse=True)
    assert looks(Gcn(), Gcn().create(jax.random.key(0), problem.shape), problem) is None
