from dataclasses import replace

import numpy as np
import pytest

from attnlab.data.graphs import graphs
from attnlab.data.io.files import DataError

GRAPH = graphs.drawn(60, 3, 0)


def test_a_synthetic_graph_has_communities():
    edges, entries = GRAPH.edges, GRAPH.entries
    assert {(b, a) for a, b in edges.tolist()} == {(a, b) for a, b in edges.tolist()}
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert (edges[:, 0] != edges[:, 1]).all()
    own = GRAPH.labels[edges[:, 0]] == GRAPH.labels[edges[:, 1]]
    assert 0.75 < own.mean() < 0.98
    np.testing.assert_allclose(np.bincount(entries[:, 0], GRAPH.values), 1, rtol=1e-5)
    own = entries[:, 1] // 40 == GRAPH.labels[entries[:, 0]]
    assert 0.4 < own.mean() < 0.7
    assert entries[:, 1].max() < GRAPH.features == 120


def test_a_synthetic_graph_is_a_function_of_its_seed():
    assert graphs.drawn(60, 3, 0).fingerprint == GRAPH.fingerprint != graphs.drawn(60, 3, 1).fingerprint


@pytest.mark.parametrize("scale", [1e-320, 1.0, 1e308])
def test_values_are_divided_by_their_row_sum(scale):
    entries = np.array([[0, 0], [0, 1], [2, 0]])
    values = graphs.shares(entries, np.array([1.0, -1.0, 1.5]) * scale, 3)
    np.testing.assert_allclose(values, [0.5, -0.5, 1.0], rtol=1e-3 if scale < 1e-300 else 1e-6)


def test_parts_have_so_many_of_each_class_and_no_node_in_common():
    unknown = replace(GRAPH, labels=np.where(np.arange(60) < 5, -1, GRAPH.labels))
    parts = graphs.divided(unknown, 4, 10, 20, 7)
    assert {part: len(nodes) for part, nodes in parts.items()} == {"train": 12, "valid": 10, "test": 20}
    np.testing.assert_array_equal(np.bincount(GRAPH.labels[parts["train"]]), [4, 4, 4])
    together = np.concatenate(list(parts.values()))
    assert len(set(together)) == 42
    assert together.min() >= 5
    again, other = graphs.divided(unknown, 4, 10, 20, 7), graphs.divided(unknown, 4, 10, 20, 8)
    np.testing.assert_array_equal(again["test"], parts["test"])
    assert (other["test"] != parts["test"]).any()


def test_parts_that_are_too_large_are_refused():
    with pytest.raises(
        DataError, match=r"'class 0' has 19 nodes \(the first is node 3\), fewer than task.each=50"
    ) as told:
        graphs.divided(GRAPH, 50, 1, 2, 0)
    assert str(told.value).endswith(
        "; task.each=19 would leave 3 nodes for task.valid_examples=1 and task.test_examples=2"
    )
    with pytest.raises(DataError, match="57 nodes with a label are left for evaluation, too few for task"):
        graphs.divided(GRAPH, 1, 40, 20, 0)


@pytest.mark.parametrize("names", ["xyz", "012"])
def test_a_class_with_a_name_may_have_no_node(names):
    without = replace(GRAPH, labels=np.where(GRAPH.labels == 2, 0, GRAPH.labels), classes=tuple(names))
    with pytest.raises(DataError, match=f"class '{names[2]}' has 0 nodes, fewer than task.each=4$"):
        graphs.divided(without, 4, 10, 20, 0)


def test_a_split_is_read_by_name(tmp_path):
    file = tmp_path / "split.tsv"
    file.write_text("\ufeff3\ttrain\n\n5\tvalid\n8\ttest\n2\ttrain\n")
    assert {part: nodes.tolist() for part, nodes in graphs.split(GRAPH, file).items()} == {
        "train": [3, 2], "valid": [5], "test": [8],
    }  # fmt: skip
    file.write_text("Mu\u0308he\ttrain\n5\tvalid\n8\ttest\n2\ttrain\n")
    named = replace(GRAPH, names=tuple("M\u00fche" if n == 3 else name for n, name in enumerate(GRAPH.names)))
    assert graphs.split(named, file)["train"].tolist() == [3, 2]
    file.write_text("M\u0085\ttrain\r\n5\tvalid\n8\ttest\n2\ttrain\n", newline="")
    named = replace(GRAPH, names=tuple("M\u0085" if n == 3 else name for n, name in enumerate(GRAPH.names)))
    assert graphs.split(named, file)["train"].tolist() == [3, 2]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("3\ttrain\n60\ttest\n", "line 2: the graph has no node '60'"),
        ("3\ttrain\n3\ttest\n", "line 2: node '3' is listed twice"),
        ("0\ttrain\n", "line 1: node '0' has no label"),
        ("3 train\n", "line 1: expected train, valid or test after a tab, got ''"),
        ("1\ttrain\n2\ttrain\n3\tvalid\n4\ttest\n", "all training nodes are of class"),
        ("3\ttrain\n4\tvalid\n", "no node is in test"),
    ],
)
def test_an_invalid_split_names_the_line(tmp_path, lines, words):
    file = tmp_path / "split.tsv"
    file.write_text(lines)
    unknown = replace(GRAPH, labels=np.where(np.arange(60) < 1, -1, GRAPH.labels))
    with pytest.raises(DataError, match=words):
        graphs.split(unknown, file)
