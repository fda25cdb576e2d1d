"""Tests of the attention maps of a few test examples, for models at their initial weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.lab.study.study import change
from attnlab.lab.trained.example import forced
from attnlab.lab.trained.inspect import _attentions
from attnlab.lab.trained.load import Trained
from attnlab.lab.trained.snapshot import snapshots
from attnlab.models import Classifier, Language, ViT
from attnlab.models.detr import Detr
from attnlab.models.gat import Gat
from attnlab.models.gcn import Gcn
from attnlab.tasks.graphs.nodes import Nodes
from attnlab.tasks.synthetic.listops import ListOps
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.text.documents import Documents
from attnlab.tasks.vision.detection import Discs
from attnlab.tasks.vision.images import Figures
from tests.small import EXPERIMENT

WORDS = ListOps(valid_examples=4, test_examples=4, shortest=5, longest=12)
FIGURES = Figures(train_examples=20, valid_examples=10, test_examples=10, size=12)


def maps(config, model, problem):
    answers = lambda count: jax.jit(problem.answer)(model, problem.eval_batches("test", count)[0])
    return snapshots(config, model, problem, answers)


@pytest.mark.parametrize("pool", ["mean", "token"])
@pytest.mark.parametrize(
    ("task", "model", "text", "names"),
    [
        (WORDS, Classifier, "[MAX 1 2 3 ]", ["[MAX", "1", "2", "3", "]"]),
        (FIGURES, ViT, "test:1", [str(n) for n in range(1, 10)]),
    ],
    ids=["words", "patches"],
)
def test_class_token_is_the_first_row(task, model, text, names, pool):
    problem, config = task.load(), model(width=4, heads=1, layers=1, feedforward=4, pool=pool)
    drawn = config.create(jax.random.key(0), problem.shape)
    first = ["[class]"] if pool == "token" else []
    for example in maps(config, drawn, problem)["examples"]:
        assert example["source"][: len(first) + 1] == [*first, example["source"][len(first)]]
        assert "[class]" not in example["source"][len(first) :]
        # Rows sum to 1, so the map contains everything the model reads, including the last word.
        np.testing.assert_allclose(np.sum(example["layers"], axis=-1), 1, atol=1e-3)
        assert np.shape(example["layers"])[-1] == len(example["source"])
    found = Trained(change(EXPERIMENT, model=config), problem, drawn)
    seen = _attentions(found, forced(found, text))["encoder"]
    assert seen["rows"] == seen["columns"] == [*first, *names]
    np.testing.assert_allclose(np.sum(seen["layers"], axis=-1), 1, atol=1e-3)


def test_long_maps_are_cut_to_their_beginning(monkeypatch):
    problem = Documents(shortest=150, longest=150, valid_examples=3, test_examples=3).load()
    config = Classifier(width=4, heads=2, layers=1, feedforward=4)
    model = config.create(jax.random.key(0), problem.shape)
    example = maps(config, model, problem)["examples"][0]
    batch = problem.eval_batches("test")[0]
    one = (jnp.asarray(batch[name][0]) for name in ("source", "keep"))
    whole = attention_maps(model, *one)["encoder"]
    assert (whole.shape, len(example["source"])) == ((1, 2, 150, 150), 128)
    np.testing.assert_allclose(example["layers"], whole[:, :, :128, :128], atol=1e-4)
    monkeypatch.setattr("attnlab.lab.trained.snapshot.LARGEST", 2 * 150 * 150 - 1)
    assert maps(config, model, problem) is None


def test_decoder_maps_of_the_first_examples():
    problem = Recall(vocabulary=64, pairs=4, queries=4, length=200, valid_examples=4, test_examples=4).load()
    config = Language(width=4, heads=2, layers=1, feedforward=4)
    model = config.create(jax.random.key(0), problem.shape)
    found = maps(config, model, problem)
    assert (found["kind"], len(found["examples"])) == ("decoder", 3)
    for row, example in enumerate(found["examples"]):
        tokens = problem.eval_batches("test")[0]["tokens"][row]
        # A long map is truncated, which does not change the remaining part.
        whole = attention_maps(model, jnp.asarray(tokens), jnp.ones(len(tokens), bool))["decoder"]
        assert example["source"] == example["target"]
        assert np.shape(example["layers"]) == (1, 2, 128, 128)
        np.testing.assert_allclose(example["layers"], whole[:, :, :128, :128], atol=1e-4)
        assert example["source"][:2] == problem.tokens({"tokens": tokens[None]})["source"][:2]


def test_graph_maps_of_nodes_and_neighbours():
    """Checks that the row of a node with all neighbours drawn sums to 1, and that only edges have weights.

    A GCN has fixed weights and therefore no map.
    """
    problem, config = Nodes(each=5, valid_examples=20, test_examples=20).load(), Gat(width=4, heads=2)
    found = maps(config, config.create(jax.random.key(0), problem.shape), problem)
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
    assert maps(Gcn(), Gcn().create(jax.random.key(0), problem.shape), problem) is None


@pytest.mark.parametrize("sure", [0.0, 2.0])
def test_detection_maps_of_queries_and_positions(sure, monkeypatch):
    """Checks maps of an image whose sides are not divisible by 4. Confident queries are named by their class."""
    monkeypatch.setattr("attnlab.tasks.vision.box_display.SURE", sure)
    problem = Discs(train_examples=4, valid_examples=2, test_examples=4, rows=18, columns=25).load()
    config = Detr(width=8, heads=2, layers=2, queries=6, channels=4, stages=2)
    model = config.create(jax.random.key(0), problem.shape)
    found = maps(config, model, problem)
    assert (found["kind"], len(found["examples"])) == ("cross", 3)
    batch = problem.eval_batches("test", 8)[0]
    labels = jax.jit(problem.answer)(model, batch)["label"]
    for row, example in enumerate(found["examples"]):
        # 18 and 25 pixels, halved twice and rounded up, give five rows of seven positions.
        assert example["source"] == [f"{y},{x}" for y in range(1, 6) for x in range(1, 8)]
        named = [f"{n} {problem.classes[label]}" for n, label in enumerate(np.asarray(labels[row]), start=1)]
        assert example["target"] == (named if sure == 0 else list("123456"))
        whole = attention_maps(model, problem.given(batch)[row])["cross"]
        assert whole.shape == (2, 2, 6, 35)
        np.testing.assert_allclose(example["layers"], whole, atol=1e-4)
        np.testing.assert_allclose(np.sum(example["layers"], axis=-1), 1, atol=1e-3)
