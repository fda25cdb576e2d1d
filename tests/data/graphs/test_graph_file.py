import io

import numpy as np
import pytest

from attnlab.data.graphs import graph_file
from attnlab.data.io.files import DataError

# Four nodes with edges 0 → 1, 2 → 1, 2 → 2 and an edge 0 → 2 of weight 0. The last node has no edge and no feature.
ARRAYS = {
    "adj_data": np.array([1, 0, 2, 1], np.float32),
    "adj_indices": np.array([1, 2, 1, 2], np.int32),
    "adj_indptr": np.array([0, 2, 2, 4, 4], np.int32),
    "adj_shape": np.array([4, 4]),
    "attr_data": np.array([1, 3, 2, -2], np.float32),
    "attr_indices": np.array([0, 4, 1, 2], np.int32),
    "attr_indptr": np.array([0, 2, 3, 4, 4], np.int32),
    "attr_shape": np.array([4, 5]),
    "labels": np.array([1, 0, -1, 1], np.int8),
}


def file(**changes):
    """Returns the graph as an npz file with the given changes of arrays. None leaves an array out."""
    held = io.BytesIO()
    np.savez(held, **{name: x for name, x in {**ARRAYS, **changes}.items() if x is not None})
    return held.getvalue()


def test_a_graph_is_read_with_notes_on_changes():
    graph = graph_file.read(file())
    assert graph.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert graph.entries.tolist() == [[0, 0], [0, 4], [1, 1], [2, 2]]
    np.testing.assert_allclose(graph.values, [0.25, 0.75, 1, -1])
    assert (graph.features, graph.labels.tolist()) == (5, [1, 0, -1, 1])
    assert (graph.names, graph.classes) == (("0", "1", "2", "3"), ("0", "1"))
    single, loops, alone, weights, bare = graph.notes
    assert weights.startswith("edge weights are ignored")
    assert loops.startswith("1 self-loop is removed")
    assert alone.startswith("1 node has no edge; such a node attends only to itself")
    assert single == "2 edges have one direction only and are used in both directions"
    assert bare == "1 node has no feature"


def test_names_are_read():
    graph = graph_file.read(file(node_names=np.array(list("abcd")), class_names=np.array([b"x", b"y", b"z"])))
    assert (graph.names, graph.classes) == (("a", "b", "c", "d"), ("x", "y", "z"))
    # Names are normalized to composed characters.
    assert graph_file.read(file(class_names=np.array(["Mu\u0308he", "y"]))).classes == ("M\u00fche", "y")
    # Arrays that are not needed are not read.
    spare = {"attr_names": np.array([1, "a"], object), "metadata": np.array({}, object)}
    assert graph_file.read(file(**spare)).labels[0] == 1


BAD = [
    ({"adj_indices": np.array([1, 2, 4, 2])}, r"adj_indices\[2\]=4 of node 2 is out of range; there are 4 nodes"),
    ({"adj_indices": np.array([1, 2, -1, 2])}, r"adj_indices\[2\]=-1 of node 2 is out of range; there are 4 nodes"),
    ({"adj_indices": np.array([1, 1, 1, 2])}, "adj_indices lists column 1 twice for node 0"),
    (
        {"adj_indices": np.array([1.0, 2, 1, 2])},
        r"adj_indices must be a 1-D array of integers, got float64 with shape \(4,\)",
    ),
    ({"adj_indptr": np.array([0, 2, 1, 4, 4])}, "adj_indptr does not divide 4 indices among 4 rows"),
    ({"adj_indptr": np.array([0, 2, 2, 4])}, "adj_indptr does not divide 4 indices among 4 rows"),
    ({"attr_data": np.array([1, np.nan, 2, 1])}, "attr_data must be finite numbers"),
    ({"attr_data": np.array([1.0])}, "attr_indptr does not divide 4 indices"),
    (
        {"attr_data": [], "attr_indices": np.zeros(0, int), "attr_indptr": np.zeros(5, int), "attr_shape": (4, 0)},
        "attr has no columns",
    ),
    ({"attr_shape": np.array([4])}, r"attr_shape must be two sizes of at most .*, got \[4\]"),
    ({"attr_shape": np.array([4, 2**40])}, "attr_shape must be two sizes of at most"),
    ({"adj_shape": np.array([4, 5])}, "adj is 4 × 5 and attr is 4 × 5; expected N × N"),
    ({"labels": np.array([0, 1, 2, -2])}, r"labels\[3\]=-2 is out of range; classes are 0 … 2, and −1 means no class"),
    (
        {"labels": np.array([-3, -2, -1, -1])},
        r"labels\[0\]=-3 is out of range; classes are 0 … 0, and −1 means no class",
    ),
    (
        {"labels": np.array([0, 1, 2, 1]), "class_names": np.array(["x", "y"])},
        r"labels\[2\]=2 is out of range; classes are 0 … 1",
    ),
    # −1 means no class. Labels that start at 1, or one label far above the others, leave classes without a node.
    (
        {"labels": np.array([2, -1, 0, 2])},
        "node 0 has label 2, but no node has label 1; number the 2 classes 0 … 1, with −1",
    ),
    (
        {"labels": np.array([1, 2, 3, 1])},
        "node 2 has label 3, but no node has label 0; number the 3 .*, or add class_names",
    ),
    (
        {"labels": np.array([0, 1, 50, 2])},
        "node 2 has label 50, but no node has label 3; number the 4 classes 0 … 3, with −1",
    ),
    ({"labels": np.array([0, 1])}, r"labels must be a 1-D array of 4 integers, got int64 with shape \(2,\)"),
    ({"labels": np.zeros(4, np.int8)}, "there is 1 class; at least 2 are needed"),
    (
        {"labels": None},
        r"has no array 'labels'; a graph file contains adj_\* and attr_\* \(data, indices, ind",
    ),
    ({"labels": np.array([0, 1, 2, 2**16])}, "there are 65,537 classes; at most 65,536 are supported"),
    (
        {"class_names": np.array(["a", "b"], object)},
        r"class_names.npy contains elements of type '\|O'.*save them as text",
    ),
    ({"node_names": np.array(["a", "b", "a", "c"])}, "node_names contains 'a' twice"),
    ({"node_names": np.array(["a", "b", "c\n", "d"])}, r"node_names contains 'c\\n', which is not a valid name"),
    ({"node_names": np.array(["a", "b"])}, r"node_names must be a 1-D array of 4 names, got <U1 with shape \(2,\)"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_an_invalid_graph_names_the_array_and_the_index(changes, words):
    with pytest.raises(DataError, match=words):
        graph_file.read(file(**changes))
