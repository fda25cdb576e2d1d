from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data.graphs import graphs
from attnlab.data.io.files import DataError
from attnlab.tasks.graphs.node_data import NodeClasses, NodeData
from attnlab.tasks.graphs.nodes import Nodes

TASK = Nodes(each=3, valid_examples=30, test_examples=40)
PROBLEM = TASK.load()


class Oracle:
    """A model that knows every class. The logit of that class is two above the others, and the penalty is 0.1."""

    def __init__(self, right=True):
        self.right = right

    def __call__(self, edges, entries, values, key=None):
        labels = PROBLEM.graph.labels + (0 if self.right else 1)
        return 2 * jnp.eye(4)[labels % 4]

    def penalty(self):
        return jnp.asarray(0.1)


def test_shape_and_batches():
    assert PROBLEM.shape == NodeClasses(2000, 160, 4)
    batch = PROBLEM.batch(0, 0, 12)
    assert sorted(batch["node"].tolist()) == sorted(PROBLEM.parts["train"].tolist())
    np.testing.assert_array_equal(batch["label"], PROBLEM.graph.labels[batch["node"]])
    epoch = np.concatenate([PROBLEM.batch(1, step, 4)["node"] for step in range(3)])
    assert sorted(epoch.tolist()) == sorted(batch["node"].tolist())
    for name in batch:
        np.testing.assert_array_equal(PROBLEM.batch(1, 2, 4)[name], TASK.load().batch(1, 2, 4)[name])
        assert batch[name].dtype == np.int32


def test_scores_of_a_perfect_and_of_a_wrong_model():
    least = np.log(np.exp(2) + 3) - 2
    for model, accuracy, nats in ((Oracle(), 1.0, least), (Oracle(right=False), 0.0, least + 2)):
        loss, metrics = PROBLEM.loss(model, PROBLEM.batch(0, 0, 6), None)
        assert float(metrics["nats"]) == pytest.approx(nats, rel=1e-5)
        assert float(loss) == pytest.approx(nats + 0.1, rel=1e-5)
        score = PROBLEM.score("test", [PROBLEM.answer(model, batch) for batch in PROBLEM.eval_batches("test")])
        assert score == pytest.approx({"accuracy": accuracy, "nats": nats}, rel=1e-5)


def test_fill_rows_are_not_scored(monkeypatch):
    monkeypatch.setattr("attnlab.tasks.graphs.node_data.EXAMINED", 16)
    batches = PROBLEM.eval_batches("test", 39)
    assert [batch["node"].shape for batch in batches] == [(16,)] * 3
    labels = np.concatenate([batch["label"] for batch in batches])
    nodes = np.concatenate([batch["node"] for batch in batches])[:39]
    assert len(set(nodes.tolist()) & set(PROBLEM.parts["test"].tolist())) == 39
    np.testing.assert_array_equal(labels[:39], PROBLEM.graph.labels[nodes])
    assert (labels[39:] == -1).all()
    score = PROBLEM.score("test", [PROBLEM.answer(Oracle(), batch) for batch in batches], 39)
    assert score["accuracy"] == 1.0
    loss, metrics = PROBLEM.loss(Oracle(), batches[2], None)
    assert float(metrics["accuracy"]) == 1.0
    assert float(loss) < 0.5
    for part, limit in (("train", None), ("test", 0)):
        with pytest.raises(ValueError, match="part="):
            PROBLEM.eval_batches(part, limit)


def test_prompt_is_the_name_of_a_node():
    batch = PROBLEM.encode_prompt(" 17 ")
    assert batch["node"].tolist() == [17]
    told = PROBLEM.format_answer(PROBLEM.answer(Oracle(), batch))
    assert told == f"class {PROBLEM.graph.labels[17]} 0.71"
    tokens = PROBLEM.tokens(batch)
    assert tokens["source"][0] == "17"
    assert {int(n) for n in tokens["source"][1:]} == {b for a, b in PROBLEM.graph.edges.tolist() if a == 17}
    assert tokens["target"] == [f"class {PROBLEM.graph.labels[17]}"]
    with pytest.raises(DataError, match="the graph has no node '2000'; it has 2,000 nodes, for example 0, 1, 2"):
        PROBLEM.encode_prompt("2000")


def test_absent_classes_are_reported_by_part():
    graph = graphs.drawn(60, 3, 0)
    of = lambda label: np.flatnonzero(graph.labels == label).astype(np.int32)
    parts = {"train": of(0), "valid": np.arange(60), "test": np.concatenate([of(1), of(2)])}
    train, test = NodeData(graph, parts).notes
    assert train == "train: 2 of 3 classes have no node (class 1, class 2); the model cannot predict them"
    assert test == "test: 1 of 3 classes have no node (class 0)"


def test_training_nodes_in_another_graph_are_reported():
    # A class of one node is removed: the graph is another one, but its nodes are those of training.
    labels = PROBLEM.graph.labels.copy()
    labels[PROBLEM.parts["train"][0]] = graphs.UNKNOWN
    found = PROBLEM.with_test(replace(PROBLEM.graph, labels=labels), "new.npz")
    assert found.notes == ("new.npz: 11 of 1,999 nodes with a class are also in train",)
    other = graphs.drawn(50, 4, seed=1)
    assert PROBLEM.with_test(other, "new.npz").notes == ()


def test_fingerprints_differ_by_graph_and_parts():
    others = [TASK, replace(TASK, seed=1), replace(TASK, each=4), replace(TASK, test_examples=41)]
    assert len({task.load().fingerprint for task in others}) == 4
    assert TASK.load().vocabulary == PROBLEM.vocabulary
    graph = graphs.drawn(60, 3, 0)
    found = NodeData(graph, graphs.divided(graph, 1, 2, 3, 0)).vocabulary
    assert found == {"nodes": list(graph.names), "classes": list(graph.classes)}
    assert len(found["classes"]) == 3


def test_user_graph(tmp_path):
    graph, file, split = graphs.drawn(60, 3, 0), tmp_path / "graph.npz", tmp_path / "split.tsv"
    rows = lambda of: np.searchsorted(of[:, 0], np.arange(61))
    order = graph.edges[np.lexsort(graph.edges.T[::-1])]
    np.savez(
        file, adj_data=np.ones(len(order)), adj_indices=order[:, 1], adj_indptr=rows(order), adj_shape=(60, 60),
        attr_data=graph.values, attr_indices=graph.entries[:, 1], attr_indptr=rows(graph.entries),
        attr_shape=(60, 120), labels=graph.labels,
    )  # fmt: skip
    split.write_text("".join(f"{n}\t{part}\n" for n, part in enumerate(["train", "valid", "test"] * 20)))
    problem = Nodes(graph=str(file), split=str(split)).load()
    np.testing.assert_array_equal(problem.graph.edges, graph.edges)
    assert problem.parts["test"].tolist() == list(range(2, 60, 3))
    with pytest.raises(DataError, match="cannot be read"):
        Nodes(graph=str(tmp_path / "none.npz")).load()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"each": 0}, "task.each=0 must be a whole number"),
        ({"test_examples": 0}, "task.test_examples=0 must be a whole number"),
        ({"seed": -1}, "task.seed=-1 must be a whole number"),
        ({"split": "there", "each": 3}, "task.each=3 has no effect with task.split='there'"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        Nodes(**fields)
