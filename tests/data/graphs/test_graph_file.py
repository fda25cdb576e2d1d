import io

import numpy as np
import pytest

from attnlab.data.graphs import graph_file
from attnlab.data.io.files import DataError

# Four nodes: 0 → 1, 2 → 1, 2 → 2 and, of weight 0, 0 → 2; the last node is isolated, and has no feature.
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
    """The graph as npz, some arrays changed, or left out where they are None."""
    held = io.BytesIO()
    np.savez(held, **{name: x for name, x in {**ARRAYS, **changes}.items() if x is not None})
    return held.getvalue()


def test_a_graph_is_read_with_what_is_odd_in_it_said():
    graph = graph_file.read(file())
    assert graph.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert graph.entries.tolist() == [[0, 0], [0, 4], [1, 1], [2, 2]]
    np.testing.assert_allclose(graph.values, [0.25, 0.75, 1, -1])
    assert (graph.features, graph.labels.tolist()) == (5, [1, 0, -1, 1])
    assert (graph.names, graph.classes) == (("0", "1", "2", "3"), ("0", "1"))
    single, loops, alone, weights, bare = graph.notes
    assert weights.startswith("weights of edges are left out")
    assert loops.startswith("1 edge leads from a node to itself")
    assert alone.startswith("1 node has no edge: seen by itself alone")
    assert single == "2 edges lead one way alone: taken in both directions"
    assert bare == "1 node has no feature"


def test_names_are_read():
    graph = graph_file.read(file(node_names=np.array(list("abcd")), class_names=np.array([b"x", b"y", b"z"])))
    assert (graph.names, graph.classes) == (("a", "b", "c", "d"), ("x", "y", "z"))
    # However they were put together.
    assert graph_file.read(file(class_names=np.array(["Mu\u0308he", "y"]))).classes == ("M\u00fche", "y")
    # What is not asked for is not looked at.
    spare = {"attr_names": np.array([1, "a"], object), "metadata": np.array({}, object)}
    assert graph_file.read(file(**spare)).labels[0] == 1


BAD = [
    ({"adj_indices": np.array([1, 2, 4, 2])}, r"adj_indices\[2\], of node 2, is 4: there are 4 nodes"),
    ({"adj_indices": np.array([1, 2, -1, 2])}, r"adj_indices\[2\], of node 2, is -1: there are 4 nodes"),
    ({"adj_indices": np.array([1, 1, 1, 2])}, "adj_indices names column 1 twice for node 0"),
    ({"adj_indices": np.array([1.0, 2, 1, 2])}, "adj_indices must list whole numbers: it is 4 of float64"),
    ({"adj_indptr": np.array([0, 2, 1, 4, 4])}, "adj_indptr does not divide 4 indices among 4 rows"),
    ({"adj_indptr": np.array([0, 2, 2, 4])}, "adj_indptr does not divide 4 indices among 4 rows"),
    ({"attr_data": np.array([1, np.nan, 2, 1])}, "attr_data must be finite numbers"),
    ({"attr_data": np.array([1.0])}, "attr_indptr does not divide 4 indices"),
    (
        {"attr_data": [], "attr_indices": np.zeros(0, int), "attr_indptr": np.zeros(5, int), "attr_shape": (4, 0)},
        "attr has no columns",
    ),
    ({"attr_shape": np.array([4])}, r"attr_shape \[4\] must be two sizes"),
    ({"attr_shape": np.array([4, 2**40])}, "attr_shape .* must be two sizes, at most"),
    ({"adj_shape": np.array([4, 5])}, "adj 4 × 5 and attr 4 × 5 are not of the same nodes"),
    ({"labels": np.array([0, 1, 2, -2])}, r"labels\[3\], of node 3, is -2: 0 … 2 are classes, and −1 is none"),
    ({"labels": np.array([-3, -2, -1, -1])}, r"labels\[0\], of node 0, is -3: 0 … 0 are classes, and −1 is none"),
    (
        {"labels": np.array([0, 1, 2, 1]), "class_names": np.array(["x", "y"])},
        r"labels\[2\], of node 2, is 2: 0 … 1 are classes",
    ),
    # −1 is no class. Those that are counted from 1, or have one far out, leave one out.
    ({"labels": np.array([2, -1, 0, 2])}, "node 0 is labelled 2, and none 1: 2 classes are labelled 0 … 1, and −1"),
    ({"labels": np.array([1, 2, 3, 1])}, "node 2 is labelled 3, and none 0: 3 .* where there are class_names, a class"),
    ({"labels": np.array([0, 1, 50, 2])}, "node 2 is labelled 50, and none 3: 4 classes are labelled 0 … 3, and −1"),
    ({"labels": np.array([0, 1])}, "labels must be 4 whole numbers, and are 2 of int64"),
    ({"labels": np.zeros(4, np.int8)}, "1 class: there is nothing to tell apart"),
    (
        {"labels": None},
        r"holds no array 'labels': a graph is adj_\* and attr_\* \(data, indices, ind",
    ),
    ({"labels": np.array([0, 1, 2, 2**16])}, "65,537 classes: at most 65,536 are read"),
    ({"class_names": np.array(["a", "b"], object)}, r"class_names.npy holds elements of kind '\|O'.*save them as text"),
    ({"node_names": np.array(["a", "b", "a", "c"])}, "node_names holds 'a' twice"),
    ({"node_names": np.array(["a", "b", "c\n", "d"])}, r"node_names holds 'c\\n', which is no name"),
    ({"node_names": np.array(["a", "b"])}, "node_names must be 4 names, and is 2"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_what_cannot_be_names_the_array_and_the_place(changes, words):
    with pytest.raises(DataError, match=words):
        graph_file.read(file(**changes))
